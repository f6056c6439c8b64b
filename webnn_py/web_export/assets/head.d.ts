// Types of model.js. WebNN's own (MLContext, MLGraph, MLTensor) are those of the package @webmachinelearning/webnn-types,
// or of whatever declares them.

export interface Descriptor {
  dataType: "float32" | "float16" | "int32" | "uint32" | "int64" | "uint64" | "int8" | "uint8";
  shape: number[];
}

/** What the graph is. */
export const facts: {title: string; operators: number; weightBytes: number; writtenBy: string};

/** Descriptors of inputs and outputs. */
export const inputs: Record<keyof Inputs, Descriptor>;
export const outputs: Record<keyof Outputs, Descriptor>;

/** Draw the graph and compile it; `weights` is what weights.bin contains. */
export function build(context: MLContext, weights: ArrayBuffer): Promise<MLGraph>;

/** The contents of weights.bin, which stands beside model.js. */
export function fetchWeights(): Promise<ArrayBuffer>;

/** The graph, ready to run; context and weights are made and fetched if they are not given. */
export function load(options?: {
  context?: MLContext;
  contextOptions?: MLContextOptions;
  weights?: ArrayBuffer;
}): Promise<Model>;

/** A graph with tensors for its inputs and outputs. */
export class Model {
  readonly context: MLContext;
  readonly graph: MLGraph;
  readonly inputTensors: Record<keyof Inputs, MLTensor>;
  readonly outputTensors: Record<keyof Outputs, MLTensor>;
  constructor(
    context: MLContext,
    graph: MLGraph,
    inputTensors: Record<keyof Inputs, MLTensor>,
    outputTensors: Record<keyof Outputs, MLTensor>,
  );
  /** Write the inputs, dispatch, and read the outputs; calls may overlap. */
  run(arrays: Inputs): Promise<Outputs>;
  /** Give back the graph's and the tensors' memory; the context is left to its owner. */
  destroy(): void;
}

