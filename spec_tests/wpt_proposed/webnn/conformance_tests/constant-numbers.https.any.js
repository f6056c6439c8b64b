// META: title=numbers that become scalar constants
// META: global=window,worker
// META: variant=?cpu
// META: variant=?gpu
// META: variant=?npu

'use strict';

// https://www.w3.org/TR/webnn/#api-mlgraphbuilder-constant-datatype-value
// https://www.w3.org/TR/webnn/#algorithms-casting

const contextOptions = {deviceType: location.search.substring(1)};

const arrays = {
  float32: Float32Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  int8: Int8Array,
  uint8: Uint8Array,
};

// The data type, the number, what it becomes, and what this shows.
const cast = [
  ['float32', 1.5, 1.5, 'a number that the data type has'],
  ['float32', 16777217, 16777216, 'halves go to the even neighbour'],
  ['float32', -0, -0, 'negative zero'],
  ['float32', 1e-46, 0, 'a number too small for the data type'],
  ['float32', -1e-46, -0, 'a negative number too small for the data type'],
  ['float32', 3.5e38, Infinity, 'a number too large for the data type'],
  ['float32', -Infinity, -Infinity, 'an infinity'],
  ['float32', NaN, NaN, 'NaN'],
  ['float32', 16777217n, 16777216, 'a BigInt is rounded'],
  ['int32', 2.5, 2, 'halves go to the even integer'],
  ['int32', 3.5, 4, 'halves go to the even integer above'],
  ['int32', -0.5, 0, 'a small negative number'],
  ['int32', 2 ** 40, 2 ** 31 - 1, 'a number beyond the range'],
  ['int32', -Infinity, -(2 ** 31), 'an infinity'],
  ['int32', NaN, 0, 'NaN'],
  ['int32', 7n, 7, 'a BigInt'],
  ['uint32', 2 ** 32 - 1, 2 ** 32 - 1, 'the largest number'],
  ['uint32', -1, 0, 'a number below the range'],
  ['int8', 127.5, 127, 'a number that would round beyond the range'],
  ['int8', -200, -128, 'a number below the range'],
  ['uint8', 255.4, 255, 'a number above the range'],
  ['uint8', NaN, 0, 'NaN'],
  ['int64', 2n ** 53n + 1n, 2n ** 53n + 1n, 'a BigInt that no Number is'],
  ['int64', 2n ** 70n, 2n ** 63n - 1n, 'a BigInt beyond the range'],
  ['int64', Infinity, 2n ** 63n - 1n, 'an infinity'],
  ['uint64', 2n ** 64n - 1n, 2n ** 64n - 1n, 'the largest number'],
  ['uint64', -1n, 0n, 'a BigInt below the range'],
];

const shown = (value) => Object.is(value, -0) ? '-0' : String(value);

for (const [dataType, value, expected, shows] of cast) {
  promise_test(async t => {
    const context = await navigator.ml.createContext(contextOptions);
    const {dataTypes} = context.opSupportLimits().identity.input;
    if (!dataTypes.includes(dataType)) {
      return;
    }
    const builder = new MLGraphBuilder(context);
    const constant = builder.constant(dataType, value);
    assert_equals(constant.dataType, dataType);
    assert_array_equals(constant.shape, []);
    const graph = await builder.build({output: builder.identity(constant)});
    const output =
        await context.createTensor({dataType, shape: [], readable: true});
    context.dispatch(graph, {}, {output});
    const result = new arrays[dataType](await context.readTensor(output));
    assert_equals(shown(result[0]), shown(expected));
    context.destroy();
  }, `constant('${dataType}', ${shown(value)}${typeof value === 'bigint' ? 'n' : ''}): ${shows}`);
}

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const builder = new MLGraphBuilder(context);
  const input = builder.input('input', {dataType: 'float32', shape: [2]});
  await builder.build({output: builder.relu(input)});
  assert_throws_dom('InvalidStateError', () => builder.constant('float32', 1));
}, 'constant(dataType, value): throw if the builder has built.');
