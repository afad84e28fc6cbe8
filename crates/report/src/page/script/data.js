/** What the recording has counted: the cells in columns, and the names of areas, nodes and threads. */
class Recorded {
  constructor(json) {
    const { cells } = json;
    this.nodes = json.nodes;
    this.areas = json.areas;
    this.things = new Things(json, this.areas.length);
    this.slots = json.slots;
    this.length = cells.step.length;
    // Addresses have at most 48 bits: numbers of JavaScript hold them exactly.
    this.address = new Float64Array(this.length);
    let address = 0;
    for (let cell = 0; cell < this.length; cell += 1) {
      address += cells.step[cell];
      this.address[cell] = address;
    }
    this.size = Float64Array.from(cells.unit, (unit) => 2 ** unit);
    this.area = Uint32Array.from(cells.area);
    this.node = Uint16Array.from(cells.node);
    this.thread = Uint32Array.from(cells.thread);
    this.counts = {
      reads: Float64Array.from(cells.reads),
      writes: Float64Array.from(cells.writes),
      bytes: Float64Array.from(cells.bytes),
    };
    this.counts.fetches = this.counts.reads.map((reads, cell) => reads + this.counts.writes[cell]);
    this.groups = { node: this.byNode(), thread: this.byThread(json.threads) };
  }

  end(cell) {
    return this.address[cell] + this.size[cell];
  }

  areaName(area) {
    return this.areas[area]?.name ?? 'other memory';
  }

  byNode() {
    const several = new Set(this.nodes).size > 1;
    const host = (node) => (several && this.nodes[node] ? ` (${shortened(this.nodes[node], 30)})` : '');
    const group = grouping(this.node, (node) => `node ${node}${host(node)}`);
    // As in the tables, also if some node did nothing.
    return { ...group, colours: group.keys };
  }

  byThread(threads) {
    const known = new Map(threads.map((thread) => [thread.number, thread]));
    return grouping(this.thread, (plusOne) => {
      if (plusOne === 0) return 'no thread';
      const thread = known.get(plusOne - 1);
      const where = thread ? ` on node ${thread.node}` : '';
      return `thread ${plusOne - 1}${where}${thread?.routine ? ` (${shortened(thread.routine, 40)})` : ''}`;
    });
  }

  /** An address as people write it: the area and how far into it, `grid+0x40`. */
  place(address, area, most = Infinity) {
    const ranges = this.areas[area]?.ranges ?? [];
    const after = firstWhere(ranges.length / 2, (index) => ranges[2 * index] > address);
    const start = ranges[2 * after - 2];
    if (after === 0 || address >= start + ranges[2 * after - 1]) return hex(address);
    const block = ranges.length > 2 ? `[${after - 1}]` : '';
    return `${shortened(this.areaName(area), most)}${block}+${hex(address - start)}`;
  }

  /** What the bytes of an area between two addresses are called, if that is more than the name of the area. */
  nameWithin(from, to, area) {
    const name = this.things.between(from, to, area);
    return name === this.areaName(area) ? '' : name;
  }
}

/** Which cells belong to whom: for each cell the index of its series, and the names of the series. */
function grouping(keys, name) {
  const wanted = [...new Set(keys)].sort((one, other) => one - other);
  const series = new Map(wanted.map((key, index) => [key, index]));
  return {
    of: Uint32Array.from(keys, (key) => series.get(key)),
    keys: wanted,
    names: wanted.map(name),
    colours: wanted.map((_, index) => index),
  };
}
