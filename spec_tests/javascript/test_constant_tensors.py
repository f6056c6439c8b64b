"""Constant tensors in scripts: graphs share one, and outlive it."""

import pytest

from spec_tests.support.backends import BACKENDS

CONSTANT_TENSOR = """
const context = await navigator.ml.createContext();
const weights = {dataType: 'float32', shape: [4, 4]};
const data = Float32Array.from({length: 16}, (_, index) => index / 8);
const tensor = await context.createConstantTensor(weights, data);
async function build(length, constantOf) {
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', {dataType: 'float32', shape: [length, 4]});
  return builder.build({y: builder.matmul(x, constantOf(builder))});
}
async function run(graph, length) {
  const descriptor = {dataType: 'float32', shape: [length, 4]};
  const x = await context.createTensor({...descriptor, writable: true});
  const y = await context.createTensor({...descriptor, readable: true});
  context.writeTensor(x, Float32Array.from({length: 4 * length}, (_, index) => index - 3));
  context.dispatch(graph, {x}, {y});
  return new Float32Array(await context.readTensor(y)).join();
}
const lengths = [3, 1];  // a prompt and a step
const shared = await Promise.all(lengths.map((length) => build(length, (builder) => builder.constant(tensor))));
const copied = await Promise.all(lengths.map((length) => build(length, (builder) => builder.constant(weights, data))));
console.log(tensor.constant, tensor.readable, tensor.writable);
tensor.destroy();
data.fill(0);
for (const index of [0, 1]) {
  const results = await Promise.all([shared, copied].map((graphs) => run(graphs[index], lengths[index])));
  console.log(results[0] === results[1], results[0].length > 4);
}
try {
  await build(1, (builder) => builder.constant(tensor));
} catch ({name}) {
  console.log(name);
}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", BACKENDS)
def test_graphs_share_a_constant_tensor_that_is_destroyed(run, backend):
    said = run(CONSTANT_TENSOR, "--backend", backend)
    assert said == ["true false false", "true true", "true true", "InvalidStateError"]
