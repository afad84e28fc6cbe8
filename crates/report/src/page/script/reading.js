/** What is at a position, in words: where that is, whose it is, and who has fetched it how often. */
function reading(scene, position) {
  const { recorded, view, bins, group, what } = scene;
  if (!view.layout.holds(position)) return 'memory that nobody touched';
  const bin = Math.floor((position - bins.start) / bins.size);
  if (bin < 0 || bin >= bins.length) return '';
  // A bin may reach over both ends of a stretch; what is said is about the stretch under the cursor.
  const stretch = view.layout.stretchAt(position);
  const from = view.layout.address(Math.max(bins.start + bin * bins.size, stretch.at));
  const to = Math.min(from + bins.size, stretch.end);
  const area = view.layout.areaAt(position);
  const lines = [`${recorded.place(view.layout.address(position), area)} in ${shortened(recorded.areaName(area), 80)}`];
  lines.push(`${hex(from)} and ${amount(to - from)} on`);
  const name = recorded.nameWithin(from, to, area);
  if (name) lines.push(shortened(name, 120));
  const counted = group.names.map((name, series) => ({ name, number: bins.of(bin, series) })).filter(({ number }) => number > 0);
  counted.sort((one, other) => other.number - one.number);
  for (const { name, number } of counted.slice(0, 6)) lines.push(`${name}: ${inWords(what, number)}`);
  if (counted.length > 6) lines.push(`and ${counted.length - 6} more`);
  if (counted.length === 0) lines.push(`no ${what}`);
  return lines.join('\n');
}

function inWords(what, number) {
  if (what === 'bytes') return `${amount(number)} moved`;
  const one = { fetches: 'fetch', reads: 'read', writes: 'write' }[what];
  return `${count(number)} ${number === 1 ? one : what}`;
}
