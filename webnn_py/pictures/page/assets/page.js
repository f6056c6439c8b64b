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
  showHelp('Keys', facts(KEY_WORDS));
}

const showTheme = readPalette;

document.getElementById('summary').textContent = data.summary.join('; ');
canvas.setAttribute('aria-label', `Graph: ${data.summary.join('; ')}`);
connectControls({in: () => zoom(1.35), out: () => zoom(1 / 1.35)}, resize);
showFound();
resize();
begin();
select(null);
draw();
globalThis.graphPage = {data, boxes, weights, kernels, frames, state, view, select, search}; // for the console, and for tests
document.documentElement.dataset.ready = String(Math.round(performance.now()));
