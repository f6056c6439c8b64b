// The page: reads the trace, fills in the heading, connects buttons, draws.

const KEY_WORDS = [
  ['wheel, pinch, +, −, W, S', 'zoom'],
  ['drag, Shift+wheel, A, D, ←, →', 'move'],
  ['wheel over names, ↑, ↓, Page Up, Page Down', 'scroll'],
  ['0', 'the whole trace'],
  ['Home, End', 'its beginning, its end'],
  ['click, Enter', 'select; on a group’s name: fold it; on ×12: zoom to these'],
  ['double click, F', 'zoom to what is selected, from call to settlement'],
  ['←, →', 'the event before or after the selected one in its lane'],
  ['↑, ↓', 'what belongs to the selected one in the next lane'],
  ['Tab, Shift+Tab', 'the event after or before the selected one in time'],
  ['Escape', 'select nothing'],
  ['G', 'fold or unfold the group of the selected one'],
  ['/', 'search: words, or #17 for an operation'],
  ['n, N', 'next, previous match'],
  ['E', 'squeeze long stretches, or show time to scale'],
  ['T', 'table of what is in view'],
  ['?', 'this'],
];

function openHelp() {
  const list = element('div', {className: 'keys'});
  for (const [keys, words] of KEY_WORDS) {
    const each = keys.split(', ').flatMap((key) => [element('kbd', {}, key), ' ']);
    list.append(element('span', {}, ...each), element('span', {}, words));
  }
  const about = Object.entries(state.about)
    .map(([name, value]) => `${name}: ${text(value)}`)
    .join(', ');
  showHelp('Keys and signs', list, ...legend().slice(1), element('p', {className: 'hint'}, about));
}

function showTheme() {
  readPalette();
  state.overview = null;
  showDetails();
}

function summarize(source) {
  const {trace} = state;
  const kinds = {};
  for (const item of trace.items) {
    kinds[item.kind] = (kinds[item.kind] ?? 0) + 1;
    if (item.bad) kinds[item.bad] = (kinds[item.bad] ?? 0) + 1;
  }
  const contexts = trace.groups.filter(({pid}) => pid !== 0).length;
  const parts = [
    `${duration(trace.length)}`,
    count(contexts, 'context'),
    count(kinds.call ?? 0, 'call'),
    count(kinds.operation ?? 0, 'operation'),
  ];
  if (kinds.kernel) parts.push(count(kinds.kernel, 'kernel'));
  parts.push(count(kinds.buffer ?? 0, 'buffer'));
  const bad = ['rejected', 'refused', 'failed', 'dropped', 'lost']
    .filter((kind) => kinds[kind])
    .map((kind) => `${kinds[kind].toLocaleString('en')} ${kind}`);
  const line = document.getElementById('summary');
  line.replaceChildren(parts.join(', '));
  if (bad.length) line.append(', ', element('b', {}, bad.join(', ')));
  if (source.otherData?.cut) line.append(', ', element('b', {}, text(source.otherData.cut)));
  canvas.setAttribute('aria-label', `Timeline: ${line.textContent}`);
}

function save() {
  const blob = new Blob([document.getElementById('data').textContent], {type: 'application/json'});
  const link = element('a', {href: URL.createObjectURL(blob), download: 'trace.json'});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function connect() {
  canvas.addEventListener('pointerleave', () => {
    state.hovered = null;
    showTip(null);
    requestDrawing();
  });
  canvas.addEventListener('dblclick', () => state.selected && zoomTo(state.selected));
  stage.addEventListener('scroll', requestDrawing);
  listeners.push(tableSoon);
  connectControls({in: () => zoom(0.7), out: () => zoom(1 / 0.7), save, squeeze: toggleAxis}, layOut);
}

function openPage() {
  const source = JSON.parse(document.getElementById('data').textContent);
  state.trace = readTrace(source);
  state.about = source.otherData ?? {};
  prepareAxis(state.trace);
  summarize(source);
  connect();
  showFound();
  layOut();
  [view.from, view.to] = wholeTrace();
  draw();
  globalThis.timeline = {state, view, axis, select, show, placeOf}; // for the console, and for tests
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

openPage();
