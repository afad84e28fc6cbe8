/** A bin is at least this wide in the picture, in pixels. */
const NARROWEST = 2;

/** Counts taken together for what is seen at once: bins of equal length, by series. */
class Bins {
  /** `shown` says of each series whether it counts. */
  constructor(recorded, layout, view, what, group, shown, pixels) {
    const counts = recorded.counts[what];
    const first = firstWhere(layout.cells.length, (index) => layout.at[index] > view.from - layout.longest);
    const last = firstWhere(layout.cells.length, (index) => layout.at[index] >= view.to);
    let finest = Infinity;
    for (let index = first; index < last; index += 1) {
      if (layout.at[index] + recorded.size[layout.cells[index]] > view.from) {
        finest = Math.min(finest, recorded.size[layout.cells[index]]);
      }
    }
    const wanted = ((view.to - view.from) / pixels) * NARROWEST;
    this.size = Math.max(2 ** Math.ceil(Math.log2(wanted)), finest === Infinity ? 1 : finest);
    this.start = Math.floor(view.from / this.size) * this.size;
    this.length = Math.ceil((view.to - this.start) / this.size);
    this.series = group.names.length;
    this.sums = new Float64Array(this.length * this.series);
    for (let index = first; index < last; index += 1) {
      const cell = layout.cells[index];
      const series = group.of[cell];
      if (shown[series] && counts[cell] > 0) this.spread(layout.at[index], recorded.size[cell], series, counts[cell]);
    }
  }

  /** What is counted for a unit longer than a bin is in all its bins in equal parts: nobody knows better. */
  spread(at, size, series, number) {
    const from = (at - this.start) / this.size;
    const to = from + size / this.size;
    for (let bin = Math.max(0, Math.floor(from)); bin < Math.min(this.length, to); bin += 1) {
      const part = Math.min(bin + 1, to) - Math.max(bin, from);
      this.sums[bin * this.series + series] += (number * part) / (to - from);
    }
  }

  of(bin, series) {
    return this.sums[bin * this.series + series];
  }

  total(bin) {
    let sum = 0;
    for (let series = 0; series < this.series; series += 1) sum += this.of(bin, series);
    return sum;
  }

  /** The highest bin: of all series together, or of a single one. */
  highest(together) {
    let highest = 0;
    for (let bin = 0; bin < this.length; bin += 1) {
      if (together) highest = Math.max(highest, this.total(bin));
      else for (let series = 0; series < this.series; series += 1) highest = Math.max(highest, this.of(bin, series));
    }
    return highest;
  }
}
