// The picture: overview, ruler, lanes, what is lost, arrows, what is selected.

function draw() {
  const began = performance.now();
  const c = canvas.getContext('2d');
  const ratio = globalThis.devicePixelRatio || 1;
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.fillStyle = palette.paper;
  c.fillRect(0, 0, view.width, view.height);
  state.hits = [];
  Object.assign(state.drawn, {boxes: 0, merged: 0, marks: 0, arrows: 0});
  const step = tickStep();
  drawGrid(c, step);
  drawLanes(c);
  c.save();
  c.beginPath();
  c.rect(view.gutter, HEAD * view.unit, view.width - view.gutter, view.height);
  c.clip();
  drawLosses(c);
  drawArrows(c);
  drawOutlines(c);
  c.restore();
  drawNames(c);
  drawRuler(c, step);
  drawOverview(c);
  state.drawn.frames += 1;
  state.drawn.milliseconds = performance.now() - began;
}

// So many microseconds from tick to tick that labels have room.
function tickStep() {
  const least = (90 * view.letters) / scale();
  if (axis.isSqueezed) return least * 1.2;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least);
}

function eachTick(step, use) {
  const last = Math.floor(view.to / step);
  for (let index = Math.max(0, Math.ceil(view.from / step)); index <= last; index += 1)
    use(index * step, toX(index * step));
}

function drawGrid(c, step) {
  for (const group of state.trace.groups) {
    c.fillStyle = palette.panel;
    c.fillRect(0, toY(group.y), view.width, (GROUP_HEAD - 2) * view.unit);
    if (group.isFolded) continue;
    for (const lane of group.lanes) {
      if (lane.kind === 'waiting') continue;
      c.fillStyle = palette.lane;
      const waiting = group.lanes.find((other) => other.kind === 'waiting' && lane.kind === 'operation');
      const top = waiting ? waiting.y : lane.y;
      c.fillRect(0, toY(top) - 2, view.width, lane.y + lane.height - top + 4);
    }
  }
  c.strokeStyle = palette.line;
  c.lineWidth = 1;
  c.beginPath();
  eachTick(step, (_, x) => {
    if (x < view.gutter) return;
    c.moveTo(Math.round(x) + 0.5, HEAD * view.unit);
    c.lineTo(Math.round(x) + 0.5, view.height);
  });
  c.stroke();
}

const PAINTERS = {
  waiting: [paintWait, paintWaitRun],
  buffer: [paintObject, paintRun],
  graph: [paintObject, paintRun],
};

function drawLanes(c) {
  c.save();
  c.beginPath();
  c.rect(view.gutter, HEAD * view.unit, view.width - view.gutter, view.height);
  c.clip();
  for (const group of state.trace.groups) {
    if (group.isFolded) continue;
    for (const lane of group.lanes) {
      const [paint, run] = PAINTERS[lane.kind] ?? [paintBox, paintRun];
      lane.rows.forEach((row, index) => {
        const y = toY(lane.y + lane.head + index * lane.rowHeight);
        if (y + lane.rowHeight > 0 && y < view.height) drawRow(c, row, y, lane.rowHeight, paint, run);
      });
    }
  }
  c.restore();
}

function drawLosses(c) {
  for (const loss of state.trace.losses) {
    const {group} = loss.lane;
    const x = toX(loss.start);
    const last = group.lanes[group.lanes.length - 1];
    c.strokeStyle = loss.bad ? palette.bad : palette.families[loss.family].line;
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(x, toY(group.y));
    c.lineTo(x, group.isFolded ? toY(group.y + GROUP_HEAD * view.unit) : toY(last.y + last.height));
    c.stroke();
  }
}

// Names of groups across the width, of lanes beside them or, where it is narrow, above them.
function drawNames(c) {
  c.textBaseline = 'middle';
  for (const group of state.trace.groups) {
    const y = toY(group.y);
    const height = (GROUP_HEAD - 2) * view.unit;
    c.font = font(13, '600');
    const words = `${group.isFolded ? '▸' : '▾'} ${group.name}`;
    const shown = fitting(c, words, view.width - 12);
    c.fillStyle = palette.panel;
    c.fillRect(3, y + height / 2 - 9 * view.letters, widthOf(c, shown) + 8, 18 * view.letters);
    c.fillStyle = palette.ink;
    c.fillText(shown, 6, y + height / 2 + 0.5);
    drawAbout(c, group, 6 + widthOf(c, shown) + 14, y + height / 2 + 0.5);
    addHit(0, y, view.width, height, group);
    if (group.isFolded) continue;
    for (const lane of group.lanes) drawLaneName(c, lane);
  }
  c.strokeStyle = palette.line;
  c.lineWidth = 1;
  if (!view.gutter) return;
  c.beginPath();
  c.moveTo(view.gutter - 0.5, HEAD * view.unit);
  c.lineTo(view.gutter - 0.5, view.height);
  c.stroke();
}

