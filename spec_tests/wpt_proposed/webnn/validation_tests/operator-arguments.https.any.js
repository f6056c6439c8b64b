// META: title=arguments of operators that no other test refuses
// META: global=window,worker
// META: variant=?cpu
// META: variant=?gpu
// META: variant=?npu

'use strict';

// Each entry is a refusal of an operator's algorithm: the operator, what is wrong, and the arguments. `input` makes
// operands; `other` makes operands of another builder.

const contextOptions = {deviceType: location.search.substring(1)};

const refused = [
  ['argMin', 'the input belongs to another builder', (input, other) => [other([2]), 0]],
  ['argMax', 'the input belongs to another builder', (input, other) => [other([2]), 0]],
  ['argMin', 'the output data type is none of an index', (input) => [input([2]), 0, {outputDataType: 'float32'}]],
  ['argMax', 'the output data type is unsigned', (input) => [input([2]), 0, {outputDataType: 'uint32'}]],
  ['concat', 'the first input belongs to another builder', (input, other) => [[other([2]), input([2])], 0]],
  ['concat', 'a later input belongs to another builder', (input, other) => [[input([2]), other([2])], 0]],
  ['concat', 'the joined size is not a valid dimension',
   (input) => [[input([2 ** 30], 'uint8'), input([2 ** 30], 'uint8')], 0]],
  ['conv2d', 'the output channels are no multiple of the groups',
   (input) => [input([1, 4, 5, 5]), input([3, 2, 3, 3]), {groups: 2}]],
  ['cumulativeSum', 'the data type is int8', (input) => [input([2], 'int8'), 0]],
  ['cumulativeSum', 'the data type is uint8', (input) => [input([2], 'uint8'), 0]],
  ['quantizeLinear', 'the ranks of input and scale differ',
   (input) => [input([2, 3]), input([3]), input([3], 'uint8')]],
  ['quantizeLinear', 'the ranks of scale and zeroPoint differ',
   (input) => [input([2, 3]), input([1, 1]), input([1], 'uint8')]],
  ['dequantizeLinear', 'the ranks of input and scale differ',
   (input) => [input([2, 3], 'uint8'), input([3]), input([3], 'uint8')]],
  ['dequantizeLinear', 'the ranks of scale and zeroPoint differ',
   (input) => [input([2, 3], 'uint8'), input([1, 1]), input([1], 'uint8')]],
  ['gru', 'the input is of integers',
   (input) => [input([1, 2, 3], 'int32'), input([1, 12, 3], 'int32'), input([1, 12, 4], 'int32'), 1, 4]],
  ['gru', 'the weight has another data type',
   (input) => [input([1, 2, 3]), input([1, 12, 3], 'float16'), input([1, 12, 4]), 1, 4]],
  ['gruCell', 'the recurrent bias has another shape',
   (input) => [input([2, 3]), input([12, 3]), input([12, 4]), input([2, 4]), 4, {recurrentBias: input([11])}]],
  ['lstm', 'the recurrent weight has another shape',
   (input) => [input([1, 2, 3]), input([1, 16, 3]), input([1, 16, 5]), 1, 4]],
  ['lstm', 'the bias has another shape',
   (input) => [input([1, 2, 3]), input([1, 16, 3]), input([1, 16, 4]), 1, 4, {bias: input([1, 15])}]],
  ['lstm', 'the peephole weight has another shape',
   (input) => [input([1, 2, 3]), input([1, 16, 3]), input([1, 16, 4]), 1, 4, {peepholeWeight: input([1, 16])}]],
  ['lstm', 'the initial hidden state has another shape',
   (input) => [input([1, 2, 3]), input([1, 16, 3]), input([1, 16, 4]), 1, 4, {initialHiddenState: input([1, 2, 3])}]],
  ['pad', 'the padded size is not a valid dimension', (input) => [input([2]), [2 ** 31 - 2], [1]]],
  ['scatterElements', 'the indices are of floats', (input) => [input([2]), input([1]), input([1])]],
  ['scatterElements', 'the updates have another data type',
   (input) => [input([2]), input([1], 'int32'), input([1], 'int32')]],
  ['scatterND', 'the indices are of floats', (input) => [input([2]), input([1, 1]), input([1])]],
  ['scatterND', 'the updates have another data type',
   (input) => [input([2]), input([1, 1], 'int32'), input([1], 'int32')]],
  ['split', 'the list of sizes is empty', (input) => [input([2]), []]],
  ['split', 'the number of pieces is beyond 8192', (input) => [input([8193]), 8193]],
  ['tile', 'the input belongs to another builder', (input, other) => [other([2]), [2]]],
];

for (const [operator, wrong, makeArguments] of refused) {
  promise_test(async t => {
    const context = await navigator.ml.createContext(contextOptions);
    let count = 0;
    const inputsOf = (builder) => (shape, dataType = 'float32') =>
        builder.input(`input${count++}`, {dataType, shape});
    const builder = new MLGraphBuilder(context);
    const args =
        makeArguments(inputsOf(builder), inputsOf(new MLGraphBuilder(context)));
    assert_throws_js(TypeError, () => builder[operator](...args));
    context.destroy();
  }, `[${operator}] Throw if ${wrong}.`);
}

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const builder = new MLGraphBuilder(context);
  const input = builder.input('input', {dataType: 'float32', shape: [1]});
  const {max} = context.opSupportLimits().reshape.output.rankRange;
  assert_throws_js(
      TypeError, () => builder.reshape(input, new Array(max + 1).fill(1)));
}, '[reshape] Throw if the rank of the new shape is beyond the limits.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const builder = new MLGraphBuilder(context);
  const input = builder.input('input', {dataType: 'float32', shape: [1]});
  const {max} = context.opSupportLimits().expand.output.rankRange;
  assert_throws_js(
      TypeError, () => builder.expand(input, new Array(max + 1).fill(1)));
}, '[expand] Throw if the rank of the new shape is beyond the limits.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const builder = new MLGraphBuilder(context);
  const input = builder.input('input', {dataType: 'float32', shape: [1]});
  const {dataTypes} = context.opSupportLimits().cast.output;
  const all = ['float32', 'float16', 'int32', 'uint32', 'int64', 'uint64', 'int8', 'uint8'];
  for (const dataType of all) {
    if (dataTypes.includes(dataType)) {
      assert_equals(builder.cast(input, dataType).dataType, dataType);
    } else {
      assert_throws_js(TypeError, () => builder.cast(input, dataType), dataType);
    }
  }
}, '[cast] Throw if the data type is beyond the limits.');
