/** The picture of counts over addresses: what is shown of what, and how. */
class Picture {
  /** `opened` is called with an area that the user points to, or with nothing. */
  constructor(recorded, opened) {
    this.recorded = recorded;
    this.opened = opened;
    this.figure = document.getElementById('picture');
    this.canvas = document.getElementById('canvas');
    this.hint = document.getElementById('hint');
    this.drawing = new Drawing(this.canvas);
    this.view = new View(new Layout(recorded));
    this.what = 'fetches';
    this.stacked = true;
    this.height = 'linear';
    this.cursor = null;
    this.selection = null;
    this.drawn = 0;
    this.choose('node');
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.listed();
      this.redraw();
    });
    for (const input of document.querySelectorAll('.controls input')) {
      input.addEventListener('change', () => this.set(input));
    }
    gestures(this);
  }

  set({ name, value, checked }) {
    if (name === 'what') this.what = value;
    if (name === 'log') this.height = checked ? 'log' : 'linear';
    if (name === 'shape') this.stacked = value === 'stack';
    if (name === 'by') this.choose(value);
    this.redraw();
  }

  /** By node or by thread. */
  choose(by) {
    this.by = by;
    this.group = this.recorded.groups[by];
    this.shown = this.group.names.map(() => true);
    this.listed();
  }

  /** The legend, whose entries show and hide. */
  listed() {
    const legend = document.getElementById('legend');
    this.drawing.colours = colours();
    legend.replaceChildren(...this.group.names.map((name, series) => {
      const swatch = document.createElement('canvas');
      swatch.width = 12;
      swatch.height = 12;
      const context = swatch.getContext('2d');
      context.fillStyle = this.drawing.fill(this.group.colours[series]);
      context.fillRect(0, 0, 12, 12);
      const button = document.createElement('button');
      button.type = 'button';
      button.setAttribute('aria-pressed', String(this.shown[series]));
      button.append(swatch, name);
      button.addEventListener('click', () => {
        this.shown[series] = !this.shown[series];
        button.setAttribute('aria-pressed', String(this.shown[series]));
        this.redraw();
      });
      return button;
    }));
  }

  /** Draws soon, once for all that has changed until then. */
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.drawing.fit();
      this.bins = new Bins(
        this.recorded, this.view.layout, this.view, this.what, this.group, this.shown, this.drawing.plot.width,
      );
      this.drawing.draw(this);
      this.say();
    });
  }

  /** The state, for people who do not see the picture and for tests. */
  say() {
    const { view, figure } = this;
    const { layout } = view;
    const [from, to] = [view.from, view.to - 1].map((position) => layout.address(position));
    Object.assign(figure.dataset, {
      from: hex(Math.floor(from)),
      to: hex(Math.floor(to) + 1),
      span: view.span,
      bin: this.bins.size,
      area: layout.area ?? 'all',
      by: this.by,
      what: this.what,
      height: this.height,
      shape: this.stacked ? 'stack' : 'lanes',
      drawn: (this.drawn += 1),
    });
    const where = layout.area === null ? 'all areas' : this.recorded.areaName(layout.area);
    const of = this.stacked ? 'stacked' : 'in lanes';
    const range = `${this.recorded.place(Math.floor(from), layout.areaAt(view.from))} to ${this.recorded.place(Math.floor(to), layout.areaAt(view.to - 1))}`;
    this.canvas.setAttribute('aria-label', `${this.what} by ${this.by}, ${of}, of ${where}: ${amount(view.span)} from ${range}`);
    document.getElementById('reading').textContent = this.cursor === null
      ? `${amount(Math.round(view.span))} shown: ${range}`
      : reading(this, this.cursor).replaceAll('\n', ' · ');
  }

  under(event) {
    return this.drawing.position(this.view, event.offsetX);
  }

  show(from, to) {
    this.view.show(from, to);
    this.redraw();
  }

  /** A cursor that is out of sight is not meant. */
  zoom(factor, position) {
    const seen = position !== null && position >= this.view.from && position <= this.view.to;
    this.view.zoom(factor, seen ? position : undefined);
    this.redraw();
  }

  /** By a share of what is seen. */
  move(share) {
    this.view.move(share * this.view.span);
    this.redraw();
  }

  moveTo(from) {
    const { from: first, to: last } = this.view.layout.extent();
    const start = Math.max(first, Math.min(from, last - this.view.span));
    this.show(start, start + this.view.span);
  }

  select(range) {
    this.selection = range;
    this.hint.hidden = true;
    this.redraw();
  }

  /** The next bin; the picture follows the cursor. */
  step(bins) {
    const { size } = this.bins;
    const extent = this.view.layout.extent();
    const seen = this.cursor !== null && this.cursor >= this.view.from && this.cursor < this.view.to;
    const now = seen ? this.cursor : (this.view.from + this.view.to) / 2;
    const next = (Math.floor(now / size) + bins + 0.5) * size;
    this.cursor = Math.min(Math.max(next, extent.from), extent.to - 1);
    if (this.cursor < this.view.from || this.cursor >= this.view.to) this.view.move(this.cursor - (this.view.from + this.view.to) / 2);
    this.redraw();
  }

  /** Words beside the pointer. */
  hover(x, y) {
    const { plot } = this.drawing;
    const inside = x !== null && this.bins && x >= plot.left && x <= plot.left + plot.width;
    this.hint.hidden = !inside;
    if (!inside) return;
    this.hint.textContent = reading(this, this.drawing.position(this.view, x));
    const right = x > plot.left + plot.width / 2;
    this.hint.style.left = right ? 'auto' : `${x + 14}px`;
    this.hint.style.right = right ? `${this.drawing.size.width - x + 14}px` : 'auto';
    this.hint.style.top = `${Math.min(y + 10, plot.top + plot.height - 60)}px`;
  }

  /** A click into the plot puts the cursor there; one on the name of an area opens it. */
  pointed(position, y) {
    this.cursor = position;
    if (y > this.drawing.plot.top + this.drawing.plot.height) this.open();
    else this.redraw();
  }

  /** The area under the cursor. */
  open() {
    const position = this.cursor ?? (this.view.from + this.view.to) / 2;
    this.opened(this.view.layout.areaAt(position));
  }

  /** One area and nothing else, as large as the picture. */
  only(area) {
    const layout = new Layout(this.recorded, area);
    // An area may have transactions and no cells: diffs and notices have no place in the picture.
    if (layout.cells.length === 0) return false;
    this.view = new View(layout);
    this.cursor = null;
    this.redraw();
    return true;
  }

  all() {
    if (this.view.layout.area === null) this.view.whole();
    else this.view = new View(new Layout(this.recorded));
    this.cursor = null;
    this.opened(null);
    this.redraw();
  }
}
