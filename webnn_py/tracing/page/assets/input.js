// Pointer, fingers, wheel and keys.

const pointers = new Map();
const slack = (event) => (event.pointerType === 'touch' ? 10 : 4); // pixels that a click may move
let drag = null;

function hitAt(x, y) {
  if (y < HEAD * view.unit) return null;
  for (let at = state.hits.length - 1; at >= 0; at -= 1) {
    const hit = state.hits[at];
    if (x >= hit.left && x <= hit.right && y >= hit.top && y <= hit.bottom && (hit.item.lanes || x >= view.gutter))
      return hit;
  }
  return null;
}

function pointerDown(event) {
  if (event.button > 0) return;
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, {x: event.offsetX, y: event.offsetY});
  const isOverview = event.offsetY < OVERVIEW * view.unit;
  drag = {distance: 0, isOverview, isPinch: pointers.size > 1};
  if (isOverview) moveOverview(event.offsetX);
  showTip(null);
}

function pointerMove(event) {
  const before = pointers.get(event.pointerId);
  if (!before) {
    hover(event);
    return;
  }
  const now = {x: event.offsetX, y: event.offsetY};
  if (pointers.size === 2) pinch(event.pointerId, before, now);
  else if (drag.isOverview) moveOverview(now.x);
  else {
    drag.distance += Math.hypot(now.x - before.x, now.y - before.y);
    if (drag.distance > slack(event)) {
      canvas.classList.add('moving');
      move(before.x - now.x);
      stage.scrollTop += before.y - now.y;
    }
  }
  pointers.set(event.pointerId, now);
}

// Both fingers stay on the times that they lie on.
function pinch(moved, before, now) {
  drag.isPinch = true;
  const [other] = [...pointers].filter(([id]) => id !== moved).map(([, place]) => place);
  const apart = Math.max(Math.abs(now.x - other.x), 12);
  const apartBefore = Math.max(Math.abs(before.x - other.x), 12);
  zoom(apartBefore / apart, other.x);
}

function moveOverview(x) {
  const [first, last] = wholeTrace();
  const middle = first + ((x - view.gutter) / (view.width - view.gutter)) * (last - first);
  const half = (view.to - view.from) / 2;
  show(middle - half, middle + half);
}

function pointerUp(event) {
  const wasClick =
    pointers.delete(event.pointerId) && drag && drag.distance <= slack(event) && !drag.isOverview && !drag.isPinch;
  canvas.classList.remove('moving');
  if (wasClick && event.type === 'pointerup') click(event);
}

function click(event) {
  const hit = hitAt(event.offsetX, event.offsetY);
  if (!hit) select(null, {isRevealed: false});
  else if (hit.item.lanes) {
    hit.item.isFolded = !hit.item.isFolded;
    layOut();
  } else if (hit.run) {
    const {items, first, last} = hit.run;
    const from = items[first].start;
    const to = Math.max(
      ...items.slice(first, Math.min(last, first + 5000)).map((item) => item.end),
      items[last - 1].end,
    );
    show(from - (to - from) * 0.1, to + (to - from) * 0.1 + NARROWEST);
  } else select(hit.item.target ?? hit.item, {isRevealed: false});
}

function hover(event) {
  const hit = hitAt(event.offsetX, event.offsetY);
  const item = hit && !hit.run && !hit.item.lanes ? (hit.item.target ?? hit.item) : null;
  canvas.classList.toggle('over', Boolean(hit));
  if (item !== state.hovered) {
    state.hovered = item;
    requestDrawing();
  }
  showTip(hit, event.clientX, event.clientY);
}

function wheel(event) {
  const pixels = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? view.height : 1;
  const across = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
  const isName = event.offsetX < view.gutter && !event.ctrlKey;
  if (isName) return; // over the names of lanes the wheel scrolls
  event.preventDefault();
  showTip(null);
  if (Math.abs(across) > Math.abs(event.deltaY) || event.shiftKey) move(across * pixels);
  else zoom(1.0016 ** (event.deltaY * pixels * (event.ctrlKey ? 6 : 1)), event.offsetX);
}

// The neighbour of an item in its lane, or the nearest in time in another lane.
function neighbour(item, key) {
  const bar = item.object ?? item;
  const {items} = bar.lane;
  if (item.kind === 'mark' && (key === 'ArrowLeft' || key === 'ArrowRight')) {
    return item.object.marks[item.object.marks.indexOf(item) + (key === 'ArrowLeft' ? -1 : 1)] ?? item;
  }
  if (key === 'ArrowLeft' || key === 'ArrowRight')
    return items[items.indexOf(bar) + (key === 'ArrowLeft' ? -1 : 1)] ?? item;
  const lanes = state.trace.groups.flatMap((group) => group.lanes).filter((lane) => lane.kind !== 'waiting');
  const lane = lanes[lanes.indexOf(bar.lane) + (key === 'ArrowUp' ? -1 : 1)];
  if (!lane) return item;
  const related = new Set(relatives(item));
  const distance = (other) => Math.abs(other.start - item.start) - (related.has(other) ? 1e12 : 0);
  return lane.items.reduce((best, other) => (distance(other) < distance(best) ? other : best));
}

function firstInView() {
  return state.trace.items.find((item) => item.start >= view.from) ?? state.trace.items[0] ?? null;
}

// Keys of the picture itself; true if there was something to do.
function walk(event) {
  const {key} = event;
  const item = state.selected;
  if (key === 'Enter') select(item ?? firstInView());
  else if (key.startsWith('Arrow') && item) select(neighbour(item, key));
  else if (key === 'Tab' && item) {
    const other = state.trace.items[item.place + (event.shiftKey ? -1 : 1)];
    if (!other) return false;
    select(other);
  } else if (key === 'ArrowLeft' || key === 'ArrowRight') move((key === 'ArrowLeft' ? -0.12 : 0.12) * view.width);
  else if (key === 'ArrowUp' || key === 'ArrowDown') stage.scrollTop += key === 'ArrowUp' ? -60 : 60;
  else return false;
  return true;
}

// Fold or unfold the group of what is selected; with nothing selected unfold all.
function fold() {
  const {selected} = state;
  if (selected) {
    const {group} = (selected.object ?? selected).lane;
    group.isFolded = !group.isFolded;
  } else for (const group of state.trace.groups) group.isFolded = false;
  layOut();
}

const KEYS = {
  w: () => zoom(0.7),
  '+': () => zoom(0.7),
  '=': () => zoom(0.7),
  s: () => zoom(1 / 0.7),
  '-': () => zoom(1 / 0.7),
  a: () => move(-0.12 * view.width),
  d: () => move(0.12 * view.width),
  0: fit,
  n: () => goToMatch(1),
  N: () => goToMatch(-1),
  f: () => state.selected && zoomTo(state.selected),
  t: toggleTable,
  g: fold,
  e: toggleAxis,
  '/': () => searchBox.focus(),
  '?': openHelp,
  Home: () => show(wholeTrace()[0], wholeTrace()[0] + view.to - view.from),
  End: () => show(wholeTrace()[1] - (view.to - view.from), wholeTrace()[1]),
  PageUp: () => {
    stage.scrollTop -= view.height * 0.8;
  },
  PageDown: () => {
    stage.scrollTop += view.height * 0.8;
  },
};
