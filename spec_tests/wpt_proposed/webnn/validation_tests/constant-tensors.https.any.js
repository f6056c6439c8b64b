// META: title=constant tensors
// META: global=window,worker
// META: variant=?cpu
// META: variant=?gpu
// META: variant=?npu

'use strict';

// https://www.w3.org/TR/webnn/#api-mlcontext-createconstanttensor
// https://www.w3.org/TR/webnn/#api-mlgraphbuilder-constant-tensor

const contextOptions = {deviceType: location.search.substring(1)};
const descriptor = {dataType: 'float32', shape: [2]};
const data = new Float32Array([1, 2]);

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  context.destroy();
  await promise_rejects_dom(
      t, 'InvalidStateError', context.createConstantTensor(descriptor, data));
}, 'createConstantTensor(): reject if the context is lost.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  for (const shape of [[0], [2, 0], [2 ** 31]]) {
    await promise_rejects_js(
        t, TypeError,
        context.createConstantTensor({dataType: 'float32', shape}, data));
  }
}, 'createConstantTensor(): reject if a dimension is not valid.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  await promise_rejects_js(
      t, TypeError,
      context.createConstantTensor(descriptor, new Float32Array(3)));
  await promise_rejects_js(
      t, TypeError, context.createConstantTensor(descriptor, new ArrayBuffer(7)));
}, 'createConstantTensor(): reject if the bytes are not as many as the tensor has.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  await promise_rejects_js(
      t, TypeError, context.createConstantTensor(descriptor, new Int32Array(2)));
}, 'createConstantTensor(): reject if the view is of another data type.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const tensor = await context.createConstantTensor(descriptor, data);
  assert_true(tensor.constant);
  assert_false(tensor.readable);
  assert_false(tensor.writable);
  assert_equals(tensor.dataType, 'float32');
  assert_array_equals(tensor.shape, [2]);
  await promise_rejects_js(t, TypeError, context.readTensor(tensor));
  assert_throws_js(TypeError, () => context.writeTensor(tensor, data));
}, 'A constant tensor can neither be read nor written.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const constant = await context.createConstantTensor(descriptor, data);
  const builder = new MLGraphBuilder(context);
  const graph =
      await builder.build({output: builder.relu(builder.input('input', descriptor))});
  const tensor = await context.createTensor(descriptor);
  assert_throws_js(
      TypeError,
      () => context.dispatch(graph, {input: constant}, {output: tensor}));
  assert_throws_js(
      TypeError,
      () => context.dispatch(graph, {input: tensor}, {output: constant}));
}, 'dispatch(): throw if a tensor is constant.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const other = await navigator.ml.createContext(contextOptions);
  const tensor = await other.createConstantTensor(descriptor, data);
  const builder = new MLGraphBuilder(context);
  assert_throws_js(TypeError, () => builder.constant(tensor));
}, 'constant(tensor): throw if the tensor is of another context.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const tensor = await context.createConstantTensor(descriptor, data);
  tensor.destroy();
  const builder = new MLGraphBuilder(context);
  let error;
  try {
    builder.constant(tensor);
  } catch (caught) {
    error = caught;
  }
  assert_in_array(error?.name, ['TypeError', 'InvalidStateError']);
}, 'constant(tensor): throw if the tensor is destroyed.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const tensor = await context.createTensor(descriptor);
  const builder = new MLGraphBuilder(context);
  assert_throws_js(TypeError, () => builder.constant(tensor));
}, 'constant(tensor): throw if the tensor is not constant.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const tensor = await context.createConstantTensor(descriptor, data);
  const builder = new MLGraphBuilder(context);
  await builder.build({output: builder.relu(builder.input('input', descriptor))});
  assert_throws_dom('InvalidStateError', () => builder.constant(tensor));
}, 'constant(tensor): throw if the builder has built.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const tensor = await context.createConstantTensor(descriptor, data);
  const builder = new MLGraphBuilder(context);
  const output = builder.relu(builder.constant(tensor));
  tensor.destroy();
  const error = await builder.build({output}).then(() => undefined, caught => caught);
  assert_in_array(error?.name, ['TypeError', 'InvalidStateError']);
}, 'build(): reject if a constant tensor that the graph needs is destroyed.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const bytes = new Float32Array([1, 2]);
  const promise = context.createConstantTensor(descriptor, bytes);
  bytes.fill(9);
  const tensor = await promise;
  const builder = new MLGraphBuilder(context);
  const input = builder.input('input', descriptor);
  const constant = builder.constant(tensor);
  assert_equals(constant.dataType, 'float32');
  assert_array_equals(constant.shape, [2]);
  const graph = await builder.build({output: builder.add(input, constant)});
  // The graph stays as it is.
  tensor.destroy();
  const given = await context.createTensor({...descriptor, writable: true});
  const result = await context.createTensor({...descriptor, readable: true});
  context.writeTensor(given, new Float32Array([10, 20]));
  context.dispatch(graph, {input: given}, {output: result});
  assert_array_equals(
      new Float32Array(await context.readTensor(result)), [11, 22]);
}, 'A graph has the bytes of the call of createConstantTensor().');
