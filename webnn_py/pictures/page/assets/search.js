// Search, and the table of the operators or of what was found.

const MOST_ROWS = 1000;

// Every word is to be found in the name, label, shape, attributes or kernel; #17 is an operator's number.
const searchedItems = () => items;

function goToMatch(way) {
  const {length} = state.matches;
  if (!length) return;
  state.match = state.match < 0 ? (way > 0 ? 0 : length - 1) : (state.match + way + length) % length;
  showFound();
  select(state.matches[state.match]);
}

function toggleTable() {
  table.hidden = !table.hidden;
  document.getElementById('list').setAttribute('aria-pressed', String(!table.hidden));
  if (!table.hidden) fillTable();
  resize();
}

function fillTable() {
  const isSearching = searchBox.value.trim() !== '';
  const all = isSearching ? state.matches : boxes.filter((box) => box.operator >= 0);
  const head = ['what', 'data type, shape', 'on the device'].map((words) => element('th', {scope: 'col'}, words));
  const rows = all.slice(0, MOST_ROWS).map((item) => {
    const operator = item.type === 'box' ? operatorOf(item) : null;
    const number = operator ? `#${item.operator + 1} ` : '';
    const types = operator ? operator.results.map(typeOf).join(', ') : item.type === 'kernel' ? '' : typeOf(item.value ?? item.index);
    const fate = operator ? operator.fate : item.type === 'kernel' ? item.name : '';
    const cells = [link(item, `${number}${nameOf(item)}`), types, fate].map((cell) => element('td', {}, cell));
    return element('tr', {}, ...cells);
  });
  const left = all.length - rows.length;
  const what = isSearching ? `${count(all.length, 'match', 'matches')}` : count(all.length, 'operator');
  const caption = element('caption', {}, left > 0 ? `${what}; the first ${rows.length.toLocaleString('en')}: search for the others` : what);
  table.replaceChildren(element('table', {}, caption, element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...rows)));
}
