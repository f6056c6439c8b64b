// What is selected, in words: facts, why it went wrong, what belongs to it; and the hint beside the pointer.

const tip = document.getElementById('tip');
const MOST_MARKS = 200;

function select(item, {isRevealed = true, isToldOf = true} = {}) {
  state.selected = item;
  if (item && isRevealed) reveal(item);
  showDetails();
  if (isToldOf) live.textContent = item ? sentence(item) : 'Nothing is selected.';
  requestDrawing();
}

function showDetails() {
  const item = state.selected;
  const before = panel.offsetHeight;
  panel.replaceChildren(...(item ? detailsOf(item) : legend()));
  panel.classList.toggle('empty', !item);
  panel.scrollTop = 0;
  if (panel.offsetHeight !== before && view.width) layOut(); // the stage beside it is another size
}

function detailsOf(item) {
  const close = element(
    'button',
    {type: 'button', className: 'close', title: 'Close (Escape)', 'aria-label': 'Close details'},
    '×',
  );
  close.addEventListener('click', () => {
    select(null);
    canvas.focus();
  });
  const parts = [close, element('h2', {}, caption(item)), element('p', {className: 'where'}, laneTitle(item))];
  if (item.args.why) parts.push(element('p', {className: item.bad ? 'why' : 'hint'}, text(item.args.why)));
  parts.push(facts(item));
  if (item.kind === 'buffer' || item.kind === 'graph') parts.push(...history(item));
  else parts.push(...chain(item));
  return parts;
}

function facts(item) {
  const list = element('dl');
  const add = (term, ...values) => list.append(element('dt', {}, term), element('dd', {}, ...values));
  const source = sourceOf(item);
  if (source) add('source', element('span', {className: 'source'}, source));
  const became = outcome(item);
  if (became) add('outcome', item.bad ? element('b', {className: 'bad'}, became) : became);
  if (item.operation !== undefined) add('operation', String(item.operation));
  const isObject = item.kind === 'buffer' || item.kind === 'graph';
  add(isObject ? 'created' : 'at', isObject && item.args.before ? 'before the trace began' : moment(item.began));
  if (isObject) add('released', item.isOpen ? 'not within the trace' : moment(item.ended));
  if (item.ended > item.began) add(isObject ? 'lived' : 'took', duration(item.ended - item.began));
  if (item.args.enqueued !== undefined) add('waited', duration(item.began - item.args.enqueued));
  const size = item.args.bytes;
  if (size > 0) add('bytes', bytes(size));
  if (size > 0 && item.ended > item.began && !isObject)
    add('rate', `${plainNumber(size / (item.ended - item.began) / 1000, 3)} GB/s`);
  for (const which of ['buffers', 'reads', 'writes', 'graph']) {
    const named = objectsOf(state.trace, item, which);
    if (named.length) add(which, ...named.map((one) => objectButton(one)));
  }
  if (item.args.begun !== undefined) add('begun', `${moment(item.args.begun)}, before its turn`);
  if (item.args.measured !== undefined) add('measured', duration(item.args.measured));
  if (Array.isArray(item.args.operators)) add('operators', item.args.operators.map(text).join(', '));
  const told = [
    'source',
    'why',
    'operation',
    'enqueued',
    'bytes',
    'buffers',
    'reads',
    'writes',
    'graph',
    'operators',
    'outcome',
    'promise',
    'before',
    'cause',
    'begun',
    'measured',
  ];
  for (const [name, value] of Object.entries(item.args)) if (!told.includes(name)) add(name, text(value));
  return list;
}

function objectButton(one) {
  const button = element('button', {type: 'button', className: 'plain', disabled: !one.object}, objectName(one));
  if (one.object) button.addEventListener('click', () => select(one.object));
  return button;
}

// What belongs to an operation in the order of time, with the waits between.
function chain(item) {
  const parts = state.trace.operations.get(item.operation);
  const cause = item.args.cause === undefined ? null : state.trace.operations.get(item.args.cause);
  const shown = [];
  if (cause?.call.length) {
    shown.push(
      element('h3', {}, 'rejected by'),
      steps(cause.call, item),
      element('p', {className: 'source'}, sourceOf(cause.call[0])),
    );
  }
  if (!parts) return shown;
  const whole = [...parts.call, ...parts.operation, ...parts.settlement].sort((a, b) => a.began - b.began);
  if (whole.length > 1 || whole[0] !== item)
    shown.push(element('h3', {}, 'from call to settlement'), steps(whole, item));
  if (parts.caused.length) shown.push(element('h3', {}, 'what it rejected'), steps(parts.caused, item));
  if (parts.kernel.length) shown.push(element('h3', {}, `kernels: ${parts.kernel.length}`), steps(parts.kernel, item));
  if (parts.marks.length) shown.push(element('h3', {}, 'buffers and graphs'), steps(parts.marks, item));
  return shown;
}

const history = (item) => [element('h3', {}, 'history'), steps(item.marks, item)];

function steps(items, current) {
  const list = element('ol', {className: 'chain'});
  for (const item of items.slice(0, MOST_MARKS)) {
    const wait = item.kind === 'operation' ? item.began - item.args.enqueued : 0;
    if (wait > 0) list.append(element('li', {className: 'pause'}, `waited ${duration(wait)}`));
    const words =
      item.kind === 'mark' && current.kind !== 'buffer' && current.kind !== 'graph'
        ? `${item.name}: ${item.object.name}`
        : item.kind === 'mark'
          ? markWords(item)
          : caption(item);
    const button = element(
      'button',
      {type: 'button'},
      element(
        'span',
        {className: item.bad ? 'bad' : ''},
        words,
        item.bad && !item.name.startsWith('reject') ? ` (${item.bad})` : '',
      ),
      element('small', {}, item.ended > item.began ? duration(item.ended - item.began) : moment(item.began)),
    );
    if (item === current) button.setAttribute('aria-current', 'true');
    button.addEventListener('click', () => select(item));
    list.append(element('li', {}, button));
  }
  if (items.length > MOST_MARKS)
    list.append(element('li', {className: 'pause'}, `and ${count(items.length - MOST_MARKS, 'more', 'more')}`));
  return list;
}

