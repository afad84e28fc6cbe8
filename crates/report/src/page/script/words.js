/** Numbers and addresses as people read them. */
const grouped = new Intl.NumberFormat('en');
const rounded = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });

/** A number of things; one that is spread over several places need not be whole. */
function count(number) {
  return Number.isInteger(number) ? grouped.format(number) : rounded.format(number);
}

/** An amount of memory. */
function amount(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${Number.isInteger(bytes) ? bytes : rounded.format(bytes)} ${units[unit]}`;
}

function hex(number) {
  return `0x${number.toString(16)}`;
}

/** A text that is not longer than so many characters: its end is left out. */
function shortened(text, most) {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join('')}…` : text;
}

/** The first index at which `is` holds, of indices for which it does not hold and then does. */
function firstWhere(length, is) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (is(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
