// The page of a saved graph: it loads the graph, runs it on what is chosen, and shows what comes out.

import {facts, fetchWeights, inputs, load, outputs} from './model.js';

const RUNS = 10;
const FIRST = 4;
const TOP = 5;
const element = (id) => document.getElementById(id);
const worded = ({dataType, shape}) => `${dataType} [${shape.join(', ')}]`;
const count = (shape) => shape.reduce((product, size) => product * size, 1);
const inBytes = (bytes) => bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

const ARRAYS = {
  float32: Float32Array, float16: globalThis.Float16Array, int32: Int32Array, uint32: Uint32Array,
  int64: BigInt64Array, uint64: BigUint64Array, int8: Int8Array, uint8: Uint8Array,
};

function say(text, failed = false) {
  element('state').textContent = text;
  element('state').classList.toggle('failed', failed);
}

function make(tag, text, parent, attributes = {}) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.textContent = text;
  parent.append(made);
  return made;
}

// --- inputs -------------------------------------------------------------------------------------------------------

// Height, width and where the channels are, if an input may be a picture.
function imageOf({shape}) {
  if (shape.length !== 4 || shape[0] !== 1) return null;
  const [, a, b, c] = shape;
  if ([1, 3].includes(a) && b > 7 && c > 7) return {channels: a, height: b, width: c, first: true};
  if ([1, 3].includes(c) && a > 7 && b > 7) return {channels: c, height: a, width: b, first: false};
  return null;
}

const FILLS = ['random', 'zeros', 'ones'];
const choices = {};

function showInputs() {
  for (const [name, descriptor] of Object.entries(inputs)) {
    const label = make('label', `${name}: ${worded(descriptor)}`, element('inputs'));
    const fill = make('select', '', label);
    const image = imageOf(descriptor);
    for (const text of image === null ? FILLS : [...FILLS, 'picture, 0 to 1', 'picture, 0 to 255']) make('option', text, fill);
    const file = make('input', '', label, {type: 'file', accept: 'image/*', hidden: true, ariaLabel: `picture for ${name}`});
    fill.addEventListener('change', () => { file.hidden = !fill.value.startsWith('picture'); });
    choices[name] = {fill, file, image};
  }
}

