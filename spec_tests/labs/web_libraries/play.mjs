// Runs models with onnxruntime-web: each job of the folder given, in order, from the one of the number given.
//
// A job is a folder with model.onnx, job.json ({inputs: {name: {type, dims, file}}}) and the inputs' bytes. What comes of
// it goes into result.json and files beside it. After a session that failed no other is right, so the process ends.
import fs from 'node:fs';
import {createRequire} from 'node:module';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const [folder, first, project, provider] = process.argv.slice(2);
const found = createRequire(path.join(project, 'package.json')).resolve('onnxruntime-web/all');
const ort = await import(pathToFileURL(path.join(path.dirname(found), 'ort.all.bundle.min.mjs')));
ort.env.wasm.numThreads = 1;

const VIEWS = {
  float32: Float32Array, float64: Float64Array, int64: BigInt64Array, uint64: BigUint64Array, int32: Int32Array,
  uint32: Uint32Array, int16: Int16Array, uint16: Uint16Array, float16: globalThis.Float16Array ?? Uint16Array,
  int8: Int8Array, uint8: Uint8Array, bool: Uint8Array,
};

async function play(job) {
  const {inputs} = JSON.parse(fs.readFileSync(path.join(job, 'job.json'), 'utf8'));
  const session = await ort.InferenceSession.create(path.join(job, 'model.onnx'), {
    executionProviders: provider === 'webnn' ? [{name: 'webnn', deviceType: 'cpu'}] : [provider], logSeverityLevel: 1});
  const feeds = {};
  for (const [name, {type, dims, file}] of Object.entries(inputs)) {
    const bytes = fs.readFileSync(path.join(job, file));
    feeds[name] = new ort.Tensor(type, new VIEWS[type](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)), dims);
  }
  const began = performance.now();
  const results = await session.run(feeds);
  const milliseconds = performance.now() - began;
  const outputs = {};
  for (const [index, name] of Object.keys(results).entries()) {
    const {type, dims, data} = results[name];
    outputs[name] = {type, dims, file: `output${index}`};
    fs.writeFileSync(path.join(job, `output${index}`), new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }
  await session.release();
  return {outputs, milliseconds};
}

for (let number = Number(first); fs.existsSync(path.join(folder, `${number}`)); number += 1) {
  const job = path.join(folder, `${number}`);
  fs.writeSync(2, `job ${number}\n`);
  let result;
  try {
    result = await play(job);
  } catch (error) {
    result = {error: `${error?.message ?? error}`};
  }
  fs.writeFileSync(path.join(job, 'result.json'), JSON.stringify(result));
  if (result.error !== undefined) break;
}
process.exit(0);
