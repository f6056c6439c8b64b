// What programs are played with, in a browser and here.
const ARRAYS = {
  float32: Float32Array, float16: globalThis.Float16Array, int32: Int32Array, uint32: Uint32Array,
  int64: BigInt64Array, uint64: BigUint64Array, int8: Int8Array, uint8: Uint8Array,
};
const data = (type, values) => new ARRAYS[type](values);
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');

// How far a program has come, told with an error.
let stage;

// Build the graph, compute it once, and give its outputs.
async function compute(context, builder, outputs, inputs) {
  const told = {};
  for (const [name, {dataType, shape}] of Object.entries(outputs)) told[name] = {dataType, shape: [...shape]};
  stage = 'build';
  const graph = await builder.build(outputs);
  stage = 'compute';
  const [given, taken] = [{}, {}];
  for (const [name, {array, ...descriptor}] of Object.entries(inputs)) {
    given[name] = await context.createTensor({...descriptor, writable: true});
    context.writeTensor(given[name], array);
  }
  for (const name of Object.keys(told)) taken[name] = await context.createTensor({...told[name], readable: true});
  context.dispatch(graph, given, taken);
  for (const name of Object.keys(told)) told[name].bytes = hex(await context.readTensor(taken[name]));
  return {outputs: told};
}

// What a program gives, as JSON.
async function play(program) {
  stage = 'call';
  let context;
  const open = async () => context = await navigator.ml.createContext();
  const run = async () => {
    try {
      return await program(open);
    } catch (error) {
      return {stage, error: error?.name ?? 'thrown', message: String(error?.message ?? error)};
    }
  };
  let timer;
  const late = new Promise((done) => {
    timer = setTimeout(() => done({stage, error: 'hangs', message: 'it has no end'}), 20000);
  });
  const result = await Promise.race([run(), late]);
  clearTimeout(timer);
  try {
    context?.destroy();
  } catch {
    // It is lost already.
  }
  return JSON.stringify(result);
}
