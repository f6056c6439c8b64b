// The picture: frames, wires and boxes that are in view; text where it can be read.

const KINDS = ['operator', 'input', 'output', 'folded', 'view', 'kernel'];
const TEXT = 0.3; // the scale from which on there is text
const FONT = 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace';
let palette = {};

function readPalette() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  palette = Object.fromEntries(
    ['paper', 'ink', 'muted', 'accent', 'found', 'wire', 'wire-lit', 'kernel-ink'].map((name) => [name, colour(name)]),
  );
  for (const kind of KINDS) palette[kind] = {fill: colour(`${kind}-fill`), line: colour(`${kind}-line`)};
}

function draw() {
  const began = performance.now();
  const c = canvas.getContext('2d');
  const ratio = globalThis.devicePixelRatio || 1;
  Object.assign(state.drawn, {boxes: 0, texts: 0, ways: 0});
  c.setTransform(1, 0, 0, 1, 0, 0);
  c.fillStyle = palette.paper;
  c.fillRect(0, 0, canvas.width, canvas.height);
  const scale = view.scale * ratio;
  c.setTransform(scale, 0, 0, scale, -view.x * scale, -view.y * scale);
  const hasText = view.scale >= TEXT;
  const framesInView = frames.filter(isInView);
  for (const frame of framesInView) drawFrame(c, frame);
  drawWays(c, data.ways, palette.wire, 1.3);
  if (state.lit.size) drawWays(c, state.lit, palette['wire-lit'], 2.6);
  if (hasText) for (const frame of framesInView) writeTitle(c, frame);
  const about = new Set(state.selected ? boxesOf(state.selected) : []);
  for (const box of boxes) if (isInView(box)) drawBox(c, box, hasText, about);
  state.drawn.milliseconds = performance.now() - began;
}

function drawFrame(c, frame) {
  c.fillStyle = palette.kernel.fill;
  c.strokeStyle = palette.kernel.line;
  c.lineWidth = 1;
  rounded(c, frame, 6);
  c.fill();
  c.stroke();
}

// Wires that enter the frame do not cross its title.
function writeTitle(c, frame) {
  c.strokeStyle = palette.kernel.fill;
  c.lineWidth = 4;
  c.font = `10px ${FONT}`;
  c.strokeText(frame.title, frame.x + 10, frame.y + 12);
  write(c, frame.title, frame.x + 10, frame.y + 12, palette['kernel-ink'], 10);
}

// Each piece is straight down to a turn, and then a curve.
function drawWays(c, ways, colour, width) {
  c.strokeStyle = colour;
  c.fillStyle = colour;
  c.lineWidth = Math.max(width, 0.6 / view.scale);
  const heads = view.scale >= TEXT / 2;
  c.beginPath();
  for (const way of ways) {
    const [x, y, turn, endX, endY] = way;
    const left = Math.min(x, endX);
    if (!isInView({x: left - 1, y, width: Math.abs(endX - x) + 2, height: endY - y})) continue;
    state.drawn.ways += 1;
    const middle = (turn + endY) / 2;
    c.moveTo(x, y);
    c.lineTo(x, turn);
    c.bezierCurveTo(x, middle, endX, middle, endX, endY);
    if (way[5] && heads) {
      c.moveTo(endX, endY);
      c.lineTo(endX - 3.5, endY - 7);
      c.moveTo(endX, endY);
      c.lineTo(endX + 3.5, endY - 7);
    }
  }
  c.stroke();
}

function drawBox(c, box, hasText, about) {
  state.drawn.boxes += 1;
  const {fill, line} = palette[box.kind];
  const isAbout = about.has(box);
  c.fillStyle = fill;
  c.strokeStyle = isAbout ? palette.accent : box === state.hovered ? palette.ink : line;
  c.lineWidth = isAbout ? Math.max(3, 2 / view.scale) : 1;
  c.setLineDash(isAbout ? [] : box.kind === 'folded' ? [5, 3] : box.kind === 'view' ? [2, 3] : []);
  rounded(c, box, box.kind === 'input' || box.kind === 'output' ? 12 : 3);
  c.fill();
  c.stroke();
  c.setLineDash([]);
  if (state.matching.has(box)) {
    c.strokeStyle = palette.found;
    c.lineWidth = Math.max(4, 3 / view.scale);
    rounded(c, {x: box.x - 4, y: box.y - 4, width: box.width + 8, height: box.height + 8}, 6);
    c.stroke();
  }
  if (!hasText) return;
  state.drawn.texts += 1;
  write(c, box.title, box.x + 8, box.y + 18, palette.ink, 12);
  box.lines.forEach((text, number) => {
    const weight = weights.get(box.marks[number]);
    const isLit = weight && (weight === state.selected || state.matching.has(weight));
    write(c, text, box.x + 8, lineY(box, number), isLit || weight ? palette.accent : palette.muted, 10, isLit);
  });
  c.textAlign = 'center';
  for (const [x, text] of box.outs) write(c, text, box.x + x, box.y + box.height + 13, palette.muted, 10);
  c.textAlign = 'left';
}

const lineY = (box, number) => box.y + 18 + (number + 1) * 15;

function rounded(c, {x, y, width, height}, radius) {
  c.beginPath();
  c.roundRect(x, y, width, height, radius);
}

function write(c, text, x, y, colour, size, isBold = false) {
  c.font = `${isBold ? 'bold ' : ''}${size}px ${FONT}`;
  c.fillStyle = colour;
  c.fillText(text, x, y);
}

// What lies at a place of the canvas: the weight on a box's line, the box, or the kernel whose frame it is.
function itemAt(x, y) {
  const [worldX, worldY] = [view.x + x / view.scale, view.y + y / view.scale];
  const isAt = (thing) =>
    worldX >= thing.x && worldX <= thing.x + thing.width && worldY >= thing.y && worldY <= thing.y + thing.height;
  const box = boxes.find(isAt);
  if (box) {
    if (view.scale < TEXT) return box;
    const number = box.lines.findIndex((_, index) => worldY > lineY(box, index) - 11 && worldY <= lineY(box, index) + 4);
    return weights.get(box.marks[number]) ?? box;
  }
  const frame = frames.find(isAt);
  return frame ? kernels[frame.kernels[0]] : null;
}
