// The proposal "subgraph" with the discussion's example, grouped-query attention: a body of 53 operators whose name says
// what they compute together. A device that has an operator for that runs it as one; any other runs the body.
//
//     webnn-py js --experimental subgraph examples/subgraph.mjs

const BATCH = 1, HEADS = 4, KEY_HEADS = 2, SIZE = 16, CAPACITY = 8;

const integers = (count, first = 0) => Int32Array.from({length: count}, (_, index) => first + index);
const sizeOf = (shape) => shape.reduce((product, size) => product * size, 1);

// Half of each head turns with the other half, by the angles of its position.
function rotated(builder, x, positions, cosines, sines) {
  const [batch, , length, size] = x.shape;
  const shape = [batch, 1, length, size / 2];
  const [cos, sin] = [cosines, sines].map((table) => builder.reshape(builder.gather(table, positions), shape));
  const [real, imaginary] = builder.split(x, 2, {axis: 3});
  return builder.concat([
    builder.sub(builder.mul(real, cos), builder.mul(imaginary, sin)),
    builder.add(builder.mul(real, sin), builder.mul(imaginary, cos)),
  ], 3);
}

// Each head of keys or values serves a group of heads of queries.
function repeated(builder, cache, heads) {
  const [batch, keyHeads, length, size] = cache.shape;
  const wide = [batch, keyHeads, heads / keyHeads, length, size];
  const narrow = builder.reshape(cache, [batch, keyHeads, 1, length, size]);
  return builder.reshape(builder.expand(narrow, wide), [batch, heads, length, size]);
}

function attention(builder, inputs, config) {
  const {value, past_key, past_value, seqlens_k, total_sequence_length, cos_cache, sin_cache} = inputs;
  const [batch, heads, count, size] = inputs.query.shape;
  const [, keyHeads, capacity] = past_key.shape;
  const {dataType} = inputs.query;
  const int32 = (shape, data) => builder.constant({dataType: 'int32', shape}, data);

  // The new tokens of a sample come last among its keys.
  const first = builder.sub(builder.reshape(seqlens_k, [batch, 1]), builder.constant('int32', count - 1));
  const positions = builder.add(first, int32([1, count], integers(count)));
  let {query, key} = inputs;
  if (config.do_rotary) {
    [query, key] = [query, key].map((x) => rotated(builder, x, positions, cos_cache, sin_cache));
  }

  const rows = [batch, keyHeads, count, 1];
  const places = builder.concat([
    builder.expand(int32([batch, 1, 1, 1], integers(batch)), rows),
    builder.expand(int32([1, keyHeads, 1, 1], integers(keyHeads)), rows),
    builder.expand(builder.reshape(positions, [batch, 1, count, 1]), rows),
  ], 3);
  const present_key = builder.scatterND(past_key, places, key);
  const present_value = builder.scatterND(past_value, places, value);

  const keys = builder.transpose(repeated(builder, present_key, heads), {permutation: [0, 1, 3, 2]});
  const scale = builder.constant(dataType, config.scale ?? 1 / Math.sqrt(size));
  const scores = builder.mul(builder.matmul(query, keys), scale);
  const every = int32([1, 1, 1, capacity], integers(capacity));
  const visible = builder.logicalAnd(
    builder.lesserOrEqual(every, builder.reshape(positions, [batch, 1, count, 1])),
    builder.lesser(every, total_sequence_length));
  const mask = builder.where(visible, builder.constant(dataType, 0), builder.constant(dataType, -Infinity));
  const attended = builder.matmul(builder.softmax(builder.add(scores, mask), 3), repeated(builder, present_value, heads));
  const joined = builder.transpose(attended, {permutation: [0, 2, 1, 3]});
  return {output: builder.reshape(joined, [batch, count, heads * size]), present_key, present_value};
}

// The definition has formal inputs of the operands' descriptors; its name may be their names' as well.
function define(builder, operands, name, config) {
  const inputs = {};
  for (const [input, {dataType, shape}] of Object.entries(operands)) inputs[input] = builder.input(input, {dataType, shape});
  return builder.buildSubgraph(attention(builder, inputs, config), {name, inputs, config});
}

const FLOATS = {
  query: (count) => [BATCH, HEADS, count, SIZE],
  key: (count) => [BATCH, KEY_HEADS, count, SIZE],
  value: (count) => [BATCH, KEY_HEADS, count, SIZE],
  past_key: () => [BATCH, KEY_HEADS, CAPACITY, SIZE],
  past_value: () => [BATCH, KEY_HEADS, CAPACITY, SIZE],
  cos_cache: () => [CAPACITY, SIZE / 2],
  sin_cache: () => [CAPACITY, SIZE / 2],
};

async function build(context, name, count) {
  const builder = new MLGraphBuilder(context);
  const operands = {};
  for (const [input, shape] of Object.entries(FLOATS)) {
    operands[input] = builder.input(input, {dataType: 'float32', shape: shape(count)});
  }
  operands.seqlens_k = builder.input('seqlens_k', {dataType: 'int32', shape: [BATCH]});
  operands.total_sequence_length = builder.input('total_sequence_length', {dataType: 'int32', shape: []});
  const definition = define(builder, operands, name, {do_rotary: true, scale: 0.3});
  return builder.build(builder.subgraph(definition, operands, {label: 'layer 0'}));
}

async function compute(context, graph, feeds, count) {
  const inputs = {}, outputs = {};
  for (const [name, data] of Object.entries(feeds)) {
    const isFloat = name in FLOATS;
    const shape = isFloat ? FLOATS[name](count) : name === 'seqlens_k' ? [BATCH] : [];
    inputs[name] = await context.createTensor({dataType: isFloat ? 'float32' : 'int32', shape, writable: true});
    context.writeTensor(inputs[name], data);
  }
  const shapes = {output: [BATCH, count, HEADS * SIZE], present_key: FLOATS.past_key(), present_value: FLOATS.past_value()};
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
for (const count of [3, 1]) {  // a prompt of three tokens, then one more
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
