// What is in view: the times from edge to edge, where lanes lie, and what is hovered, selected or found.

const spacer = document.getElementById('spacer');

const view = {from: 0, to: 1, width: 0, height: 0, gutter: 0, unit: 1, letters: 1, contentHeight: 0};
const state = {
  trace: null,
  about: {},
  hovered: null,
  selected: null,
  matches: [],
  matching: new Set(),
  match: -1,
  hits: [],
  drawn: {boxes: 0, merged: 0, marks: 0, arrows: 0, frames: 0, milliseconds: 0},
};

const OVERVIEW = 26;
const RULER = 22;
const HEAD = OVERVIEW + RULER;
const NARROWEST = 0.02; // microseconds from edge to edge
const ROW_HEIGHTS = {waiting: 9, call: 24, operation: 26, settlement: 24, kernel: 22, graph: 34, buffer: 34, loss: 22};
const GROUP_HEAD = 24;
const BETWEEN = 8;

const scale = () => (view.width - view.gutter) / (view.to - view.from);
const toX = (time) => view.gutter + (time - view.from) * scale();
const toTime = (x) => view.from + (x - view.gutter) / scale();
const toY = (y) => y - stage.scrollTop + HEAD * view.unit;

// The margins at both ends keep the first and the last label readable.
function wholeTrace() {
  const {end} = state.trace;
  const length = Math.max(end, 1);
  return [-length * 0.015, length * 1.05];
}

function show(from, to) {
  const [first, last] = wholeTrace();
  const length = Math.min(Math.max(to - from, NARROWEST), last - first);
  view.from = Math.min(Math.max(from, first), last - length);
  view.to = view.from + length;
  changed();
}

const fit = () => show(...wholeTrace());

function zoom(factor, x = (view.width + view.gutter) / 2) {
  const time = toTime(x);
  show(time - (time - view.from) * factor, time + (view.to - time) * factor);
}

function move(pixels) {
  const by = pixels / scale();
  show(view.from + by, view.to + by);
}

// Bring an item into view, keeping the magnification while that shows it.
function reveal(item) {
  const group = item.lane ? item.lane.group : item.object.lane.group;
  if (group.isFolded) {
    group.isFolded = false;
    layOut();
  }
  const length = view.to - view.from;
  const middle = (item.start + item.end) / 2;
  const tooLong = item.end - item.start > length;
  const isHidden = item.end < view.from + length * 0.03 || item.start > view.to - length * 0.03;
  if (isHidden)
    show(
      (tooLong ? item.start + length * 0.4 : middle) - length / 2,
      (tooLong ? item.start + length * 0.4 : middle) + length / 2,
    );
  const place = placeOf(item);
  const least = HEAD * view.unit;
  if (place.y < least) stage.scrollTop -= least - place.y + 20;
  else if (place.y + place.height > view.height) stage.scrollTop += place.y + place.height - view.height + 20;
}

// Zoom so that an item and what belongs to it fill most of the width.
function zoomTo(item) {
  const all = relatives(item);
  const from = Math.min(...all.map((one) => one.start));
  const to = Math.max(...all.map((one) => one.end));
  const margin = Math.max((to - from) * 0.15, 0.2);
  show(from - margin, to + margin);
  reveal(item);
}

// Where lanes lie, from the size of the stage; rows grow a little where there is room.
function layOut() {
  fillStage();
  view.gutter = view.width >= 620 ? Math.min(Math.max(view.width * 0.1, 128), 240) : 0;
  const large = view.width >= 1700 ? 1.25 : 1;
  view.letters = large;
  view.unit = large;
  const natural = placeLanes();
  const room = (view.height - HEAD * large) / Math.max(natural, 1);
  view.unit = large * Math.min(Math.max(room, 1), 1.6);
  view.contentHeight = placeLanes();
  spacer.style.height = `${Math.max(0, view.contentHeight + HEAD * view.unit - view.height)}px`;
  state.overview = null;
  requestDrawing();
}

function placeLanes() {
  let y = 0;
  for (const group of state.trace.groups) {
    group.y = y;
    y += GROUP_HEAD * view.unit;
    if (!group.isFolded) {
      for (const lane of group.lanes) {
        lane.y = y;
        lane.head = view.gutter ? 0 : 15 * view.unit;
        lane.rowHeight = (ROW_HEIGHTS[lane.kind] ?? 22) * view.unit;
        lane.height = lane.head + lane.rows.length * lane.rowHeight;
        y += lane.height + (lane.kind === 'waiting' ? 2 : BETWEEN) * view.unit;
      }
    }
    y += BETWEEN * view.unit;
  }
  return y;
}

// Where an item is drawn.
function placeOf(item) {
  const bar = item.object ?? item;
  const {lane} = bar;
  const left = toX(item.start);
  return {
    x: left,
    width: toX(item.end) - left,
    y: toY(lane.y + lane.head + bar.row * lane.rowHeight),
    height: lane.rowHeight,
    isHidden: lane.group.isFolded,
  };
}

const listeners = [];

// The times in view are others.
function changed() {
  requestDrawing();
  for (const listener of listeners) listener();
}
