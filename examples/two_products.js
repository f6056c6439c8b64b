// The specification's first example, written anew: two products and their sum, computed twice with one graph.
//
//     webnn-py node examples/two_products.js

'use strict';

const descriptor = {dataType: 'float32', shape: [2, 2]};

// y = 0.5 · a + weights · b, element by element
function draw(builder) {
  const weights = builder.constant(descriptor, new Float32Array([1, 2, 3, 4]));
  const a = builder.input('a', descriptor);
  const b = builder.input('b', descriptor);
  const half = builder.constant('float32', 0.5);
  return {y: builder.add(builder.mul(a, half), builder.mul(b, weights), {label: 'sum'})};
}

async function main() {
  const context = await navigator.ml.createContext({powerPreference: 'low-power'});
  const builder = new MLGraphBuilder(context);
  const graph = await builder.build(draw(builder));
  const [a, b, y] = await Promise.all([
    context.createTensor({...descriptor, writable: true}),
    context.createTensor({...descriptor, writable: true}),
    context.createTensor({...descriptor, readable: true}),
  ]);
  context.writeTensor(b, new Float32Array([1, 1, 1, 1]));

  // Nothing is awaited in between: every operation is queued behind the ones before it.
  const results = [[2, 2, 2, 2], [20, 20, 20, 20]].map((values) => {
    context.writeTensor(a, new Float32Array(values));
    context.dispatch(graph, {a, b}, {y});
    return context.readTensor(y);
  });
  for (const result of await Promise.all(results)) console.log('y =', new Float32Array(result));

  // A tensor that is destroyed while it is read rejects the read at once.
  const late = context.readTensor(y);
  y.destroy();
  await late.catch((error) => console.log(error.name));
  context.destroy();
}

main();
