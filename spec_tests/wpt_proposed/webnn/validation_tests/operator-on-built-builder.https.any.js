// META: title=MLGraphBuilder's operators throw once the builder has built
// META: global=window,worker
// META: variant=?cpu
// META: variant=?gpu
// META: variant=?npu

'use strict';

// https://www.w3.org/TR/webnn/#api-mlgraphbuilder
// Each operator's first step: if this can not build, then throw an "InvalidStateError" DOMException.

const contextOptions = {deviceType: location.search.substring(1)};

const image = [1, 2, 4, 4];

// The arguments of one right call of each operator; `input` makes an operand.
const calls = {
  abs: (input) => [input([2])],
  add: (input) => [input([2]), input([2])],
  argMax: (input) => [input([2, 3]), 0],
  argMin: (input) => [input([2, 3]), 0],
  averagePool2d: (input) => [input(image)],
  batchNormalization: (input) => [input(image), input([2]), input([2])],
  cast: (input) => [input([2]), 'int32'],
  ceil: (input) => [input([2])],
  clamp: (input) => [input([2]), {minValue: 0}],
  concat: (input) => [[input([2]), input([2])], 0],
  conv2d: (input) => [input(image), input([3, 2, 1, 1])],
  convTranspose2d: (input) => [input(image), input([2, 3, 1, 1])],
  cos: (input) => [input([2])],
  cumulativeSum: (input) => [input([2]), 0],
  dequantizeLinear: (input) => [input([2], 'uint8'), input([1]), input([1], 'uint8')],
  div: (input) => [input([2]), input([2])],
  elu: (input) => [input([2])],
  equal: (input) => [input([2]), input([2])],
  erf: (input) => [input([2])],
  exp: (input) => [input([2])],
  expand: (input) => [input([1]), [2]],
  floor: (input) => [input([2])],
  gather: (input) => [input([2]), input([1], 'int32')],
  gatherElements: (input) => [input([2]), input([1], 'int32')],
  gatherND: (input) => [input([2]), input([1], 'int32')],
  gelu: (input) => [input([2])],
  gemm: (input) => [input([2, 3]), input([3, 4])],
  greater: (input) => [input([2]), input([2])],
  greaterOrEqual: (input) => [input([2]), input([2])],
  gru: (input) => [input([1, 2, 3]), input([1, 12, 3]), input([1, 12, 4]), 1, 4],
  gruCell: (input) => [input([2, 3]), input([12, 3]), input([12, 4]), input([2, 4]), 4],
  hardSigmoid: (input) => [input([2])],
  hardSwish: (input) => [input([2])],
  identity: (input) => [input([2])],
  instanceNormalization: (input) => [input(image)],
  isInfinite: (input) => [input([2])],
  isNaN: (input) => [input([2])],
  l2Pool2d: (input) => [input(image)],
  layerNormalization: (input) => [input([2, 3])],
  leakyRelu: (input) => [input([2])],
  lesser: (input) => [input([2]), input([2])],
  lesserOrEqual: (input) => [input([2]), input([2])],
  linear: (input) => [input([2])],
  log: (input) => [input([2])],
  logicalAnd: (input) => [input([2], 'uint8'), input([2], 'uint8')],
  logicalNot: (input) => [input([2], 'uint8')],
  logicalOr: (input) => [input([2], 'uint8'), input([2], 'uint8')],
  logicalXor: (input) => [input([2], 'uint8'), input([2], 'uint8')],
  lstm: (input) => [input([1, 2, 3]), input([1, 16, 3]), input([1, 16, 4]), 1, 4],
  lstmCell: (input) => [input([2, 3]), input([16, 3]), input([16, 4]), input([2, 4]), input([2, 4]), 4],
  matmul: (input) => [input([2, 3]), input([3, 4])],
  max: (input) => [input([2]), input([2])],
  maxPool2d: (input) => [input(image)],
  min: (input) => [input([2]), input([2])],
  mul: (input) => [input([2]), input([2])],
  neg: (input) => [input([2])],
  notEqual: (input) => [input([2]), input([2])],
  pad: (input) => [input([2]), [1], [1]],
  pow: (input) => [input([2]), input([2])],
  prelu: (input) => [input([2]), input([2])],
  quantizeLinear: (input) => [input([2]), input([1]), input([1], 'uint8')],
  reciprocal: (input) => [input([2])],
  reduceL1: (input) => [input([2])],
  reduceL2: (input) => [input([2])],
  reduceLogSum: (input) => [input([2])],
  reduceLogSumExp: (input) => [input([2])],
  reduceMax: (input) => [input([2])],
  reduceMean: (input) => [input([2])],
  reduceMin: (input) => [input([2])],
  reduceProduct: (input) => [input([2])],
  reduceSum: (input) => [input([2])],
  reduceSumSquare: (input) => [input([2])],
  relu: (input) => [input([2])],
  resample2d: (input) => [input(image), {sizes: [2, 2]}],
  reshape: (input) => [input([2]), [1, 2]],
  reverse: (input) => [input([2])],
  roundEven: (input) => [input([2])],
  scatterElements: (input) => [input([2]), input([1], 'int32'), input([1])],
  scatterND: (input) => [input([2]), input([1, 1], 'int32'), input([1])],
  sigmoid: (input) => [input([2])],
  sign: (input) => [input([2])],
  sin: (input) => [input([2])],
  slice: (input) => [input([2]), [0], [1]],
  softmax: (input) => [input([2]), 0],
  softplus: (input) => [input([2])],
  softsign: (input) => [input([2])],
  split: (input) => [input([2]), 2],
  sqrt: (input) => [input([2])],
  sub: (input) => [input([2]), input([2])],
  tan: (input) => [input([2])],
  tanh: (input) => [input([2])],
  tile: (input) => [input([2]), [2]],
  transpose: (input) => [input([2, 3])],
  triangular: (input) => [input([2, 3])],
  where: (input) => [input([2], 'uint8'), input([2]), input([2])],
};

for (const [operator, makeArguments] of Object.entries(calls)) {
  promise_test(async t => {
    const context = await navigator.ml.createContext(contextOptions);
    const builder = new MLGraphBuilder(context);
    let count = 0;
    const args = makeArguments(
        (shape, dataType = 'float32') =>
            builder.input(`input${count++}`, {dataType, shape}));
    // The call is right as long as the builder can build.
    builder[operator](...args);
    const other = builder.input('other', {dataType: 'float32', shape: [2]});
    const graph = await builder.build({output: builder.identity(other)});
    assert_throws_dom('InvalidStateError', () => builder[operator](...args));
    graph.destroy();
    context.destroy();
  }, `[${operator}] Throw if the builder has built a graph.`);
}
