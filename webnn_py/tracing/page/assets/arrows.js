// Arrows: from a call to its operation on the device, from there to the settlement, from a cause to what it rejected.

const MOST_ARROWED = 40; // operations; where more are in view only those that are hovered or selected have arrows

function drawArrows(c) {
  const strong = new Set([state.hovered, state.selected].filter(Boolean).map((item) => item.operation));
  const weak = operationsInView();
  const isFew = weak.size <= MOST_ARROWED;
  if (isFew) for (const id of weak) if (!strong.has(id)) drawOperation(c, id, false);
  for (const id of strong) if (id !== undefined) drawOperation(c, id, true);
}

function operationsInView() {
  const seen = new Set();
  for (const {item, run} of state.hits) {
    if (run && seen.size <= MOST_ARROWED)
      for (let at = run.first; at < Math.min(run.last, run.first + 50); at += 1) seen.add(run.items[at].operation);
    else seen.add(item.operation);
  }
  seen.delete(undefined);
  return seen;
}

function drawOperation(c, id, isStrong) {
  const parts = state.trace.operations.get(id);
  if (!parts) return;
  const [call] = parts.call;
  for (const operation of parts.operation) {
    if (call)
      drawArrow(c, call, enqueuedIn(call, operation), operation, operation.start, {isStrong, isBad: operation.bad});
    for (const settlement of parts.settlement.filter(({kind}) => kind === 'settlement')) {
      drawArrow(c, operation, operation.end, settlement, settlement.start, {isStrong, isBad: settlement.bad});
    }
  }
  const rejections = parts.settlement.filter(({kind}) => kind === 'rejection');
  for (const rejection of isStrong ? [...parts.caused, ...rejections] : rejections) {
    const [cause] = state.trace.operations.get(rejection.args.cause)?.call ?? [];
    if (cause)
      drawArrow(c, cause, Math.min(rejection.start, cause.end), rejection, rejection.start, {isStrong, isBad: true});
    const [rejected] = state.trace.operations.get(rejection.operation)?.call ?? [];
    if (rejected && isStrong) drawArrow(c, rejected, rejected.end, rejection, rejection.start, {isStrong, isBad: true});
  }
  if (!isStrong) return;
  for (const mark of parts.marks) {
    const from = doerOf(mark);
    if (from)
      drawArrow(c, from, Math.min(Math.max(mark.start, from.start), from.end), mark, mark.start, {
        isStrong,
        isThin: true,
      });
  }
}

// Within the call: when its operation was enqueued.
function enqueuedIn(call, operation) {
  const time = operation.args.enqueued;
  return time === undefined ? call.start : Math.min(Math.max(toPlace(time), call.start), call.end);
}

function drawArrow(c, from, leaving, to, arriving, {isStrong, isBad = false, isThin = false}) {
  const start = placeOf(from);
  const end = placeOf(to);
  if (start.isHidden || end.isHidden) return;
  const isDown = end.y > start.y;
  const x1 = toX(leaving);
  const x2 = toX(arriving);
  const y1 = isDown ? start.y + start.height - 2 : start.y + 2;
  const inset = to.kind === 'rejection' || to.bad === 'dropped' ? end.height * 0.22 : 1;
  const y2 = isThin ? end.y + end.height * 0.5 : isDown ? end.y + inset : end.y + end.height - inset;
  if (Math.max(x1, x2) < view.gutter || Math.min(x1, x2) > view.width) return;
  const ease = Math.min(Math.max(Math.abs(y2 - y1) * 0.5, 14), 90) * (isDown ? 1 : -1);
  c.strokeStyle = isBad ? palette.bad : isStrong ? palette.accent : palette.arrow;
  c.fillStyle = c.strokeStyle;
  c.lineWidth = isThin ? 1 : isStrong ? 2 : 1.2;
  c.setLineDash(isBad ? [5, 3] : isThin ? [2, 3] : []);
  c.beginPath();
  c.moveTo(x1, y1);
  c.bezierCurveTo(x1, y1 + ease, x2, y2 - ease, x2, y2);
  c.stroke();
  c.setLineDash([]);
  const size = isStrong ? 6 : 4.5;
  c.beginPath();
  c.moveTo(x2, y2);
  c.lineTo(x2 - size * 0.7, y2 - Math.sign(ease) * size * 1.3);
  c.lineTo(x2 + size * 0.7, y2 - Math.sign(ease) * size * 1.3);
  c.fill();
  state.drawn.arrows += 1;
}

function drawOutlines(c) {
  const related = state.selected ? relatives(state.selected).slice(0, 400) : [];
  for (const item of related) if (item.kind !== 'mark') outline(c, item, palette.accent, 1.5);
  if (state.matches.length) {
    for (const {item, run, left, right, top, bottom} of state.hits) {
      if (!run && state.matching.has(item)) outline(c, item, palette.found, 3);
      if (!run || !hasMatch(run)) continue;
      c.strokeStyle = palette.found;
      c.lineWidth = 3;
      c.strokeRect(left + 1, top, right - left - 2, bottom - top);
    }
  }
  if (state.hovered) outline(c, state.hovered, palette.ink, 1.5);
  if (state.selected) outline(c, state.selected, palette.accent, 3);
}

function hasMatch({items, first, last}) {
  for (let at = first; at < last; at += 1) if (state.matching.has(items[at])) return true;
  return false;
}

function outline(c, item, colour, width) {
  const place = placeOf(item);
  if (place.isHidden) return;
  c.strokeStyle = colour;
  c.lineWidth = width;
  const wide = Math.max(place.width, 1);
  const extra = Math.max(0, (footprint(item) > 1 || item.kind === 'mark' || item.bad ? 18 : 8) - wide) / 2;
  const isMark = item.kind === 'mark';
  const left = Math.max(place.x - extra, view.gutter - 10) - 1;
  const right = Math.min(place.x + wide + extra, view.width + 10) + 1;
  const top = isMark ? place.y + place.height * 0.5 : place.y;
  c.strokeRect(left, top, right - left, isMark ? place.height * 0.46 : place.height);
}
