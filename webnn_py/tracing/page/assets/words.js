// Times, bytes and events in words.

const UNITS = [
  ['s', 1e6],
  ['ms', 1e3],
  ['µs', 1],
  ['ns', 1e-3],
];

const plainNumber = (value, digits) => {
  const rounded = Number(value.toPrecision(digits));
  return (Math.abs(rounded) >= 1000 ? Math.round(value) : rounded).toLocaleString('en', {maximumFractionDigits: 9});
};
const unitFor = (microseconds) => UNITS.find(([, size]) => Math.abs(microseconds) >= size * 0.9995) ?? UNITS[3];

function duration(microseconds) {
  if (microseconds === 0) return '0 µs';
  const [unit, size] = unitFor(microseconds);
  return `${plainNumber(microseconds / size, 3)} ${unit}`;
}

// A time since the trace began, exact enough to tell neighbours apart.
function moment(microseconds) {
  if (microseconds === 0) return '0 µs';
  const [unit, size] = unitFor(microseconds);
  return `${plainNumber(microseconds / size, 6)} ${unit}`;
}

function bytes(count) {
  if (!Number.isFinite(count)) return String(count);
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let step = 0;
  let left = count;
  for (; left >= 1000 && step < units.length - 1; step += 1) left /= 1000;
  return `${plainNumber(left, 3)} ${units[step]}`;
}

const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

const laneTitle = (item) => (item.object ? laneTitle(item.object) : `${item.lane.group.name}, ${item.lane.name}`);

// What became of it, in a few words; empty if nothing of note.
function outcome(item) {
  if (item.kind === 'loss') return item.bad ? 'context lost' : 'context destroyed';
  if (item.bad) return item.bad;
  if (item.kind === 'operation') return text(item.args.outcome ?? 'done');
  if (item.kind === 'settlement' && item.args.before) return 'was rejected before';
  if (item.kind === 'settlement') return text(item.args.promise ?? 'fulfilled');
  return '';
}

const sourceOf = (item) => {
  const call = item.kind === 'call' ? item : state.trace.operations.get(item.operation)?.call[0];
  const source = call?.args.source ?? item.args.source;
  return source === undefined ? '' : text(source);
};

// What is written in and beside a box.
function caption(item) {
  return item.args.label ? `${item.name} ${text(item.args.label)}` : item.name;
}

// Where that is too long; that it is a call or a settlement, its lane tells.
const shortName = (item) => item.name.replace(/^settle /, '').replace(/(_buffer)?\(\)$|_buffer$/, '') || item.name;

const objectName = ({id, kind, object}) => (object ? object.name : `${kind} ${id}`);

// One item in a sentence, for the live region and the search.
function sentence(item) {
  const parts = [caption(item)];
  if (item.operation !== undefined && item.kind !== 'mark') parts.push(`operation ${item.operation}`);
  if (item.object) parts.push(`on ${item.object.name}`);
  parts.push(laneTitle(item), `at ${moment(item.began)}`);
  if (item.kind === 'buffer' || item.kind === 'graph') {
    parts.push(
      item.isOpen ? 'lives on at the end' : `released at ${moment(item.ended)}`,
      count(item.marks.length, 'mark'),
    );
  } else if (item.ended > item.began) parts.push(`took ${duration(item.ended - item.began)}`);
  const became = outcome(item);
  if (became) parts.push(became);
  if (item.args.why) parts.push(text(item.args.why));
  const source = sourceOf(item);
  if (source) parts.push(source);
  return `${parts.join(', ')}.`;
}
