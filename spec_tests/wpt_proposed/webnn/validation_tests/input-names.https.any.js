// META: title=names of inputs of MLGraphBuilder
// META: global=window,worker
// META: variant=?cpu
// META: variant=?gpu
// META: variant=?npu

'use strict';

// https://www.w3.org/TR/webnn/#api-mlgraphbuilder-input

const contextOptions = {deviceType: location.search.substring(1)};
const descriptor = {dataType: 'float32', shape: [2]};

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const builder = new MLGraphBuilder(context);
  builder.input('input', descriptor);
  assert_throws_js(TypeError, () => builder.input('input', descriptor));
  assert_throws_js(
      TypeError,
      () => builder.input('input', {dataType: 'int32', shape: [3]}));
}, 'Throw if another input of the builder has the name.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  new MLGraphBuilder(context).input('input', descriptor);
  new MLGraphBuilder(context).input('input', descriptor);
}, 'Inputs of two builders may have one name.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const builder = new MLGraphBuilder(context);
  const refused = {dataType: 'float32', shape: [0]};
  assert_throws_js(TypeError, () => builder.input('input', refused));
  builder.input('input', descriptor);
}, 'The name of an input that was refused can be used.');

promise_test(async t => {
  const context = await navigator.ml.createContext(contextOptions);
  const builder = new MLGraphBuilder(context);
  // Both become U+FFFD when they are converted to USVString.
  builder.input('\uD800', descriptor);
  assert_throws_js(TypeError, () => builder.input('\uDBFF', descriptor));
}, 'Names are compared once they are converted to USVString.');
