/** Says what happened at the moment under the pointer. */
function moments(recorded) {
  const lines = document.getElementById('lines');
  const said = document.getElementById('moment');
  if (!lines || recorded.slots.length === 0) return;
  const { end } = recorded.slots.at(-1);
  [...lines.querySelectorAll('svg')].forEach((line, node) => {
    line.addEventListener('pointermove', (event) => {
      const { left, width } = line.getBoundingClientRect();
      const time = ((event.clientX - left) / width) * end;
      const slot = recorded.slots.find((one) => time < one.end) ?? recorded.slots.at(-1);
      const [reads, writes, diffs] = slot.nodes[node] ?? [0, 0, 0];
      said.textContent = `${slot.begin.toFixed(2)} s to ${slot.end.toFixed(2)} s, node ${node}: ${count(reads)} reads, `
        + `${count(writes)} writes, ${count(diffs)} diffs`;
    });
  });
}
