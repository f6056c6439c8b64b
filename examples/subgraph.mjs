// The proposal "subgraph" with the discussion's operator, grouped-query attention: a body whose name says what its
// operators compute together. The name is honoured since the body is the operator's decomposition, as here; a device
// that has such an operator then runs it as one. Any other device, and any other name, runs the body.
//
//     webnn-py node --experimental subgraph examples/subgraph.mjs

const HEADS = 4, KEY_HEADS = 2, SIZE = 16, CAPACITY = 8;

const integers = (count) => Int32Array.from({length: count}, (_, index) => index);
const sizeOf = (shape) => shape.reduce((product, size) => product * size, 1);

// Half of each head turns with the other half, by the angles of its position.
function rotated(builder, x, cosines, sines) {
  const [, , count, size] = x.shape;
  const [cos, sin] = [cosines, sines].map((angles) => builder.reshape(angles, [1, 1, count, size / 2]));
  const [real, imaginary] = builder.split(x, 2, {axis: 3});
  return builder.concat([
    builder.sub(builder.mul(real, cos), builder.mul(imaginary, sin)),
    builder.add(builder.mul(real, sin), builder.mul(imaginary, cos)),
  ], 3);
}

// Each head of keys or values serves a group of heads of queries.
function repeated(builder, cache, heads) {
  const [, keyHeads, length, size] = cache.shape;
  const narrow = builder.reshape(cache, [1, keyHeads, 1, length, size]);
  const wide = builder.expand(narrow, [1, keyHeads, heads / keyHeads, length, size]);
  return builder.reshape(wide, [1, heads, length, size]);
}

// The new rows follow those that the cache has, and zeros follow them.
function written(builder, past, rows, begins) {
  const [, heads, count, size] = rows.shape;
  const capacity = past.shape[2];
  const every = builder.constant({dataType: 'int32', shape: [1, capacity]}, integers(capacity));
  const places = builder.sub(every, builder.reshape(begins, [1, 1]));
  const flat = builder.reshape(builder.transpose(rows, {permutation: [0, 2, 1, 3]}), [count, heads, size]);
  const sources = builder.clamp(places, {minValue: 0, maxValue: count - 1});
  const moved = builder.transpose(builder.gather(flat, sources), {permutation: [0, 2, 1, 3]});
  const column = builder.reshape(places, [1, 1, capacity, 1]);
  const isBehind = builder.greaterOrEqual(column, builder.constant('int32', count));
  const padded = builder.where(isBehind, builder.constant(rows.dataType, 0), moved);
  return builder.where(builder.lesser(column, builder.constant('int32', 0)), past, padded);
}

// Of one sample, and of two new tokens or more in float32.
function attention(builder, inputs, config) {
  const {seqlens_k: last, total_sequence_length: total} = inputs;
  const {num_heads: heads, kv_num_heads: keyHeads} = config;
  const [, count, width] = inputs.query.shape;
  const [capacity, size] = [inputs.past_key.shape[2], width / heads];
  const int32 = (value) => builder.constant('int32', value);
  const float32 = (value) => builder.constant('float32', value);
  const along = (shape) => builder.constant({dataType: 'int32', shape}, integers(sizeOf(shape)));
  const apart = (x, number) => builder.transpose(
    builder.reshape(x, [1, count, number, size]), {permutation: [0, 2, 1, 3]});
  let query = apart(inputs.query, heads), key = apart(inputs.key, keyHeads);
  const value = apart(inputs.value, keyHeads);

  // The new tokens come last among the keys; a prompt begins the cache.
  const isFirst = builder.equal(total, int32(count));
  const begins = builder.where(isFirst, int32(0), builder.sub(builder.add(last, int32(1)), int32(count)));
  const positions = builder.add(builder.reshape(begins, [1, 1]), along([1, count]));
  const [cosines, sines] = [inputs.cos_cache, inputs.sin_cache].map((table) => builder.gather(table, positions));
  [query, key] = [query, key].map((x) => rotated(builder, x, cosines, sines));

  // A query sees the keys up to its own. One whose keys do not fit into the cache becomes NaN.
  const own = builder.add(builder.reshape(begins, [1, 1, 1, 1]), along([1, 1, count, 1]));
  const isLater = builder.greater(along([1, 1, 1, capacity]), own);
  const isBehind = builder.greaterOrEqual(last, int32(count - 1));
  const fits = builder.logicalAnd(
    builder.lesser(last, int32(capacity)), builder.lesserOrEqual(total, int32(capacity)));
  const isWithin = builder.reshape(
    builder.logicalAnd(builder.logicalOr(isFirst, isBehind), fits), [1, 1, 1, 1]);
  query = builder.mul(query, builder.where(isWithin, float32(config.scale), float32(NaN)));

  const present_key = written(builder, inputs.past_key, key, begins);
  const present_value = written(builder, inputs.past_value, value, begins);
  const [keys, values] = [present_key, present_value].map((cache) => repeated(builder, cache, heads));
  const turned = builder.transpose(keys, {permutation: [0, 1, 3, 2]});
  const scores = builder.matmul(builder.reshape(query, [1, heads, count, size]), turned);
  const hidden = builder.logicalAnd(isLater, isWithin);
  const seen = builder.where(hidden, float32(-3.4028234663852886e38), scores);
  const attended = builder.reshape(builder.matmul(builder.softmax(seen, 3), values), [1, heads, count, size]);
  const joined = builder.transpose(attended, {permutation: [0, 2, 1, 3]});
  return {output: builder.reshape(joined, [1, count, width]), present_key, present_value};
}

