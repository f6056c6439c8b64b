'use strict';

const newContext = () => navigator.ml.createContext();

// Build and run a graph of float32 operands: draw(builder, operands) returns the named outputs.
async function compute(draw, inputs) {
  const context = await newContext();
  const builder = new MLGraphBuilder(context);
  const operands = {};
  for (const [name, {shape}] of Object.entries(inputs)) {
    operands[name] = builder.input(name, {dataType: 'float32', shape});
  }
  const outputs = draw(builder, operands);
  const graph = await builder.build(outputs);
  const given = {};
  for (const [name, {shape, data}] of Object.entries(inputs)) {
    given[name] = await context.createTensor({dataType: 'float32', shape, writable: true});
    context.writeTensor(given[name], new Float32Array(data));
  }
  const taken = {};
  for (const [name, {shape}] of Object.entries(outputs)) {
    taken[name] = await context.createTensor({dataType: 'float32', shape, readable: true});
  }
  context.dispatch(graph, given, taken);
  const results = {};
  for (const name of Object.keys(taken)) results[name] = new Float32Array(await context.readTensor(taken[name]));
  return results;
}
