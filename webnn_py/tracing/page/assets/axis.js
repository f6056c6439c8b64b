// The axis of time: to scale, or with long stretches squeezed, so that what is short shows beside what is long.

const axis = {isSqueezed: false, times: null, places: null};
const MOST_EVEN = 0.75; // of the time: if so few stretches take more of it, little is seen to scale
const FEW = 0.05;
const SHORTEST = 0.2; // of what a common stretch takes, however short a stretch is

// The times at which anything begins or ends, in order, once each.
function timesOf(trace) {
  const sorted = new Float64Array(trace.items.length * 2 + 1);
  trace.items.forEach(({began, ended}, index) => {
    sorted[index * 2] = began;
    sorted[index * 2 + 1] = ended;
  });
  sorted.sort();
  return sorted.filter((time, index) => index === 0 || time > sorted[index - 1]);
}

function prepareAxis(trace) {
  axis.times = timesOf(trace);
  const gaps = axis.times
    .subarray(1)
    .map((time, index) => time - axis.times[index])
    .sort();
  const common = gaps.length ? gaps[gaps.length >> 1] : 1;
  axis.places = new Float64Array(axis.times.length);
  for (let index = 1; index < axis.times.length; index += 1) {
    const gap = axis.times[index] - axis.times[index - 1];
    axis.places[index] = axis.places[index - 1] + SHORTEST + Math.log1p(gap / common);
  }
  const few = gaps.subarray(-Math.max(3, Math.ceil(gaps.length * FEW)));
  const isUneven = gaps.length > 20 && few.reduce((sum, gap) => sum + gap, 0) > MOST_EVEN * trace.length;
  setAxis(trace, isUneven);
}

// Where a time lies on the axis, and what time a place on the axis is.
const toPlace = (time) => (axis.isSqueezed ? between(axis.times, axis.places, time) : time);
const timeAt = (place) => (axis.isSqueezed ? between(axis.places, axis.times, place) : place);

function between(from, to, value) {
  if (from.length < 2) return value;
  const next = Math.min(Math.max(firstAtLeast(from, value), 1), from.length - 1);
  const share = (value - from[next - 1]) / (from[next] - from[next - 1]);
  return to[next - 1] + share * (to[next] - to[next - 1]);
}

// Put all items on the axis; their order stays as it is.
function setAxis(trace, isSqueezed) {
  document.getElementById('squeeze').setAttribute('aria-pressed', String(isSqueezed));
  if (isSqueezed === axis.isSqueezed) return;
  axis.isSqueezed = isSqueezed;
  const put = (item) => {
    item.start = toPlace(item.began);
    item.end = toPlace(item.ended);
  };
  trace.items.forEach(put);
  trace.end = toPlace(trace.length);
  for (const lane of trace.lanes.values()) {
    if (lane.kind === 'waiting') lane.items.forEach(put);
    for (const row of lane.rows) reachOf(row);
  }
}

function toggleAxis() {
  const times = [timeAt(view.from), timeAt(view.to)];
  setAxis(state.trace, !axis.isSqueezed);
  state.overview = null;
  show(...times.map(toPlace));
}
