// The graph as objects: boxes, weights and kernels, which can be selected, and what leads from one to another.

const data = JSON.parse(document.getElementById('data').textContent);

const boxes = data.boxes.map((box, place) => ({...box, type: 'box', place, sources: [], readers: [], weights: [], frame: null}));
const boxOfOperator = new Map(boxes.filter((box) => box.operator >= 0).map((box) => [box.operator, box]));
const boxOfInput = new Map(boxes.filter((box) => box.kind === 'input').map((box) => [box.value, box]));
const weights = new Map();
data.values.forEach((value, index) => {
  if (value.kind === 'constant') weights.set(index, {...value, type: 'weight', index, uses: []});
});
const kernels = data.kernels.map((kernel, index) => ({...kernel, type: 'kernel', index}));
const frames = data.frames.map((frame) => ({...frame, boxes: frame.members.map((place) => boxes[place])}));
for (const frame of frames) for (const box of frame.boxes) box.frame = frame;

const operatorOf = (box) => (box.operator >= 0 ? data.operators[box.operator] : null);
const originOf = (index) => {
  const value = data.values[index];
  return value.kind === 'input' ? boxOfInput.get(index) : boxOfOperator.get(value.source);
};

function connectBoxes() {
  const link = (source, target) => {
    if (!source.readers.includes(target)) source.readers.push(target);
    if (!target.sources.includes(source)) target.sources.push(source);
  };
  for (const box of boxes) {
    const operator = operatorOf(box);
    if (box.kind === 'output') link(originOf(box.value), box);
    for (const [parameter, index] of operator ? operator.operands : []) {
      const weight = weights.get(index);
      if (weight) {
        weight.uses.push({box, parameter});
        box.weights.push(weight);
      } else link(originOf(index), box);
    }
  }
}
connectBoxes();

// The ways from a box to those that read it, by the places at which their pieces begin; a bend is where two meet.
const spot = (x, y) => `${Math.round(x)} ${Math.round(y)}`;
const waysFrom = new Map();
const waysTo = new Map();
for (const way of data.ways) {
  for (const [map, key] of [
    [waysFrom, spot(way[0], way[1])],
    [waysTo, spot(way[3], way[4])],
  ]) {
    if (!map.has(key)) map.set(key, []);
    map.get(key).push(way);
  }
}

// Pieces from some places on, forwards or back, up to boxes.
function follow(places, isForward) {
  const found = new Set();
  const open = [...places];
  while (open.length) {
    const [x, y] = open.pop();
    for (const way of (isForward ? waysFrom : waysTo).get(spot(x, y)) ?? []) {
      if (found.has(way)) continue;
      found.add(way);
      open.push(isForward ? [way[3], way[4]] : [way[0], way[1]]);
    }
  }
  return found;
}

// Where wires leave below the label of the data type, and where they arrive.
const leaving = (box) => box.outs.map(([x]) => [box.x + x, box.y + box.depth]);
const arriving = (box) => box.entries.map((x) => [box.x + x, box.y]);

const typeOf = (index) => data.values[index].type;

function nameOf(item) {
  if (item.type === 'kernel') return `kernel ${item.index + 1}`;
  if (item.type === 'weight') {
    const [{box, parameter}] = item.uses;
    return `${parameter} of ${nameOf(box)}`;
  }
  const operator = operatorOf(item);
  return operator ? `${operator.name}${operator.label ? ` [${operator.label}]` : ''}` : `${item.kind} ${item.title}`;
}

const items = [...boxes, ...[...weights.values()].filter((weight) => weight.uses.length), ...kernels];

// The boxes that an item is about.
function boxesOf(item) {
  if (item.type === 'box') return [item];
  if (item.type === 'weight') return item.uses.map(({box}) => box);
  return item.operators.map((index) => boxOfOperator.get(index));
}

const searchTexts = new Map();
function searchText(item) {
  if (!searchTexts.has(item)) {
    const parts = [nameOf(item)];
    if (item.type === 'weight') parts.push('weight constant', typeOf(item.index));
    else if (item.type === 'kernel') parts.push(item.name);
    else {
      const operator = operatorOf(item);
      if (operator) {
        parts.push(`#${item.operator + 1} `, operator.fate, ...operator.results.map(typeOf));
        parts.push(...operator.options.map(([name, text]) => `${name} ${text}`));
      } else parts.push(typeOf(item.value));
    }
    searchTexts.set(item, parts.join('\n').toLowerCase());
  }
  return searchTexts.get(item);
}
