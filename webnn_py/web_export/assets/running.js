
// From here on this file is the same for every graph.

const VIEWS = {
  float32: Float32Array,
  float16: globalThis.Float16Array ?? Uint16Array, // the bits, where an engine has no such array
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  int8: Int8Array,
  uint8: Uint8Array,
};

const elementCount = (shape) => shape.reduce((product, size) => product * size, 1);

// What a constant is made from: its elements, or as many as it has from a byte of the weights on.
function contentsOf(weights, dataType, shape, data) {
  if (typeof data !== 'number') return new VIEWS[dataType](data);
  const View = VIEWS[dataType];
  const length = elementCount(shape);
  // Float16Array is the only view that float16 may have; a copy of the bytes does where there is none.
  if (dataType === 'float16' && View === Uint16Array) return weights.slice(data, data + length * View.BYTES_PER_ELEMENT);
  return new View(weights, data, length);
}

/** The contents of weights.bin, which stands beside this file. */
export async function fetchWeights() {
  if (facts.weightBytes === 0) return new ArrayBuffer(0);
  const url = new URL('./weights.bin', import.meta.url);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: HTTP status ${response.status}`);
  const weights = await response.arrayBuffer();
  if (weights.byteLength !== facts.weightBytes) {
    throw new Error(`${url} has ${weights.byteLength} bytes instead of ${facts.weightBytes}: it is another graph's`);
  }
  return weights;
}

/** The graph, ready to run; context and weights are made and fetched if they are not given. */
export async function load({context, contextOptions, weights} = {}) {
  if (context === undefined) {
    if (globalThis.navigator?.ml === undefined) {
      throw new Error('There is no WebNN here: navigator.ml is missing. Chromium has it behind ' +
          '--enable-features=WebMachineLearningNeuralNetwork, for https: and http://localhost only.');
    }
    context = await navigator.ml.createContext(contextOptions);
  }
  const graph = await build(context, weights ?? await fetchWeights());
  const create = async (descriptors, usage) => Object.fromEntries(await Promise.all(
    Object.entries(descriptors).map(async ([name, descriptor]) =>
      [name, await context.createTensor({...descriptor, ...usage})])));
  return new Model(context, graph, await create(inputs, {writable: true}), await create(outputs, {readable: true}));
}

/** A graph with tensors for its inputs and outputs. */
export class Model {
  constructor(context, graph, inputTensors, outputTensors) {
    this.context = context;
    this.graph = graph;
    this.inputTensors = inputTensors;
    this.outputTensors = outputTensors;
  }

  /** Write the inputs, dispatch, and read the outputs; calls may overlap. */
  async run(arrays) {
    for (const [name, {dataType, shape}] of Object.entries(inputs)) {
      const array = arrays[name];
      const wanted = elementCount(shape) * VIEWS[dataType].BYTES_PER_ELEMENT;
      if (array?.byteLength !== wanted) {
        throw new TypeError(`run(): ${name} has ${array?.byteLength ?? 'no'} bytes; it must be ${dataType} ` +
            `[${shape.join(', ')}], ${wanted} bytes`);
      }
    }
    for (const [name, tensor] of Object.entries(this.inputTensors)) {
      const array = arrays[name];
      const isBits = inputs[name].dataType === 'float16' && array instanceof Uint16Array;
      this.context.writeTensor(tensor, isBits ? array.slice().buffer : array);
    }
    this.context.dispatch(this.graph, this.inputTensors, this.outputTensors);
    const read = Object.entries(this.outputTensors).map(async ([name, tensor]) =>
      [name, new VIEWS[outputs[name].dataType](await this.context.readTensor(tensor))]);
    return Object.fromEntries(await Promise.all(read));
  }

  /** Give back the graph's and the tensors' memory; the context is left to its owner. */
  destroy() {
    this.graph.destroy();
    for (const tensor of [...Object.values(this.inputTensors), ...Object.values(this.outputTensors)]) tensor.destroy();
  }
}
