/** Room around the plot, in pixels. */
const MARGIN = { left: 66, right: 10, top: 26, bottom: 58 };
const BAND = { gap: 4, height: 20 };
const FONT = '12px system-ui, sans-serif';

/** The colours of the page's style, which differ on light and dark ground. */
function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(name).trim();
  return {
    ink: named('--ink'),
    faint: named('--faint'),
    line: named('--line'),
    ground: named('--ground'),
    accent: named('--accent'),
    mark: named('--mark'),
    series: Array.from({ length: 8 }, (_, index) => named(`--c${index}`)),
  };
}

/** Round steps for an axis up to `highest`, about as many as wanted. */
function steps(highest, wanted) {
  const raw = highest / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((round) => round >= raw);
  return Array.from({ length: Math.floor(highest / step) + 1 }, (_, index) => index * step);
}

/** How high a number is, as a share of the highest. */
const heights = {
  linear: (number, highest) => number / highest,
  log: (number, highest) => Math.log1p(number) / Math.log1p(highest),
};

/** Values for the vertical axis. */
const values = {
  linear: steps,
  log: (highest) => [0, ...Array.from({ length: Math.floor(Math.log10(Math.max(1, highest))) + 1 }, (_, power) => 10 ** power)],
};

/** Draws the picture into a canvas. */
class Drawing {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
  }

  /** As large as the canvas is on the screen, in its pixels. */
  fit() {
    const ratio = window.devicePixelRatio || 1;
    const { width, height } = this.canvas.getBoundingClientRect();
    const [columns, rows] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== columns) this.canvas.width = columns;
    if (this.canvas.height !== rows) this.canvas.height = rows;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.plot = {
      left: MARGIN.left,
      top: MARGIN.top,
      width: Math.max(50, width - MARGIN.left - MARGIN.right),
      height: Math.max(50, height - MARGIN.top - MARGIN.bottom),
    };
    this.size = { width, height };
  }

  x(view, position) {
    return this.plot.left + ((position - view.from) / view.span) * this.plot.width;
  }

  position(view, x) {
    const share = Math.min(1, Math.max(0, (x - this.plot.left) / this.plot.width));
    return view.from + share * view.span;
  }

  /** Everything: `scene` has recorded, view, bins, what, group, shown, stacked, cursor, selection. */
  draw(scene) {
    const { context } = this;
    this.colours = colours();
    context.clearRect(0, 0, this.size.width, this.size.height);
    context.font = FONT;
    context.fillStyle = this.colours.ground;
    context.fillRect(this.plot.left, this.plot.top, this.plot.width, this.plot.height);
    const lanes = scene.stacked ? [null] : scene.group.names.map((_, series) => series).filter((series) => scene.shown[series]);
    const highest = scene.bins.highest(scene.stacked) || 1;
    const height = this.plot.height / Math.max(1, lanes.length);
    lanes.forEach((series, lane) => {
      const top = this.plot.top + lane * height;
      this.axis(scene, highest, top, height, lane === 0);
      this.bars(scene, highest, top, height, series);
    });
    this.stretches(scene);
    this.bands(scene);
    this.ticks(scene);
    this.marks(scene);
  }

  /** A colour by its number; from the ninth on they begin again, striped. */
  fill(number) {
    const { series } = this.colours;
    const colour = series[number % series.length];
    return number < series.length ? colour : stripes(this.context, colour, Math.floor(number / series.length));
  }

  axis(scene, highest, top, height, first) {
    const { context, plot } = this;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.strokeStyle = this.colours.line;
    context.fillStyle = this.colours.faint;
    context.lineWidth = 1;
    for (const value of values[scene.height](highest, height > 150 ? 5 : 2)) {
      const y = Math.round(top + height - heights[scene.height](value, highest) * (height - 6)) + 0.5;
      context.beginPath();
      context.moveTo(plot.left, y);
      context.lineTo(plot.left + plot.width, y);
      context.stroke();
      if (height > 30 || value === 0) context.fillText(this.value(scene, value), plot.left - 6, y - (value === 0 ? 4 : 0));
    }
    if (first) {
      context.textAlign = 'left';
      const per = `${scene.what === 'bytes' ? 'bytes moved' : scene.what} per ${amount(scene.bins.size)}`;
      context.fillText(per, plot.left, plot.top - 12);
    }
  }

  value(scene, value) {
    return scene.what === 'bytes' ? amount(value) : count(value);
  }

  bars(scene, highest, top, height, only) {
    const { context, plot } = this;
    const { bins, view, shown } = scene;
    const width = (bins.size / view.span) * plot.width;
    const gap = width >= 5 ? 1 : 0;
    context.save();
    context.beginPath();
    context.rect(plot.left, top, plot.width, height);
    context.clip();
    // The parts of a bar share its height, whatever the scale is.
    const scales = Float64Array.from({ length: bins.length }, (_, bin) => {
      const whole = only === null ? bins.total(bin) : bins.of(bin, only);
      return whole === 0 ? 0 : (heights[scene.height](whole, highest) * (height - 6)) / whole;
    });
    const below = new Float64Array(bins.length);
    for (let series = 0; series < bins.series; series += 1) {
      if (!shown[series] || (only !== null && only !== series)) continue;
      context.fillStyle = this.fill(scene.group.colours[series]);
      for (let bin = 0; bin < bins.length; bin += 1) {
        const number = bins.of(bin, series);
        if (number === 0) continue;
        const x = this.x(view, bins.start + bin * bins.size);
        const y = top + height - (below[bin] + number) * scales[bin];
        context.fillRect(x, y, Math.max(1, width - gap), Math.max(number * scales[bin], 0.5));
        below[bin] += number;
      }
    }
    context.restore();
  }

  /** Where memory is left out. */
  stretches(scene) {
    const { context, plot } = this;
    context.strokeStyle = this.colours.faint;
    context.setLineDash([3, 3]);
    let before = -Infinity;
    for (const stretch of scene.view.layout.stretches) {
      const x = Math.round(this.x(scene.view, stretch.at)) + 0.5;
      // Where lines would hide the bars there are none.
      if (x > plot.left + 1 && x < plot.left + plot.width && x - before >= 6) {
        context.globalAlpha = 0.5;
        context.beginPath();
        context.moveTo(x, plot.top);
        context.lineTo(x, plot.top + plot.height);
        context.stroke();
      }
      before = x;
    }
    context.globalAlpha = 1;
    context.setLineDash([]);
  }

  /** Which area is where. */
  bands(scene) {
    const { context, plot } = this;
    const top = plot.top + plot.height + BAND.gap;
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    let drawn = plot.left;
    scene.view.layout.bands.forEach((band, index) => {
      const left = Math.max(plot.left, this.x(scene.view, band.from));
      const right = Math.min(plot.left + plot.width, this.x(scene.view, band.to));
      // Of many within one pixel it is enough to draw one.
      if (right <= left || right < drawn + 0.5) return;
      drawn = right;
      context.fillStyle = this.colours.line;
      context.globalAlpha = index % 2 ? 0.55 : 1;
      context.fillRect(left, top, Math.max(1, right - left - (right - left > 3 ? 1 : 0)), BAND.height);
      context.globalAlpha = 1;
      // What is left free behind a narrow one is for its name.
      const next = scene.view.layout.bands[index + 1];
      const end = next ? Math.min(this.x(scene.view, next.from), plot.left + plot.width) : plot.left + plot.width;
      const name = this.fitting(scene.recorded.areaName(band.area), end - left - 10);
      context.fillStyle = this.colours.ink;
      if (name) context.fillText(name, left + 5, top + BAND.height / 2 + 1);
    });
  }

  /** As much of a text as is that wide; nothing if that says nothing. */
  fitting(text, width) {
    if (width < 16) return '';
    const most = Math.floor(width / 6);
    let fitting = shortened(text, most);
    while (fitting.length > 2 && this.context.measureText(fitting).width > width) fitting = shortened(fitting, fitting.length - 1);
    return fitting.length > 2 || fitting === text ? fitting : '';
  }

  /** Addresses as area and offset. */
  ticks(scene) {
    const { context, plot } = this;
    const { view, recorded } = scene;
    const wanted = Math.max(2, Math.floor(plot.width / 170));
    const step = Math.max(4, 2 ** Math.ceil(Math.log2(view.span / wanted)));
    const y = plot.top + plot.height;
    context.fillStyle = this.colours.faint;
    context.strokeStyle = this.colours.faint;
    context.textBaseline = 'top';
    context.textAlign = 'left';
    let free = plot.left;
    for (const band of view.layout.bands) {
      if (band.to <= view.from) continue;
      if (band.from >= view.to) break;
      const first = Math.max(0, Math.ceil((view.from - band.from) / step));
      for (let position = band.from + first * step; position < Math.min(band.to, view.to); position += step) {
        const x = Math.round(this.x(view, position)) + 0.5;
        if (x < free) continue;
        const text = recorded.place(view.layout.address(position), band.area, 14);
        const width = context.measureText(text).width;
        if (x + width > this.size.width) return;
        context.beginPath();
        context.moveTo(x, y + BAND.gap + BAND.height);
        context.lineTo(x, y + 2 * BAND.gap + BAND.height + 2);
        context.stroke();
        context.fillText(text, x, y + 2 * BAND.gap + BAND.height + 5);
        free = x + width + 14;
      }
    }
  }

  /** The cursor, and the range that is being dragged over. */
  marks(scene) {
    const { context, plot } = this;
    if (scene.selection) {
      const [one, other] = scene.selection.map((position) => this.x(scene.view, position));
      context.fillStyle = this.colours.accent;
      context.globalAlpha = 0.2;
      context.fillRect(Math.min(one, other), plot.top, Math.abs(other - one), plot.height);
      context.globalAlpha = 1;
    }
    if (scene.cursor !== null && scene.cursor >= scene.view.from && scene.cursor < scene.view.to) {
      const x = Math.round(this.x(scene.view, scene.cursor)) + 0.5;
      context.strokeStyle = this.colours.accent;
      context.beginPath();
      context.moveTo(x, plot.top);
      context.lineTo(x, plot.top + plot.height);
      context.stroke();
    }
  }
}

/** A striped fill; each round has other stripes, of three kinds. */
function stripes(context, colour, round) {
  const tile = document.createElement('canvas');
  tile.width = 6;
  tile.height = 6;
  const drawn = tile.getContext('2d');
  drawn.fillStyle = colour;
  drawn.fillRect(0, 0, 6, 6);
  drawn.strokeStyle = 'rgb(0 0 0 / .45)';
  drawn.lineWidth = 1.5;
  const turned = round % 3;
  drawn.beginPath();
  if (turned !== 2) {
    drawn.moveTo(0, 3);
    drawn.lineTo(6, 3);
  }
  if (turned !== 1) {
    drawn.moveTo(3, 0);
    drawn.lineTo(3, 6);
  }
  drawn.stroke();
  return context.createPattern(tile, 'repeat');
}