// What a mark was made in: the operation on the device if it lies within it, else the call.
function doerOf(mark) {
  const parts = state.trace.operations.get(mark.operation);
  const lies = (item) => mark.began >= item.began - ROUNDING && mark.began <= item.ended + ROUNDING;
  return parts && (parts.operation.find(lies) ?? parts.call.find(lies) ?? parts.operation[0] ?? parts.call[0]);
}

// A mark in a buffer's history says by what.
function markWords(mark) {
  const by = doerOf(mark);
  return by ? `${mark.name} by ${by.name} ${mark.operation}` : mark.name;
}

const FAMILY_WORDS = {
  write: 'write, copy',
  dispatch: 'dispatch',
  read: 'read',
  build: 'build; graphs',
  create: 'create',
  free: 'destroy, release',
  kernel: 'kernel',
  buffer: 'buffer, from creation to release',
};
const SIGN_WORDS = {
  rejected: 'promise rejected',
  refused: 'call refused',
  dropped: 'operation dropped, never run',
  failed: 'operation failed',
  lost: 'context lost',
  built: 'graph built',
  dispatched: 'graph dispatched',
  allocated: 'buffer allocated',
  written: 'buffer written',
  read: 'buffer read',
  destroyed: 'buffer destroyed',
  released: 'buffer released',
};

const HINT = [
  'Point at something to see what it is, click to keep it here.',
  'Arrows go from a call to its operation on the device and on to the settlement of its promise;',
  'thin bars above an operation are its wait. ×12 is twelve that are too narrow to tell apart: zoom in.',
].join(' ');

function legend() {
  const signs = element('div', {className: 'signs'});
  const sample = (paint, words) => {
    const small = element('canvas', {width: 68, height: 40, 'aria-hidden': 'true'});
    const c = small.getContext('2d');
    c.scale(2, 2);
    paint(c);
    signs.append(small, element('span', {}, words));
  };
  for (const [family, words] of Object.entries(FAMILY_WORDS)) {
    sample((c) => {
      c.fillStyle = palette.families[family].fill;
      c.strokeStyle = palette.families[family].line;
      c.fillRect(1, 3, 32, 14);
      c.strokeRect(1.5, 3.5, 31, 13);
    }, words);
  }
  for (const [sign, words] of Object.entries(SIGN_WORDS)) {
    sample((c) => SIGNS[sign](c, 17, 10, 12, palette.families[MARK_FAMILIES[sign] ?? 'other'].line), words);
  }
  sample((c) => slants(c, palette.families.free.line), 'destroyed, not released yet');
  sample((c) => slants(c, palette.bad), 'failed, rejected or refused');
  return [element('h2', {}, 'What you see'), element('p', {className: 'hint'}, HINT), signs];
}

function slants(c, colour) {
  c.strokeStyle = colour;
  c.strokeRect(1.5, 3.5, 31, 13);
  c.beginPath();
  for (let x = 1; x < 24; x += 7) {
    c.moveTo(x, 17);
    c.lineTo(x + 10, 3);
  }
  c.stroke();
}

function showTip(hit, x, y) {
  if (!hit || hit.item.lanes) {
    tip.hidden = true;
    return;
  }
  tip.replaceChildren(...(hit.run ? tipOfRun(hit.run) : tipOf(hit.item)));
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 6))}px`;
  tip.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18}px`;
}

function tipOf(shown) {
  const item = shown.target ?? shown;
  const line = (words, className = '') => (words ? [element('span', {className}, words)] : []);
  const isObject = item.kind === 'buffer' || item.kind === 'graph';
  const times = [
    item.ended > item.began ? `${isObject ? 'lived' : 'took'} ${duration(item.ended - item.began)}` : '',
    `at ${moment(item.began)}`,
  ];
  if (item.args.enqueued !== undefined) times.push(`waited ${duration(item.began - item.args.enqueued)}`);
  return [
    element('b', {}, caption(item)),
    ...line(laneTitle(item)),
    ...line(item.operation === undefined ? '' : `operation ${item.operation}`),
    ...line(times.filter(Boolean).join(', ')),
    ...line(item.bad ? `${outcome(item)}${item.args.why ? `: ${text(item.args.why)}` : ''}` : '', 'bad'),
    ...line(item.args.bytes > 0 ? bytes(item.args.bytes) : ''),
    ...line(sourceOf(item)),
  ];
}

function tipOfRun({items, first, last}) {
  const tally = new Map();
  let time = 0;
  for (let at = first; at < last; at += 1) {
    const item = items[at];
    const words = item.bad ? `${item.name} (${item.bad})` : item.name;
    tally.set(words, (tally.get(words) ?? 0) + 1);
    time += item.ended - item.began;
  }
  const most = [...tally].sort((a, b) => b[1] - a[1]);
  const lines = most
    .slice(0, 6)
    .map(([words, times]) => element('span', {}, `${times.toLocaleString('en')} × ${words}`));
  if (most.length > 6) lines.push(element('span', {}, `and ${most.length - 6} other names`));
  return [
    element('b', {}, `${count(last - first, 'event')}, too narrow to tell apart here`),
    ...lines,
    element('span', {}, `together ${duration(time)}, from ${moment(items[first].began)}`),
    element('span', {}, 'click to zoom in'),
  ];
}
