// META: title=graphs give the results that arithmetic says
// META: script=resources/helpers.js
// META: timeout=long

'use strict';

promise_test(async () => {
  const {y} = await compute((builder, {a, b}) => ({y: builder.add(a, b)}), {
    a: {shape: [3], data: [1, 2, 3]},
    b: {shape: [], data: [10]},
  });
  assert_array_equals(y, [11, 12, 13]);
}, 'add float32 broadcasts a scalar');

promise_test(async () => {
  const {y} = await compute((builder, {x}) => ({
    y: builder.matmul(x, builder.constant({dataType: 'float32', shape: [2, 1]}, new Float32Array([10, 100]))),
  }), {x: {shape: [2, 2], data: [1, 2, 3, 4]}});
  assert_array_equals(y, [210, 430]);
}, 'matmul float32 with a constant');

promise_test(async () => {
  const outputs = await compute((builder, {x}) => {
    const [first, second] = builder.split(x, 2, {axis: 1});
    return {first: builder.identity(first), second: builder.neg(second)};
  }, {x: {shape: [1, 4], data: [1, 2, 3, 4]}});
  assert_array_equals(outputs.first, [1, 2]);
  assert_array_equals(outputs.second, [-3, -4]);
}, 'split float32 returns a sequence of operands');

promise_test(async () => {
  const {y} = await compute((builder, {x}) => ({y: builder.averagePool2d(x, {windowDimensions: [2, 2]})}), {
    x: {shape: [1, 1, 2, 2], data: [1, 2, 3, 6]},
  });
  assert_array_equals(y, [3]);
}, 'averagePool2d float32 with a window');

promise_test(async () => {
  const context = await newContext();
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', {dataType: 'int64', shape: [2]});
  const graph = await builder.build({y: builder.add(x, builder.constant('int64', 2n ** 53n))});
  const given = await context.createTensor({dataType: 'int64', shape: [2], writable: true});
  const taken = await context.createTensor({dataType: 'int64', shape: [2], readable: true});
  context.writeTensor(given, BigInt64Array.of(1n, -1n));
  context.dispatch(graph, {x: given}, {y: taken});
  assert_array_equals(new BigInt64Array(await context.readTensor(taken)), [2n ** 53n + 1n, 2n ** 53n - 1n]);
}, 'add int64 keeps every bit of a BigInt');
