// What a trace says: its groups of lanes, what lies in them, and what belongs to each operation.

const FAMILIES = [
  ['write', /^(write|copy|clear)/],
  ['dispatch', /^dispatch/],
  ['read', /^read/],
  ['build', /^(build|compile|load)/],
  ['create', /^(create|allocate)/],
  ['free', /^(destroy|release|close|garbage)/],
];
const MOST_WAITING_ROWS = 6;
const MOST_ROWS = 48;
const OWN_ROWS = 24; // so many buffers have a row each, more share rows
const ROUNDING = 0.0015; // microseconds; times are rounded to nanoseconds

const families = new Map();

// What is done, whoever does it: it chooses the colour.
function familyOf(name) {
  let family = families.get(name);
  if (family === undefined) {
    const plain = name.replace(/^(settle|reject) /, '');
    family = FAMILIES.find(([, pattern]) => pattern.test(plain))?.[0] ?? 'other';
    families.set(name, family);
  }
  return family;
}

function readTrace(source) {
  const events = source.traceEvents.filter((event) => event.ph !== 'M' && event.cat !== 'flow');
  events.sort((a, b) => a.ts - b.ts);
  const trace = {
    items: [],
    groups: [],
    lanes: new Map(),
    operations: new Map(),
    objects: new Map(),
    named: namesOf(source.traceEvents),
    losses: [],
    end: 0,
    size: source.traceEvents.length,
  };
  for (const event of events) trace.end = Math.max(trace.end, event.ts + (event.dur ?? 0));
  for (const event of events) take(trace, event);
  for (const object of trace.objects.values()) if (object.isOpen) object.end = object.ended = trace.end;
  trace.length = trace.end;
  trace.items.sort((a, b) => a.start - b.start);
  trace.items.forEach((item, place) => {
    item.place = place;
  });
  group(trace);
  return trace;
}

// The names and places that metadata events give to processes and threads, by "pid" and "pid tid".
function namesOf(events) {
  const named = new Map();
  for (const {ph, pid, tid, name, args} of events) {
    if (ph !== 'M') continue;
    const key = name.startsWith('thread') ? `${pid} ${tid}` : `${pid}`;
    const entry = named.get(key) ?? {};
    if (name.endsWith('_name')) Object.assign(entry, args, {name: String(args.name)});
    else if (name.endsWith('_sort_index')) entry.order = args.sort_index;
    named.set(key, entry);
  }
  return named;
}

function take(trace, event) {
  if (event.ph === 'X') takeSpan(trace, event);
  else if (event.ph === 'i' || event.ph === 'I') takeInstant(trace, event);
  else if (event.ph === 'b' || event.ph === 'n' || event.ph === 'e') takeLifetime(trace, event);
}

// An item is drawn from `start` to `end` of the axis, which may be squeezed; `began` and `ended` are its times.
function newItem(kind, name, start, end, pid, args) {
  return {
    kind,
    name,
    start,
    end,
    began: start,
    ended: end,
    pid,
    args,
    operation: args.operation,
    family: familyOf(name),
    bad: '',
    lane: null,
    row: 0,
    place: 0,
    target: null,
    object: null,
  };
}

function itemOf(trace, kind, event, end) {
  const item = newItem(kind, String(event.name), event.ts, end, event.pid, event.args ?? {});
  trace.items.push(item);
  return item;
}

function takeSpan(trace, event) {
  const isRefused = event.cat === 'refusal'; // a call that has asked for no operation
  const known = isRefused || ['call', 'operation', 'settlement', 'kernel'].includes(event.cat);
  const kind = isRefused ? 'call' : known ? event.cat : 'span';
  const item = itemOf(trace, kind, event, event.ts + (event.dur ?? 0));
  if (kind === 'kernel') item.family = 'kernel';
  if (['failed', 'dropped', 'refused'].includes(item.args.outcome)) item.bad = item.args.outcome;
  if (item.args.promise === 'rejected' && !item.args.before) item.bad = 'rejected'; // else it is counted where it was
  putInLane(trace, `${event.pid} ${event.tid}`, kind, item);
  const parts = partsOf(trace, item.operation);
  if (parts && kind !== 'span') parts[kind].push(item);
  if (kind === 'operation' && item.args.enqueued < item.start) {
    const wait = newItem('waiting', item.name, item.args.enqueued, item.start, item.pid, item.args);
    wait.target = item;
    putInLane(trace, `${event.pid} waiting`, 'waiting', wait);
  }
}

function takeInstant(trace, event) {
  if (event.cat === 'context') {
    const item = itemOf(trace, 'loss', event, event.ts);
    if (item.args.destroyed) {
      item.name = 'context destroyed';
      item.family = 'free';
    } else item.bad = 'lost';
    trace.losses.push(item);
    putInLane(trace, `${event.pid} losses`, 'loss', item);
    return;
  }
  const item = itemOf(trace, event.cat === 'rejection' ? 'rejection' : 'instant', event, event.ts);
  if (item.kind === 'rejection') {
    item.bad = 'rejected';
    partsOf(trace, item.operation)?.settlement.push(item);
    partsOf(trace, item.args.cause)?.caused.push(item);
  }
  putInLane(trace, `${event.pid} ${event.tid}`, 'settlement', item);
}

