// META: title=tensors that MLContext's methods refuse
// META: global=window,worker
// META: variant=?cpu
// META: variant=?gpu
// META: variant=?npu

'use strict';

// https://www.w3.org/TR/webnn/#api-mlcontext

const contextOptions = {deviceType: location.search.substring(1)};
const descriptor = {dataType: 'float32', shape: [2]};

async function makeGraph(context) {
  const builder = new MLGraphBuilder(context);
  return builder.build({output: builder.relu(builder.input('input', descriptor))});
}

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const tensor = await context.createTensor({...descriptor, writable: true});
  await promise_rejects_js(t, TypeError, context.readTensor(tensor));
}, 'readTensor(tensor): reject if the tensor is not readable.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const tensor = await context.createTensor({...descriptor, writable: true});
  await promise_rejects_js(
      t, TypeError, context.readTensor(tensor, new Float32Array(2)));
}, 'readTensor(tensor, outputData): reject if the tensor is not readable.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const other = await navigator.ml.createContext(contextOptions);
  const tensor = await other.createTensor({...descriptor, readable: true});
  await promise_rejects_js(
      t, TypeError, context.readTensor(tensor, new Float32Array(2)));
}, 'readTensor(tensor, outputData): reject if the tensor is of another context.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const tensor = await context.createTensor({...descriptor, readable: true});
  const small = new Float32Array([7]);
  await promise_rejects_js(t, TypeError, context.readTensor(tensor, small));
  assert_equals(small[0], 7);
}, 'readTensor(tensor, outputData): reject if the buffer is too small.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const tensor = await context.createTensor({...descriptor, readable: true});
  const promise = context.readTensor(tensor, new Float32Array(1));
  tensor.destroy();
  await promise_rejects_js(t, TypeError, promise);
}, 'readTensor(tensor, outputData): the buffer is checked before anything else can happen.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const tensor = await context.createTensor({...descriptor, readable: true});
  assert_throws_js(
      TypeError, () => context.writeTensor(tensor, new Float32Array(2)));
}, 'writeTensor(): throw if the tensor is not writable.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const graph = await makeGraph(context);
  const input = await context.createTensor({...descriptor, writable: true});
  const output = await context.createTensor({...descriptor, readable: true});
  context.dispatch(graph, {input}, {output});
  input.destroy();
  let error;
  try {
    context.dispatch(graph, {input}, {output});
  } catch (caught) {
    error = caught;
  }
  // The text has a TypeError; implementations an InvalidStateError.
  assert_in_array(error?.name, ['TypeError', 'InvalidStateError']);
}, 'dispatch(): throw if an input is destroyed.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const graph = await makeGraph(context);
  const input = await context.createTensor({...descriptor, writable: true});
  const output = await context.createTensor({...descriptor, readable: true});
  output.destroy();
  let error;
  try {
    context.dispatch(graph, {input}, {output});
  } catch (caught) {
    error = caught;
  }
  assert_in_array(error?.name, ['TypeError', 'InvalidStateError']);
}, 'dispatch(): throw if an output is destroyed.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const other = await navigator.ml.createContext(contextOptions);
  const graph = await makeGraph(other);
  const input = await context.createTensor(descriptor);
  const output = await context.createTensor(descriptor);
  assert_throws_js(TypeError, () => context.dispatch(graph, {input}, {output}));
}, 'dispatch(): throw if the graph is of another context.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const graph = await makeGraph(context);
  const tensor = await context.createTensor(descriptor);
  assert_throws_js(
      TypeError,
      () => context.dispatch(graph, {input: tensor}, {output: tensor}));
}, 'dispatch(): throw if one tensor is an input and an output.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const graph = await makeGraph(context);
  const input = await context.createTensor(descriptor);
  const output = await context.createTensor(descriptor);
  assert_throws_js(TypeError, () => context.dispatch(graph, {}, {output}));
  assert_throws_js(TypeError, () => context.dispatch(graph, {input}, {}));
  assert_throws_js(
      TypeError,
      () => context.dispatch(graph, {input}, {output, other: input}));
  context.dispatch(graph, {input}, {output});
}, 'dispatch(): throw if a tensor is missing or not of the graph.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const graph = await makeGraph(context);
  const input = await context.createTensor({dataType: 'float32', shape: [1, 2]});
  const output = await context.createTensor(descriptor);
  assert_throws_js(TypeError, () => context.dispatch(graph, {input}, {output}));
  const integers = await context.createTensor({dataType: 'int32', shape: [2]});
  assert_throws_js(
      TypeError, () => context.dispatch(graph, {input: integers}, {output}));
}, 'dispatch(): throw if a tensor has another shape or data type.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const graph = await makeGraph(context);
  const input = await context.createTensor({...descriptor, writable: true});
  const output = await context.createTensor({...descriptor, readable: true});
  context.writeTensor(input, new Float32Array([-1, 2]));
  context.dispatch(graph, {input}, {output});
  graph.destroy();
  assert_array_equals(
      new Float32Array(await context.readTensor(output)), [0, 2]);
  assert_throws_dom(
      'InvalidStateError', () => context.dispatch(graph, {input}, {output}));
}, 'dispatch(): throw if the graph is destroyed, but what was dispatched before runs.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const tensor = await context.createTensor({...descriptor, readable: true});
  const promise = context.readTensor(tensor);
  tensor.destroy();
  await promise_rejects_dom(t, 'InvalidStateError', promise);
}, 'Reads that are pending are rejected when the tensor is destroyed.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const tensor =
      await context.createTensor({...descriptor, readable: true, writable: true});
  const data = new Float32Array([1, 2]);
  context.writeTensor(tensor, data);
  data.fill(9);
  assert_array_equals(
      new Float32Array(await context.readTensor(tensor)), [1, 2]);
}, 'writeTensor() takes the bytes of the call.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const tensor = await context.createTensor({...descriptor, readable: true});
  assert_array_equals(
      new Float32Array(await context.readTensor(tensor)), [0, 0]);
}, 'The bytes of a new tensor are zeros.');
