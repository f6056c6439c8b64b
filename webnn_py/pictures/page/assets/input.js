// Pointer, fingers, wheel and keys.

const pointers = new Map();
let drag = null;
const slack = (event) => (event.pointerType === 'touch' ? 10 : 4); // pixels that a click may move

function pointerDown(event) {
  if (event.button > 0) return;
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, {x: event.offsetX, y: event.offsetY});
  drag = {distance: 0, isPinch: pointers.size > 1};
}

function pointerMove(event) {
  const before = pointers.get(event.pointerId);
  const now = {x: event.offsetX, y: event.offsetY};
  if (!before) {
    hover(now);
    return;
  }
  if (pointers.size === 2) pinch(event.pointerId, before, now);
  else {
    drag.distance += Math.hypot(now.x - before.x, now.y - before.y);
    if (drag.distance > slack(event)) {
      canvas.classList.add('moving');
      move(before.x - now.x, before.y - now.y);
    }
  }
  pointers.set(event.pointerId, now);
}

function pinch(moved, before, now) {
  drag.isPinch = true;
  const [other] = [...pointers].filter(([id]) => id !== moved).map(([, place]) => place);
  const apart = (place) => Math.max(Math.hypot(place.x - other.x, place.y - other.y), 12);
  zoom(apart(now) / apart(before), other.x, other.y);
}

function pointerUp(event) {
  const wasClick = pointers.delete(event.pointerId) && drag && drag.distance <= slack(event) && !drag.isPinch;
  canvas.classList.remove('moving');
  if (wasClick && event.type === 'pointerup') select(itemAt(event.offsetX, event.offsetY), {isRevealed: false});
}

function hover({x, y}) {
  const item = itemAt(x, y);
  canvas.classList.toggle('over', item !== null);
  if (item === state.hovered) return;
  state.hovered = item;
  requestDrawing();
}

function wheel(event) {
  event.preventDefault();
  const pixels = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? view.height : 1;
  if (event.shiftKey) move((event.deltaX || event.deltaY) * pixels, 0);
  else zoom(1.0016 ** (-event.deltaY * pixels * (event.ctrlKey ? 6 : 1)), event.offsetX, event.offsetY);
}

// The box to which an arrow leads: down to a reader, up to a source, back to where it came from, or the nearest;
// sideways in reading order.
function neighbour(box, key) {
  if (key === 'ArrowDown' || key === 'ArrowUp') {
    const away = (other) => Math.abs(other.x + other.width / 2 - box.x - box.width / 2);
    const next = key === 'ArrowDown' ? box.readers : box.sources;
    if (next.includes(state.previous)) return state.previous;
    return next.length ? next.reduce((best, other) => (away(other) < away(best) ? other : best)) : box;
  }
  return inOrder[inOrder.indexOf(box) + (key === 'ArrowLeft' ? -1 : 1)] ?? box;
}
const inOrder = [...boxes].sort((a, b) => a.y - b.y || a.x - b.x);

const firstInView = () => inOrder.find((box) => isInView(box)) ?? inOrder[0];

const KEYS = {
  '+': () => zoom(1.35),
  '=': () => zoom(1.35),
  '-': () => zoom(1 / 1.35),
  0: fit,
  n: () => goToMatch(1),
  N: () => goToMatch(-1),
  f: () => state.selected && reveal(state.selected),
  t: toggleTable,
  '/': () => searchBox.focus(),
  '?': openHelp,
  Home: () => show(view.x, -20, view.scale),
  End: () => show(view.x, data.height - view.height / view.scale + 20, view.scale),
  PageUp: () => move(0, -view.height * 0.8),
  PageDown: () => move(0, view.height * 0.8),
};
const ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};

// Keys of the picture itself; true if there was something to do.
function walk(event) {
  const {key} = event;
  const {selected} = state;
  if (key === 'Enter') select(selected ?? firstInView());
  else if (key in ARROWS && selected && !event.shiftKey) {
    const [box] = boxesOf(selected);
    select(selected.type === 'box' ? neighbour(box, key) : box);
  } else if (key in ARROWS) move(...ARROWS[key].map((way) => way * 80));
  else return false;
  return true;
}
