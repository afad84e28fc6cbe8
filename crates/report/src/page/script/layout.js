/** Untouched memory that is longer than this is left out. */
const GAP = 64 * 1024;
/** Stretches begin and end at multiples of this, so that units do not straddle bins. */
const ALIGNMENT = 4096;

/** So few stretches are apart from each other. */
const FEW = 64;

/**
 * Where addresses are in the picture: stretches of touched memory, one behind the other. A position is a number of
 * bytes from the beginning of the first.
 */
class Layout {
  /** Of all cells, or of those of one area. */
  constructor(recorded, area = null) {
    this.area = area;
    this.cells = [];
    for (let cell = 0; cell < recorded.length; cell += 1) {
      if (area === null || recorded.area[cell] === area) this.cells.push(cell);
    }
    this.stretches = [];
    for (const cell of this.cells) this.add(recorded.address[cell], recorded.end(cell));
    const room = this.room();
    let at = 0;
    for (const stretch of this.stretches) {
      stretch.at = at;
      at += stretch.end - stretch.start + room;
    }
    this.at = Float64Array.from(this.cells, (cell) => this.position(recorded.address[cell]));
    this.longest = this.cells.reduce((longest, cell) => Math.max(longest, recorded.size[cell]), 0);
    this.bands = this.banded(recorded);
  }

  add(address, end) {
    const start = Math.floor(address / ALIGNMENT) * ALIGNMENT;
    const last = this.stretches.at(-1);
    if (last && start - last.end <= GAP) {
      last.end = Math.max(last.end, Math.ceil(end / ALIGNMENT) * ALIGNMENT);
    } else {
      this.stretches.push({ start, end: Math.ceil(end / ALIGNMENT) * ALIGNMENT, at: 0 });
    }
  }

  /** How far stretches are apart: small ones would hide beside large ones. */
  room() {
    const few = this.stretches.length;
    if (few > FEW) return 0;
    const bytes = this.stretches.reduce((sum, stretch) => sum + stretch.end - stretch.start, 0);
    return Math.ceil((bytes * 0.6) / Math.max(few, 12) / ALIGNMENT) * ALIGNMENT;
  }

  /** The runs of cells of one area: `{area, from, to}`. */
  banded(recorded) {
    const bands = [];
    this.cells.forEach((cell, index) => {
      const from = this.at[index];
      const to = from + recorded.size[cell];
      const last = bands.at(-1);
      if (last?.area === recorded.area[cell]) last.to = Math.max(last.to, to);
      else bands.push({ area: recorded.area[cell], from: Math.max(from, last?.to ?? 0), to });
    });
    return bands.filter((band) => band.to > band.from);
  }

  position(address) {
    const next = firstWhere(this.stretches.length, (index) => this.stretches[index].start > address);
    const stretch = this.stretches[Math.max(0, next - 1)];
    return stretch.at + Math.min(address - stretch.start, stretch.end - stretch.start);
  }

  /** The stretch at a position, or the nearest before it. */
  stretchAt(position) {
    const next = firstWhere(this.stretches.length, (index) => this.stretches[index].at > position);
    return this.stretches[Math.max(0, next - 1)];
  }

  /** The byte at a position, or the last one before it. */
  address(position) {
    const stretch = this.stretchAt(position);
    return Math.min(stretch.start + Math.floor(position - stretch.at), stretch.end - 1);
  }

  /** Whether there is memory at a position. */
  holds(position) {
    const stretch = this.stretchAt(position);
    return position - stretch.at < stretch.end - stretch.start;
  }

  /** The area at a position, or the nearest before it. */
  areaAt(position) {
    const next = firstWhere(this.bands.length, (index) => this.bands[index].from > position);
    return this.bands[Math.max(0, next - 1)].area;
  }

  /** From the first to behind the last touched byte. */
  extent() {
    return { from: this.bands[0].from, to: this.bands.reduce((to, band) => Math.max(to, band.to), 0) };
  }
}
