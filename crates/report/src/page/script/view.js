/** Nobody can zoom in further than to one cache line. */
const CACHE_LINE = 32;

/** The part of a layout that is seen: positions `from` to `to`. */
class View {
  constructor(layout) {
    this.layout = layout;
    this.whole();
  }

  get span() {
    return this.to - this.from;
  }

  /** Everything that was touched. */
  whole() {
    const { from, to } = this.layout.extent();
    this.show(from, to);
  }

  /** Shows these positions, as far as there is something; at least one cache line, at its own boundary. */
  show(from, to) {
    const extent = this.layout.extent();
    const longest = Math.max(CACHE_LINE, extent.to - extent.from);
    const span = Math.min(Math.max(to - from, CACHE_LINE), longest);
    if (span > longest - 1) {
      // All of it, in spite of rounding.
      this.from = extent.from;
      this.to = extent.from + longest;
      return;
    }
    let start = Math.min(Math.max(from, extent.from), extent.from + longest - span);
    if (span === CACHE_LINE) start = Math.floor(start / CACHE_LINE) * CACHE_LINE;
    this.from = start;
    this.to = start + span;
  }

  /** Zooms so that `position` stays where it is; a factor below 1 shows less. */
  zoom(factor, position = (this.from + this.to) / 2) {
    const span = Math.max(this.span * factor, CACHE_LINE);
    const from = position - ((position - this.from) / this.span) * span;
    this.show(from, from + span);
  }

  move(bytes) {
    this.show(this.from + bytes, this.to + bytes);
  }

  /** Whether there is nothing outside. */
  isWhole() {
    const extent = this.layout.extent();
    return this.from <= extent.from && this.to >= extent.to;
  }
}