// Buffers and graphs: a bar from creation to release, with marks on it.
function takeLifetime(trace, event) {
  const key = objectKey(event.cat, event.pid, event.id);
  let object = trace.objects.get(key);
  if (!object) {
    object = itemOf(trace, event.cat === 'graph' ? 'graph' : 'buffer', event, event.ts);
    Object.assign(object, {
      id: event.id,
      marks: [],
      isOpen: true,
      family: object.kind === 'graph' ? 'build' : 'buffer',
    });
    if (event.ph !== 'b') object.name = `${object.kind} ${event.id}`;
    trace.objects.set(key, object);
    putInLane(trace, `${event.pid} ${object.kind}s`, object.kind, object);
  }
  if (event.ph === 'e') {
    object.isOpen = false;
    object.end = object.ended = event.ts;
  } else if (event.ph === 'n') {
    const mark = itemOf(trace, 'mark', event, event.ts);
    mark.object = object;
    object.marks.push(mark);
    partsOf(trace, mark.operation)?.marks.push(mark);
  }
}

const objectKey = (kind, pid, id) => `${kind} ${pid} ${id}`;

// What belongs to an operation, by kinds.
function partsOf(trace, id) {
  if (id === undefined || id === null) return null;
  let parts = trace.operations.get(id);
  if (!parts) {
    parts = {id, call: [], operation: [], kernel: [], settlement: [], marks: [], caused: []};
    trace.operations.set(id, parts);
  }
  return parts;
}

function putInLane(trace, key, kind, item) {
  let lane = trace.lanes.get(key);
  if (!lane) {
    lane = {key, kind, pid: item.pid, items: [], rows: [], y: 0, height: 0, rowHeight: 0, head: 0};
    trace.lanes.set(key, lane);
  }
  lane.items.push(item);
  item.lane = lane;
}

const LANE_PLACES = {waiting: 0.5, loss: -1, graph: 1e6, buffer: 1e6 + 1};
const LANE_NAMES = {waiting: 'waiting', loss: 'context lost', graph: 'graphs', buffer: 'buffers'};

// Lanes in groups, one for each process, all in the order that the trace gives.
function group(trace) {
  const groups = new Map();
  for (const lane of trace.lanes.values()) {
    if (!groups.has(lane.pid)) {
      const named = trace.named.get(`${lane.pid}`) ?? {};
      groups.set(lane.pid, {
        pid: lane.pid,
        name: named.name ?? `process ${lane.pid}`,
        about: named,
        order: named.order ?? lane.pid,
        lanes: [],
        isFolded: false,
        y: 0,
      });
    }
    const tid = lane.key.slice(lane.key.indexOf(' ') + 1);
    const named = trace.named.get(lane.key) ?? {};
    lane.order = LANE_PLACES[lane.kind] ?? named.order ?? Number(tid);
    const isEnd = lane.kind === 'loss' && lane.items.every((item) => !item.bad);
    lane.name = (isEnd ? 'context ended' : LANE_NAMES[lane.kind]) ?? named.name ?? `thread ${tid}`;
    lane.group = groups.get(lane.pid);
    lane.group.lanes.push(lane);
    pack(lane);
  }
  trace.groups = [...groups.values()].sort((a, b) => a.order - b.order);
  for (const {lanes} of trace.groups) lanes.sort((a, b) => a.order - b.order);
}

// Rows in which nothing overlaps, but the last one that may be, which takes what is over.
function pack(lane) {
  lane.items.sort((a, b) => a.start - b.start || b.end - a.end);
  const isObjects = lane.kind === 'buffer' || lane.kind === 'graph';
  const most = lane.kind === 'waiting' ? MOST_WAITING_ROWS : isObjects ? Infinity : MOST_ROWS;
  const isOwn = isObjects && lane.items.length <= OWN_ROWS;
  const ends = [];
  for (const item of lane.items) {
    let row = isOwn ? -1 : ends.findIndex((end) => end <= item.start + ROUNDING);
    if (row < 0) row = Math.min(ends.length, most - 1);
    ends[row] = Math.max(ends[row] ?? 0, item.end);
    item.row = row;
    (lane.rows[row] ??= {items: [], isOver: row === most - 1}).items.push(item);
  }
  lane.rows.forEach(reachOf);
}

// How far the items up to each place of a row reach, which rises.
function reachOf(row) {
  let reach = 0;
  row.reach = Float64Array.from(row.items, (item) => {
    reach = Math.max(reach, item.end);
    return reach;
  });
}

// The first place in a rising array that is at least so much.
function firstAtLeast(values, least) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The buffers and graphs that an item names by number.
function objectsOf(trace, item, which) {
  const pid = item.kind === 'call' ? (item.args.context ?? item.pid) : item.pid;
  const numbers = which === 'graph' ? [item.args.graph] : item.args[which];
  if (!Array.isArray(numbers)) return [];
  const kind = which === 'graph' ? 'graph' : 'buffer';
  return numbers
    .filter((id) => id !== undefined && id !== null)
    .map((id) => ({
      id,
      kind,
      object: trace.objects.get(objectKey(kind, pid, id)),
    }));
}

// All that belongs to what an item belongs to: its operation, or a buffer's marks.
function relatives(item) {
  if (item.kind === 'buffer' || item.kind === 'graph') return [item, ...item.marks];
  const parts = state.trace.operations.get(item.operation);
  if (!parts) return [item];
  return [...parts.call, ...parts.operation, ...parts.kernel, ...parts.settlement, ...parts.marks, ...parts.caused];
}
