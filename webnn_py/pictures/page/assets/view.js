// What is in view, what is selected, found and hovered.

const view = {x: 0, y: 0, scale: 1, width: 0, height: 0};
const state = {
  selected: null,
  previous: null, // what was selected before
  hovered: null,
  matches: [],
  matching: new Set(),
  match: -1,
  lit: new Set(),
  drawn: {boxes: 0, texts: 0, ways: 0, milliseconds: 0},
};
const LARGEST = 4;
const READABLE = 0.55; // the scale at which text can just be read

const smallest = () => Math.min(1, 0.9 * Math.min(view.width / data.width, view.height / data.height));

// Keep a part of the graph in view, whatever is asked for.
function show(x, y, scale) {
  view.scale = Math.min(Math.max(scale, smallest()), LARGEST);
  const roomX = view.width / view.scale;
  const roomY = view.height / view.scale;
  view.x = Math.min(Math.max(x, -roomX * 0.8), data.width - roomX * 0.2);
  view.y = Math.min(Math.max(y, -roomY * 0.8), data.height - roomY * 0.2);
  requestDrawing();
}

function zoom(factor, x = view.width / 2, y = view.height / 2) {
  const [worldX, worldY] = [view.x + x / view.scale, view.y + y / view.scale];
  const scale = Math.min(Math.max(view.scale * factor, smallest()), LARGEST);
  show(worldX - x / scale, worldY - y / scale, scale);
}

const move = (x, y) => show(view.x + x / view.scale, view.y + y / view.scale, view.scale);

function fit() {
  const scale = Math.min(1.5, 0.96 * Math.min(view.width / data.width, view.height / data.height));
  show((data.width - view.width / scale) / 2, (data.height - view.height / scale) / 2, scale);
}

// At first all of it, or, where text could not be read then, the inputs.
function begin() {
  fit();
  if (view.scale >= READABLE) return;
  const scale = Math.min(1, Math.max(READABLE, view.width / data.width));
  const [first] = boxes;
  show(first.x + first.width / 2 - view.width / scale / 2, first.y - 20 / scale, scale);
}

function isInView({x, y, width, height}) {
  return (
    x < view.x + view.width / view.scale &&
    x + width > view.x &&
    y < view.y + view.height / view.scale &&
    y + height > view.y
  );
}

// Bring boxes into view; the scale stays if text can be read at it.
function reveal(item) {
  const [box] = boxesOf(item);
  if (!box) return;
  const scale = Math.max(view.scale, READABLE);
  const margin = 30 / scale;
  const inner = {x: box.x - margin, y: box.y - margin, width: box.width + 2 * margin, height: box.height + 2 * margin};
  const isWhole =
    scale === view.scale &&
    inner.x >= view.x &&
    inner.y >= view.y &&
    inner.x + inner.width <= view.x + view.width / scale &&
    inner.y + inner.height <= view.y + view.height / scale;
  if (!isWhole)
    show(
      box.x + box.width / 2 - view.width / scale / 2,
      box.y + box.height / 2 - view.height / scale / 2,
      scale,
    );
}

function resize() {
  fillStage();
  requestDrawing();
}
