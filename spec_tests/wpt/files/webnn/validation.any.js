// META: title=what is refused, and how
// META: script=/webnn/resources/helpers.js

'use strict';

promise_test(async () => {
  const builder = new MLGraphBuilder(await newContext());
  const input = builder.input('x', {dataType: 'float32', shape: [2]});
  const label = 'the\u0000label';
  try {
    builder.softmax(input, 1, {label: 'my_softmax'});
    assert_unreached('axis 1 of rank 1');
  } catch (error) {
    assert_equals(error.constructor, TypeError);
    assert_true(error.message.includes('[my_softmax]'), error.message);
  }
  assert_throws_js(TypeError, () => builder.input('x', {dataType: 'float32', shape: [2]}), 'the same name again');
  assert_equals(builder.relu(input, {label}).dataType, 'float32');
}, '[softmax] a refusal says the label');

promise_test(async (t) => {
  const context = await newContext();
  await promise_rejects_js(t, TypeError, context.createTensor({dataType: 'float32'}), 'shape is required');
  await promise_rejects_js(t, TypeError, context.createTensor({dataType: 'float33', shape: []}), 'no such data type');
  await promise_rejects_js(t, TypeError, MLContext.prototype.createTensor.call({}, {dataType: 'float32', shape: []}));
  assert_throws_js(TypeError, () => context.dispatch(), 'arguments are missing');
}, 'methods that return a promise reject it, others throw');

promise_test(async () => {
  const context = await newContext();
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', {dataType: 'float32', shape: [2]});
  await builder.build({y: builder.neg(x)});
  assert_throws_dom('InvalidStateError', () => builder.neg(x));
  assert_throws_js(TypeError, () => MLGraphBuilder(context), 'new is needed');
  assert_throws_js(TypeError, () => new MLContext(), 'not constructible');
}, 'a builder builds once');

promise_test(async () => {
  const limits = (await newContext()).opSupportLimits();
  assert_equals(limits.conv2d.input.rankRange.min, 4);
  assert_in_array('float16', limits.relu.input.dataTypes);
  assert_array_equals(Object.keys(limits.relu.input), ['dataTypes', 'rankRange']);
}, 'the support limits are plain objects');
