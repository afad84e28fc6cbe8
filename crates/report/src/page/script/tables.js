/** Makes the columns of a table sort it. */
function sortable(table) {
  const body = table.tBodies[0];
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    if (header.classList.contains('unsorted')) return;
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...header.childNodes);
    header.append(button);
    const words = header.classList.contains('text');
    button.addEventListener('click', () => {
      const ascending = header.hasAttribute('aria-sort') ? header.getAttribute('aria-sort') !== 'ascending' : words;
      for (const other of headers) other.removeAttribute('aria-sort');
      header.setAttribute('aria-sort', ascending ? 'ascending' : 'descending');
      const value = (row) => (words ? row.cells[column].textContent.trim() : Number(row.cells[column].dataset.value));
      const order = (one, other) => (words ? one.localeCompare(other) : one - other);
      const rows = [...body.rows].map((row) => [value(row), row]);
      rows.sort(([one], [other]) => (ascending ? order(one, other) : order(other, one)));
      body.append(...rows.map(([, row]) => row));
    });
  });
}

/** Shows only the rows that have all words of the filter. */
function filtered(table, input, found) {
  const rows = [...table.tBodies[0].rows].map((row) => [row, row.textContent.toLowerCase()]);
  input.addEventListener('input', () => {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word);
    let shown = 0;
    for (const [row, text] of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    found.textContent = words.length > 0 ? `${shown} of ${rows.length}` : '';
  });
}

/** Lets the buttons beside plans copy them. */
function copyable() {
  for (const button of document.querySelectorAll('.copy')) {
    const plan = button.parentElement.querySelector('pre');
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(plan.textContent);
        button.textContent = 'Copied';
      } catch {
        // Not every browser lets a page from a file do that.
        getSelection().selectAllChildren(plan);
        button.textContent = 'Press Ctrl+C';
      }
    });
  }
}
