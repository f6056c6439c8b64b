// META: title=tensors are written, read, destroyed
// META: variant=?cpu
// META: variant=?gpu
// META: script=resources/helpers.js

'use strict';

const descriptor = {dataType: 'float32', shape: [2], readable: true, writable: true};

promise_test(async () => {
  const context = await newContext();
  const tensor = await context.createTensor(descriptor);
  assert_equals(tensor.dataType, 'float32');
  assert_array_equals(tensor.shape, [2]);
  assert_true(Object.isFrozen(tensor.shape));
  assert_true(tensor.shape === tensor.shape, 'always the same array');
  assert_array_equals(new Float32Array(await context.readTensor(tensor)), [0, 0]);
}, 'a new tensor is all zero');

promise_test(async () => {
  const context = await newContext();
  const tensor = await context.createTensor(descriptor);
  const bytes = new Float32Array([1, 2]);
  context.writeTensor(tensor, bytes);
  bytes.fill(9);
  const into = new SharedArrayBuffer(8);
  assert_equals(await context.readTensor(tensor, into), undefined);
  assert_array_equals(new Float32Array(into), [1, 2]);
}, 'bytes are copied by the call, and read into a shared buffer');

promise_test(async (t) => {
  const context = await newContext();
  const tensor = await context.createTensor(descriptor);
  const reads = [context.readTensor(tensor), context.readTensor(tensor)];
  tensor.destroy();
  await promise_rejects_dom(t, 'InvalidStateError', reads[0]);
  await promise_rejects_dom(t, 'InvalidStateError', reads[1]);
  await promise_rejects_dom(t, 'InvalidStateError', context.readTensor(tensor));
}, 'destroy() rejects pending reads');

promise_test(async (t) => {
  const context = await newContext();
  const tensor = await context.createTensor(descriptor);
  const into = new ArrayBuffer(8);
  const read = context.readTensor(tensor, into);
  into.transfer();
  await promise_rejects_js(t, TypeError, read);
}, 'a buffer that is detached while the read is pending is not written');

promise_test(async () => {
  const context = await newContext();
  const tensor = await context.createConstantTensor({dataType: 'float32', shape: [1]}, new Float32Array([5]));
  assert_true(tensor.constant);
  const builder = new MLGraphBuilder(context);
  assert_array_equals(builder.constant(tensor).shape, [1]);
}, 'a constant tensor becomes a constant operand');

promise_test(async (t) => {
  const context = await newContext();
  const tensor = await context.createTensor(descriptor);
  const read = context.readTensor(tensor);
  context.destroy();
  const {message} = await context.lost;
  assert_equals(typeof message, 'string');
  await promise_rejects_dom(t, 'InvalidStateError', read);
  await promise_rejects_dom(t, 'InvalidStateError', context.createTensor(descriptor));
}, 'a destroyed context is lost, and rejects what is pending');
