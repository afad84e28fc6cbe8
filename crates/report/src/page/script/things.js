/** What is where: the variables and blocks of areas, and what they are made of. */
class Things {
  constructor(json, areas) {
    const { things } = json;
    this.names = json.names;
    this.layouts = json.layouts;
    this.start = new Float64Array(things.start.length);
    let start = 0;
    for (let thing = 0; thing < this.start.length; thing += 1) {
      start += things.start[thing];
      this.start[thing] = start;
    }
    this.rows = things;
    /** The first row of each area, and behind the last area the count of rows. */
    this.first = Array.from({ length: areas + 1 }, (_, area) => firstWhere(this.start.length, (thing) => things.area[thing] >= area));
  }

  /** The bytes between two addresses of an area by name: the first one and the last one, if they are different things. */
  between(from, to, area) {
    const first = this.from(from, area);
    const last = this.upTo(to - 1, area);
    if (!first || !last || first.address > last.address) return '';
    const [one, other] = [this.name(first), this.name(last)];
    return one === other ? one : `${one}..${other}`;
  }

  /** The first byte of a thing at an address or behind it. */
  from(address, area) {
    const row = this.row(address, area);
    if (row >= 0) {
      const found = this.inRow(row, address);
      if (address < found.start + this.rows.bytes[row]) return found;
      if (found.index + 1 < this.rows.count[row]) return this.at(row, found.index + 1);
    }
    const next = row >= 0 ? row + 1 : this.first[area];
    return next < this.first[area + 1] ? this.at(next, 0) : undefined;
  }

  /** The last byte of a thing at an address or before it. */
  upTo(address, area) {
    const row = this.row(address, area);
    if (row < 0) return undefined;
    const found = this.inRow(row, address);
    return { ...found, address: Math.min(address, found.start + this.rows.bytes[row] - 1) };
  }

  /** The row of the last thing of an area that begins at an address or before it; -1 if there is none. */
  row(address, area) {
    const [first, end] = [this.first[area], this.first[area + 1]];
    if (!(first < end)) return -1;
    const before = firstWhere(end - first, (index) => this.start[first + index] > address);
    return before > 0 ? first + before - 1 : -1;
  }

  /** An address in the thing of a row that begins there or is the last one before it. */
  inRow(row, address) {
    const step = this.rows.step[row];
    const far = step > 0 ? Math.floor((address - this.start[row]) / step) : 0;
    return { ...this.at(row, Math.min(far, this.rows.count[row] - 1)), address };
  }

  /** The first byte of a thing by its place in its row. */
  at(row, index) {
    const start = this.start[row] + index * this.rows.step[row];
    return { row, index, start, address: start };
  }

  /** What one writes for a byte of a thing; the same for all bytes of a part. */
  name({ row, start, address }) {
    return this.names[this.rows.name[row]] + this.part(this.rows.of[row], address - start);
  }

  /** What one writes behind the name of a thing for the part of it at an offset. */
  part(of, offset) {
    let text = '';
    // Types of damaged files may contain themselves.
    for (let step = 0; step < 64; step += 1) {
      const layout = this.layouts[of];
      const inner = !layout ? undefined : layout.members ? member(layout, offset) : element(layout, offset);
      if (!inner) break;
      text += inner.text;
      ({ of, offset } = inner);
    }
    return text;
  }
}

/** The member at an offset into a struct. */
function member({ members }, offset) {
  const found = members.find(([, start, bytes]) => offset >= start && (bytes === null || offset < start + bytes));
  return found && { text: found[0], of: found[3], offset: offset - found[1] };
}

/** The element at an offset into an array. */
function element({ element: of, bytes, counts }, offset) {
  let number = Math.floor(offset / bytes);
  const indices = [];
  for (const length of [...counts].reverse()) {
    // Of 0 elements there is no end.
    indices.unshift(length === 0 ? number : number % length);
    number = length === 0 ? 0 : Math.floor(number / length);
  }
  if (number > 0) return undefined;
  return { text: indices.map((index) => `[${index}]`).join(''), of, offset: offset % bytes };
}
