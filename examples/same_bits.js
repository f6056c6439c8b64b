// One small network, here in JavaScript and in same_bits.py in Python: both print the same bits.
//
//     webnn-py node --backend numpy examples/same_bits.js
//     python examples/same_bits.py

'use strict';

// Weights of whole eighths from -2 to 2: a linear congruential generator, exact in both languages.
function makeWeights() {
  let state = 716n;
  return (shape) => {
    const size = shape.reduce((product, dimension) => product * dimension, 1);
    return Float32Array.from({length: size}, () => {
      state = (state * 1103515245n + 12345n) % 2147483648n;
      return Number((state / 65536n) % 33n) / 8 - 2;
    });
  };
}

function draw(builder, weights) {
  const constant = (shape) => builder.constant({dataType: 'float32', shape}, weights(shape));
  const image = builder.input('image', {dataType: 'float32', shape: [1, 1, 8, 8]});
  const edges = builder.conv2d(image, constant([4, 1, 3, 3]), {padding: [1, 1, 1, 1], bias: constant([4])});
  const pooled = builder.maxPool2d(builder.relu(edges), {windowDimensions: [2, 2], strides: [2, 2]});
  const features = builder.tanh(builder.reshape(pooled, [1, 64]));
  const scores = builder.gemm(features, constant([64, 5]), {c: constant([5]), alpha: 0.25});
  return {scores, chances: builder.softmax(scores, 1)};
}

const bits = (buffer) =>
    Array.from(new Uint32Array(buffer), (word) => word.toString(16).padStart(8, '0')).join(' ');

async function main() {
  const weights = makeWeights();
  const context = await navigator.ml.createContext();
  const builder = new MLGraphBuilder(context);
  const graph = await builder.build(draw(builder, weights));
  const create = (shape, flags) => context.createTensor({dataType: 'float32', shape, ...flags});
  const image = await create([1, 1, 8, 8], {writable: true});
  const [scores, chances] = await Promise.all([create([1, 5], {readable: true}), create([1, 5], {readable: true})]);
  context.writeTensor(image, weights([1, 1, 8, 8]));
  context.dispatch(graph, {image}, {scores, chances});
  console.log('scores ', bits(await context.readTensor(scores)));
  console.log('chances', bits(await context.readTensor(chances)));
  context.destroy();
}

main();
