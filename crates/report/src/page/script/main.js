/** Shows an area in the picture and what is known of it below the picture; with nothing, only the picture of all. */
function start() {
  document.documentElement.classList.add('js');
  const recorded = new Recorded(JSON.parse(document.getElementById('data').textContent));
  const table = document.getElementById('area-table');
  const details = document.getElementById('details');
  const chosen = document.getElementById('chosen');

  const open = (area) => {
    for (const row of table?.tBodies[0].rows ?? []) row.classList.toggle('current', row.dataset.area === String(area));
    // What is shown goes back to where it is without the script.
    details?.append(...(chosen?.children ?? []));
    const detail = area === null ? null : document.getElementById(`area-${area}`);
    if (detail) chosen?.append(detail);
    if (area !== null) {
      picture?.only(area);
      document.getElementById('access').scrollIntoView({ block: 'start' });
    }
  };
  const picture = recorded.length > 0 ? new Picture(recorded, open) : null;
  // Without a picture the details stay where they are, and links lead to them.
  if (!picture) {
    document.documentElement.classList.add('unpictured');
  } else {
    document.addEventListener('click', (event) => {
      const pressed = event.target.closest('[data-area]');
      if (!pressed || pressed === picture.figure) return;
      event.preventDefault();
      open(Number(pressed.dataset.area));
    });
  }
  if (table) {
    sortable(table);
    filtered(table, document.getElementById('filter'), document.getElementById('found'));
  }
  copyable();
  moments(recorded);
}

start();