// What else metadata say of a group: its backend and adapter.
function drawAbout(c, group, x, y) {
  const about = ['backend', 'adapter'].filter((name) => group.about[name]).map((name) => text(group.about[name]));
  const lanes = group.isFolded
    ? [
        count(
          group.lanes.reduce((sum, lane) => sum + lane.items.length, 0),
          'event',
        ),
      ]
    : [];
  c.font = font(12);
  const words = fitting(c, [...about, ...lanes].join(', '), view.width - x - 8);
  c.fillStyle = palette.panel; // arrows pass behind the words
  c.fillRect(x - 3, y - 8 * view.letters, widthOf(c, words) + 6, 16 * view.letters);
  c.fillStyle = palette.muted;
  c.fillText(words, x, y);
}

function drawLaneName(c, lane) {
  // The name of a tall lane stays in view.
  const y = Math.min(Math.max(toY(lane.y), HEAD * view.unit), toY(lane.y + lane.height) - lane.rowHeight);
  c.font = font(12);
  c.fillStyle = palette.muted;
  if (!view.gutter) {
    if (lane.kind !== 'waiting') c.fillText(fitting(c, lane.name, view.width - 12), 6, y + lane.head / 2);
    return;
  }
  c.fillStyle = lane.kind === 'waiting' ? palette.muted : palette.ink;
  const height = Math.min(lane.height, lane.rowHeight);
  const middle = lane.kind === 'waiting' ? y + lane.height / 2 : y + height / 2;
  if (lane.height >= 9) c.fillText(fitting(c, lane.name, view.gutter - 16), 10, middle + 0.5);
}

function drawRuler(c, step) {
  const top = OVERVIEW * view.unit;
  c.fillStyle = palette.paper;
  c.fillRect(0, 0, view.width, HEAD * view.unit);
  c.strokeStyle = palette.line;
  c.beginPath();
  c.moveTo(0, HEAD * view.unit - 0.5);
  c.lineTo(view.width, HEAD * view.unit - 0.5);
  c.stroke();
  c.font = font(11.5);
  c.textBaseline = 'middle';
  c.fillStyle = palette.muted;
  const [unit, size] = unitFor(view.to);
  const digits = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
  eachTick(step, (time, x) => {
    if (x < view.gutter - 1) return;
    c.fillRect(Math.round(x), top + RULER * view.unit * 0.7, 1, RULER * view.unit * 0.3);
    const words = axis.isSqueezed ? moment(Math.max(timeAt(time), 0)) : `${(time / size).toFixed(digits)} ${unit}`;
    c.fillText(words, x + 3, top + (RULER * view.unit) / 2);
  });
  if (view.gutter)
    c.fillText(
      fitting(c, axis.isSqueezed ? 'time, squeezed' : 'time', view.gutter - 14),
      10,
      top + (RULER * view.unit) / 2,
    );
}

// The whole trace in one strip: how much there is where, in red what went wrong, and a frame around what is in view.
function drawOverview(c) {
  const height = OVERVIEW * view.unit;
  state.overview ??= overview(Math.ceil(view.width - view.gutter));
  const {amounts, most, bad} = state.overview;
  c.fillStyle = palette.panel;
  c.fillRect(0, 0, view.width, height);
  const base = height - 3;
  c.fillStyle = palette.arrow;
  amounts.forEach((amount, x) => {
    const tall = amount ? 2 + (Math.log1p(amount) / Math.log1p(most)) * (base - 6) : 0;
    if (tall) c.fillRect(view.gutter + x, base - tall, 1.5, tall);
  });
  c.fillStyle = palette.bad;
  for (const x of bad) c.fillRect(view.gutter + x - 1, 1, 2.5, base - 2);
  const [first, last] = wholeTrace();
  const by = (view.width - view.gutter) / (last - first);
  const left = view.gutter + (view.from - first) * by;
  const right = view.gutter + (view.to - first) * by;
  c.fillStyle = palette.paper;
  c.globalAlpha = 0.62;
  c.fillRect(view.gutter, 0, left - view.gutter, height);
  c.fillRect(right, 0, view.width - right, height);
  c.globalAlpha = 1;
  c.strokeStyle = palette.accent;
  c.lineWidth = 1.5;
  c.strokeRect(left + 1, 1, Math.max(right - left - 2, 2), height - 2);
  if (!view.gutter) return;
  c.fillStyle = palette.muted;
  c.font = font(11.5);
  c.textBaseline = 'middle';
  c.fillText('whole trace', 10, height / 2);
}

// How many things are under way in each pixel of the whole trace.
function overview(width) {
  const [first, last] = wholeTrace();
  const by = width / (last - first);
  const steps = new Float64Array(width + 1);
  const bad = new Set();
  for (const item of state.trace.items) {
    if (item.kind === 'buffer' || item.kind === 'graph' || item.kind === 'mark') continue;
    const left = Math.floor((item.start - first) * by);
    steps[left] += 1;
    steps[Math.min(Math.floor((item.end - first) * by) + 1, width)] -= 1;
    if (item.bad) bad.add(left);
  }
  let under = 0;
  const amounts = Array.from({length: width}, (_, x) => {
    under += steps[x];
    return under;
  });
  return {amounts, most: Math.max(1, ...amounts), bad: [...bad]};
}
