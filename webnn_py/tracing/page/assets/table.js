// A table of what is in view.

const MOST_ROWS_SHOWN = 300;
let tableTimer = 0;

function toggleTable() {
  table.hidden = !table.hidden;
  document.getElementById('list').setAttribute('aria-pressed', String(!table.hidden));
  layOut();
  fillTable();
}

// Moving about changes the view many times a second; the table follows when that is over.
function tableSoon() {
  if (table.hidden) return;
  clearTimeout(tableTimer);
  tableTimer = setTimeout(fillTable, 150);
}

function tableCaption(inView, shown) {
  const more = inView > shown ? `, the first ${shown} are listed: zoom in for the others` : '';
  const [from, to] = [Math.max(timeAt(view.from), 0), Math.min(timeAt(view.to), state.trace.length)];
  return `${count(inView, 'event')} from ${moment(from)} to ${moment(to)}${more}`;
}

function fillTable() {
  if (table.hidden) {
    table.replaceChildren();
    return;
  }
  const inView = state.trace.items.filter((item) => item.end >= view.from && item.start <= view.to);
  const shown = inView.slice(0, MOST_ROWS_SHOWN);
  const head = ['at', 'took', 'event', 'operation', 'lane', 'outcome', 'source'].map((name) =>
    element('th', {scope: 'col'}, name),
  );
  table.replaceChildren(
    element(
      'table',
      {},
      element('caption', {}, tableCaption(inView.length, shown.length)),
      element('thead', {}, element('tr', {}, ...head)),
      element('tbody', {}, ...shown.map(rowOf)),
    ),
  );
}

function rowOf(item) {
  const button = element(
    'button',
    {type: 'button', className: 'plain'},
    item.object ? `${item.name}: ${item.object.name}` : caption(item),
  );
  button.addEventListener('click', () => select(item));
  const cell = (words, className = '') => element('td', {className}, words);
  const why = item.args.why ? `: ${text(item.args.why)}` : '';
  return element(
    'tr',
    {},
    cell(item.lane?.kind !== 'settlement' && item.args.before ? 'before' : moment(item.began), 'number'),
    cell(item.ended > item.began ? duration(item.ended - item.began) : '', 'number'),
    element('td', {}, button),
    cell(item.operation === undefined ? '' : String(item.operation), 'number'),
    cell(laneTitle(item), 'lane'),
    cell(`${outcome(item)}${why}`, item.bad ? 'bad' : ''),
    cell(sourceOf(item), 'source'),
  );
}