// The same numbers each time: floats from 0 to 1, integers 0 and 1, which are sure to be indices of something.
function* randomNumbers() {
  for (let state = 1;;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

async function contentsOf(name) {
  const {dataType, shape} = inputs[name];
  const {fill, file, image} = choices[name];
  const View = ARRAYS[dataType];
  if (View === undefined) throw new Error(`${name} is float16, and this browser has no Float16Array`);
  const array = new View(count(shape));
  const isWhole = !dataType.startsWith('float');
  const cast = dataType.endsWith('64') ? BigInt : (value) => value;
  if (fill.value.startsWith('picture')) {
    if (file.files.length === 0) throw new Error(`choose a picture for ${name}`);
    const scale = fill.value.endsWith('255') ? 1 : 1 / 255;
    (await pixelsOf(file.files[0], image)).forEach((value, index) => {
      array[index] = cast(isWhole ? Math.floor(value * scale) : value * scale);
    });
    return array;
  }
  const random = randomNumbers();
  for (let index = 0; index < array.length; index += 1) {
    const value = fill.value === 'random' ? random.next().value : Number(fill.value === 'ones');
    array[index] = cast(isWhole ? Math.round(value) : value);
  }
  return array;
}

// A picture's pixels in the order of an input, stretched to its size.
async function pixelsOf(file, {channels, height, width, first}) {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d');
  context.drawImage(await createImageBitmap(file), 0, 0, width, height);
  const {data} = context.getImageData(0, 0, width, height);
  const size = height * width;
  const pixels = new Float32Array(size * channels);
  for (let pixel = 0; pixel < size; pixel += 1) {
    const [red, green, blue] = data.subarray(4 * pixel, 4 * pixel + 3);
    const values = channels === 3 ? [red, green, blue] : [0.299 * red + 0.587 * green + 0.114 * blue];
    values.forEach((value, channel) => { pixels[first ? channel * size + pixel : pixel * channels + channel] = value; });
  }
  return pixels;
}

// --- outputs ------------------------------------------------------------------------------------------------------

const rounded = (value) => Number.isInteger(value) ? String(value) : Number(value.toPrecision(5)).toString();

function showOutputs(results) {
  element('outputs').replaceChildren();
  element('more').replaceChildren();
  for (const [name, descriptor] of Object.entries(outputs)) {
    const numbers = Array.from(results[name], Number);
    const row = make('tr', '', element('outputs'));
    make('th', name, row, {scope: 'row'});
    make('td', worded(descriptor), row);
    const least = numbers.reduce((a, b) => Math.min(a, b), Infinity);
    const greatest = numbers.reduce((a, b) => Math.max(a, b), -Infinity);
    const mean = numbers.reduce((a, b) => a + b, 0) / numbers.length;
    const shown = numbers.slice(0, FIRST).map(rounded).join(' ') + (numbers.length > FIRST ? ' …' : '');
    for (const text of [...[least, greatest, mean].map(rounded), shown]) make('td', text, row, {className: 'numbers'});
    showMore(name, descriptor, numbers, least, greatest);
  }
  element('results').hidden = false;
}

// A picture of what may be one; of scores of classes the highest.
function showMore(name, descriptor, numbers, least, greatest) {
  const image = imageOf(descriptor);
  const {shape} = descriptor;
  if (image !== null) {
    make('h2', `${name}, from ${rounded(least)} (dark) to ${rounded(greatest)} (light)`, element('more'));
    const {channels, height, width, first} = image;
    const canvas = make('canvas', '', element('more'), {width, height});
    const size = height * width;
    const pixels = new ImageData(width, height);
    for (let pixel = 0; pixel < size; pixel += 1) {
      for (let part = 0; part < 3; part += 1) {
        const channel = part % channels;
        const value = numbers[first ? channel * size + pixel : pixel * channels + channel];
        pixels.data[4 * pixel + part] = 255 * (value - least) / (greatest - least || 1);
      }
      pixels.data[4 * pixel + 3] = 255;
    }
    canvas.getContext('2d').putImageData(pixels, 0, 0);
  } else if (numbers.length > TOP && shape.at(-1) === numbers.length) {
    make('h2', `${name}: the highest`, element('more'));
    const order = numbers.map((_, index) => index).sort((a, b) => numbers[b] - numbers[a]).slice(0, TOP);
    make('p', order.map((index) => `${index}: ${rounded(numbers[index])}`).join(', '), element('more'));
  }
}

// --- the page -----------------------------------------------------------------------------------------------------

const times = {};

async function timed(name, promise) {
  const began = performance.now();
  const result = await promise;
  times[name] = `${(performance.now() - began).toFixed(1)} ms`;
  return result;
}

function showTimes() {
  element('times').replaceChildren();
  for (const [name, text] of Object.entries(times)) {
    const row = make('tr', '', element('times'));
    make('th', name, row, {scope: 'row'});
    make('td', text, row, {className: 'numbers'});
  }
}

let loaded = null;

// The graph on a context of the power preference that is chosen.
async function loadedModel() {
  const powerPreference = element('power').value;
  if (loaded?.powerPreference === powerPreference) return loaded.model;
  loaded?.model.context.destroy();
  loaded = null;
  const context = await timed('createContext()', navigator.ml.createContext({powerPreference}));
  const weights = await timed('fetch of the weights', fetchWeights());
  loaded = {powerPreference, model: await timed('build() and tensors', load({context, weights}))};
  return loaded.model;
}

async function run() {
  element('run').disabled = true;
  try {
    say('Running.');
    const model = await loadedModel();
    const given = {};
    for (const name of Object.keys(inputs)) given[name] = await contentsOf(name);
    const results = await timed('first run', model.run(given));
    const taken = [];
    for (let again = 0; again < RUNS; again += 1) {
      const began = performance.now();
      await model.run(given);
      taken.push(performance.now() - began);
    }
    times[`median of ${RUNS} further runs`] = `${taken.sort((a, b) => a - b)[RUNS / 2].toFixed(2)} ms`;
    showOutputs(results);
    showTimes();
    say('Done.');
  } catch (error) {
    say(`It failed.\n${error.name}: ${error.message}`, true);
  }
  element('run').disabled = false;
}

async function start() {
  element('facts').textContent =
      `${facts.operators} operators, ${inBytes(facts.weightBytes)} of weights, written by ${facts.writtenBy}`;
  showInputs();
  element('form').addEventListener('submit', (event) => {
    event.preventDefault();
    run();
  });
  if (navigator.ml === undefined) {
    const where = isSecureContext ? '' : '\nThis address is not secure: WebNN needs https: or http://localhost.';
    say('This browser has no WebNN: navigator.ml is missing, so the graph cannot run here.' +
        `${where}\nChromium has it with --enable-features=WebMachineLearningNeuralNetwork.`, true);
  } else {
    await run();
  }
  document.documentElement.dataset.ready = 'yes';
}

start();