// The definition has formal inputs of the operands' descriptors; its name may be their names' as well.
function define(builder, operands, name, config) {
  const inputs = {};
  for (const [input, {dataType, shape}] of Object.entries(operands)) inputs[input] = builder.input(input, {dataType, shape});
  return builder.buildSubgraph(attention(builder, inputs, config), {name, inputs, config});
}

const FLOATS = {
  query: (count) => [1, count, HEADS * SIZE],
  key: (count) => [1, count, KEY_HEADS * SIZE],
  value: (count) => [1, count, KEY_HEADS * SIZE],
  past_key: () => [1, KEY_HEADS, CAPACITY, SIZE],
  past_value: () => [1, KEY_HEADS, CAPACITY, SIZE],
  cos_cache: () => [CAPACITY, SIZE / 2],
  sin_cache: () => [CAPACITY, SIZE / 2],
};

async function build(context, name, count) {
  const builder = new MLGraphBuilder(context);
  const operands = {};
  for (const [input, shape] of Object.entries(FLOATS)) {
    operands[input] = builder.input(input, {dataType: 'float32', shape: shape(count)});
  }
  operands.seqlens_k = builder.input('seqlens_k', {dataType: 'int32', shape: [1]});
  operands.total_sequence_length = builder.input('total_sequence_length', {dataType: 'int32', shape: []});
  const definition = define(builder, operands, name, {do_rotary: true, kv_num_heads: KEY_HEADS, num_heads: HEADS, scale: 0.3});
  return builder.build(builder.subgraph(definition, operands, {label: 'layer 0'}));
}

async function compute(context, graph, feeds, count) {
  const inputs = {}, outputs = {};
  for (const [name, data] of Object.entries(feeds)) {
    const isFloat = name in FLOATS;
    const shape = isFloat ? FLOATS[name](count) : name === 'seqlens_k' ? [1] : [];
    inputs[name] = await context.createTensor({dataType: isFloat ? 'float32' : 'int32', shape, writable: true});
    context.writeTensor(inputs[name], data);
  }
  const shapes = {output: [1, count, HEADS * SIZE], present_key: FLOATS.past_key(), present_value: FLOATS.past_value()};
  for (const [name, shape] of Object.entries(shapes)) {
    outputs[name] = await context.createTensor({dataType: 'float32', shape, readable: true});
  }
  context.dispatch(graph, inputs, outputs);
  const names = Object.keys(outputs);
  const read = await Promise.all(names.map((name) => context.readTensor(outputs[name])));
  const results = Object.fromEntries(names.map((name, index) => [name, new Float32Array(read[index])]));
  for (const tensor of [...Object.values(inputs), ...Object.values(outputs)]) tensor.destroy();
  return results;
}

const angles = Array.from({length: CAPACITY * SIZE / 2}, (_, index) => Math.sin(index) * 3);
const tables = {cos_cache: Float32Array.from(angles, Math.cos), sin_cache: Float32Array.from(angles, Math.sin)};
const numbers = (shape, seed) => Float32Array.from({length: sizeOf(shape)}, (_, index) => Math.sin(index * 1.7 + seed));

const context = await navigator.ml.createContext();
let cache = {past_key: new Float32Array(sizeOf(FLOATS.past_key())), past_value: new Float32Array(sizeOf(FLOATS.past_value()))};
let length = 0;
for (const count of [3, 2]) {  // a prompt of three tokens, then two more
  length += count;
  const feeds = {...cache, ...tables, seqlens_k: new Int32Array([length - 1]), total_sequence_length: new Int32Array([length])};
  for (const [seed, name] of ['query', 'key', 'value'].entries()) feeds[name] = numbers(FLOATS[name](count), seed + length);
  const results = [];
  for (const name of ['GQA', 'a name of my own']) {
    const graph = await build(context, name, count);
    const [{operator, operators, reason}] = graph.subgraphs;
    console.log(`${name}: ${operators} operators, ${operator === undefined ? reason : `run as ${operator}`}`);
    results.push(await compute(context, graph, feeds, count));
    graph.destroy();
  }
  for (const name of Object.keys(results[0])) {
    const worst = results[0][name].reduce((most, item, index) => Math.max(most, Math.abs(item - results[1][name][index])), 0);
    console.log(`  ${name}: ${worst < 1e-5 ? 'equal' : `differs by ${worst}`}`);
  }
  cache = {past_key: results[0].present_key, past_value: results[0].present_value};
}
context.destroy();
