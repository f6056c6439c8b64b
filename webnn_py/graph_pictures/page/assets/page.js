// The page: fills in the heading, connects buttons, draws.

const KEY_WORDS = [
  ['Enter', 'select the first operator in view'],
  ['↓, ↑', 'what reads its result, where its operand comes from'],
  ['←, →', 'the operator before, after it'],
  ['Shift + arrows, drag, Page Up, Page Down, Home, End', 'move'],
  ['+, −, wheel, pinch', 'zoom'],
  ['0', 'the whole graph'],
  ['F', 'bring what is selected into view'],
  ['/', 'search: words, or #17 for an operator'],
  ['n, N', 'next, previous match'],
  ['T', 'table of the operators, or of what was found'],
  ['Tab', 'on to the details and the table, where all that is named is a button'],
  ['Escape', 'select nothing; leave the search'],
];

function openHelp() {
  const dialog = document.getElementById('keys');
  const close = element('button', {type: 'button', className: 'close', 'aria-label': 'Close help'}, '×');
  close.addEventListener('click', () => dialog.close());
  dialog.replaceChildren(close, element('h2', {}, 'Keys'), facts(KEY_WORDS));
  dialog.showModal();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
  readPalette();
  requestDrawing();
}

function connect() {
  const buttons = {
    in: () => zoom(1.35),
    out: () => zoom(1 / 1.35),
    fit,
    list: toggleTable,
    help: openHelp,
    next: () => goToMatch(1),
    previous: () => goToMatch(-1),
    theme: () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'),
  };
  for (const [id, act] of Object.entries(buttons)) document.getElementById(id).addEventListener('click', act);
  searchBox.addEventListener('input', () => search(searchBox.value));
  canvas.addEventListener('pointerdown', pointerDown);
  canvas.addEventListener('pointermove', pointerMove);
  for (const name of ['pointerup', 'pointercancel']) canvas.addEventListener(name, pointerUp);
  canvas.addEventListener('wheel', wheel, {passive: false});
  document.addEventListener('keydown', keyDown);
  new ResizeObserver(resize).observe(stage);
  const preference = matchMedia('(prefers-color-scheme: dark)');
  preference.addEventListener('change', () => setTheme(preference.matches ? 'dark' : 'light'));
  setTheme(preference.matches ? 'dark' : 'light');
}

document.getElementById('summary').textContent = data.summary.join('; ');
canvas.setAttribute('aria-label', `Graph: ${data.summary.join('; ')}`);
connect();
showFound();
resize();
begin();
select(null);
draw();
globalThis.graphPage = {data, boxes, weights, kernels, frames, state, view, select, search}; // for the console, and for tests
document.documentElement.dataset.ready = String(Math.round(performance.now()));
