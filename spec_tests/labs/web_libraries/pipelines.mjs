// Three pipelines of transformers.js on the models of the folder given, on WebNN, or in Node's own build on its CPU
// provider, whose results are printed as JSON.
import fs from 'node:fs';
import {env, pipeline} from '@huggingface/transformers';

const [folder, device] = process.argv.slice(2);
const {tokens, samples, sentences} = JSON.parse(fs.readFileSync(`${folder}/questions.json`, 'utf8'));
env.allowRemoteModels = false;
env.allowLocalModels = true;
env.localModelPath = `${folder}/`;
if (device === 'webnn') {
  env.backends.onnx.wasm.wasmPaths = new URL('./node_modules/onnxruntime-web/dist/', import.meta.url).href;
}

const sizes = {batch_size: 1, sequence_length: tokens, num_samples: samples};
const options = device !== 'webnn' ? {dtype: 'fp32'}
    : {dtype: 'fp32', device, session_options: {freeDimensionOverrides: sizes, logSeverityLevel: 1}};

// A pipeline of texts pads them to the longest of a call; a graph of WebNN has one size.
function padded(pipe) {
  const {tokenizer} = pipe;
  pipe.tokenizer = (texts, given) => tokenizer(texts, {...given, padding: 'max_length', max_length: tokens});
  return pipe;
}

async function ofEach(pipe, inputs, given) {
  const results = [];
  for (const input of inputs) results.push(await pipe(input, given));
  return results;
}

const audio = new Float32Array(fs.readFileSync(`${folder}/recording`).buffer.slice(0));
const extractor = padded(await pipeline('feature-extraction', 'features', options));
const features = (await ofEach(extractor, sentences, {pooling: 'mean', normalize: true})).map((one) => [...one.data]);
const classifier = padded(await pipeline('text-classification', 'classes', options));
const classes = await ofEach(classifier, sentences, {top_k: null});
const listener = await pipeline('automatic-speech-recognition', 'speech', options);
const {text} = await listener(audio);
await Promise.all([extractor, classifier, listener].map((pipe) => pipe.dispose()));
fs.writeSync(1, JSON.stringify({features, classes, text}));
process.exit(0);
