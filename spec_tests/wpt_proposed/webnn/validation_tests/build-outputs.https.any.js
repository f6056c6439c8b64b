// META: title=outputs that MLGraphBuilder.build() refuses
// META: global=window,worker
// META: variant=?cpu
// META: variant=?gpu
// META: variant=?npu

'use strict';

// https://www.w3.org/TR/webnn/#api-mlgraphbuilder-build

const contextOptions = {deviceType: location.search.substring(1)};
const descriptor = {dataType: 'float32', shape: [2]};

async function makeBuilder() {
  const context = await navigator.ml.createContext(contextOptions);
  const builder = new MLGraphBuilder(context);
  const input = builder.input('input', descriptor);
  return {context, builder, input, output: builder.relu(input)};
}

promise_test(async t => {
  const {builder} = await makeBuilder();
  await promise_rejects_js(t, TypeError, builder.build({}));
}, 'Reject if there are no outputs.');

promise_test(async t => {
  const {builder, output} = await makeBuilder();
  await promise_rejects_js(t, TypeError, builder.build({'': output}));
}, 'Reject if the name of an output is empty.');

promise_test(async t => {
  const {builder, output} = await makeBuilder();
  await promise_rejects_js(t, TypeError, builder.build({output, '': output}));
}, 'Reject if the name of one of several outputs is empty.');

promise_test(async t => {
  const {context, builder, output} = await makeBuilder();
  const otherBuilder = new MLGraphBuilder(context);
  const other = otherBuilder.relu(otherBuilder.input('input', descriptor));
  await promise_rejects_js(t, TypeError, builder.build({other}));
  await promise_rejects_js(t, TypeError, builder.build({output, other}));
}, 'Reject if an output belongs to another builder.');

promise_test(async t => {
  const {builder, input} = await makeBuilder();
  await promise_rejects_js(t, TypeError, builder.build({output: input}));
}, 'Reject if an output is an input.');

promise_test(async t => {
  const {builder} = await makeBuilder();
  const constant = builder.constant(descriptor, new Float32Array(2));
  await promise_rejects_js(t, TypeError, builder.build({output: constant}));
}, 'Reject if an output is a constant.');

promise_test(async t => {
  const {builder} = await makeBuilder();
  const constant = builder.constant('float32', 1);
  await promise_rejects_js(t, TypeError, builder.build({output: constant}));
}, 'Reject if an output is a scalar constant.');

promise_test(async t => {
  const {builder, output} = await makeBuilder();
  await promise_rejects_js(t, TypeError, builder.build({}));
  const graph = await builder.build({output});
  assert_true(graph instanceof MLGraph);
}, 'The builder can build after a build was rejected for its outputs.');

promise_test(async t => {
  const {builder, input, output} = await makeBuilder();
  await promise_rejects_js(t, TypeError, builder.build({output: input}));
  assert_array_equals(builder.add(input, output).shape, [2]);
}, 'Operators can be added after a build was rejected for its outputs.');

promise_test(async t => {
  const {context, builder, output} = await makeBuilder();
  context.destroy();
  await promise_rejects_dom(t, 'InvalidStateError', builder.build({}));
  await promise_rejects_dom(t, 'InvalidStateError', builder.build({'': output}));
}, 'The context is checked before the outputs are.');
