// The API in a Node program that `webnn-py node` has started, in each of its threads and processes: a preloaded module.
//
// The host is another process. WEBNN_PY_HOST names its folder, in which each thread takes for itself two named pipes, for
// calls and their synchronous answers, and a socket for events, the settlements of promises, which come by Node's event loop.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');

const OLDEST_NODE = 20;
const HEADER = 12;
const ROOM = 2 ** 16;
const CONNECT_SECONDS = 60;
const RETRY_MILLISECONDS = 5;
const FOREVER = 2 ** 31 - 1;
const HOST_ENDED = 'the process that runs webnn_py has ended';

// As they are now: test runners replace some of them while they run.
const {closeSync, openSync, readSync, readdirSync, renameSync, writeSync} = fs;
const {clearInterval, setImmediate, setInterval} = globalThis;

// --- frames: bytes of text, bytes of payload (-1: none), text, payload -------------------------------------------

class Lost extends Error {}

function writeAll(file, bytes) {
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at, bytes.length - at, null);
}

let outgoing = Buffer.allocUnsafeSlow(ROOM);

// Write a frame, a short one at once: each write may wake the host.
function writeFrame(file, text, payload) {
  const most = HEADER + 3 * text.length;
  const isShort = payload !== null && payload.length <= ROOM;
  if (most + (isShort ? ROOM : 0) > outgoing.length) outgoing = Buffer.allocUnsafeSlow(most + ROOM);
  let end = HEADER + outgoing.write(text, HEADER);
  outgoing.writeUInt32LE(end - HEADER, 0);
  outgoing.writeBigInt64LE(BigInt(payload === null ? -1 : payload.length), 4);
  if (isShort) {
    outgoing.set(payload, end);
    end += payload.length;
  }
  writeAll(file, outgoing.subarray(0, end));
  if (payload !== null && !isShort) writeAll(file, payload);
}

const incoming = Buffer.allocUnsafeSlow(ROOM);

// Read an answer, which is all that there is to read.
function readAnswer(file) {
  let room = incoming;
  let have = 0;
  for (let total = HEADER; have < total;) {
    const count = readSync(file, room, have, room.length - have, null);
    if (count === 0) throw new Lost(HOST_ENDED);
    have += count;
    if (have < HEADER) continue;
    total = lengthOfFrame(room, 0);
    if (total > room.length) {
      const larger = Buffer.allocUnsafeSlow(total);
      room.copy(larger, 0, 0, have);
      room = larger;
    }
  }
  return frameIn(room, 0);
}

function lengthOfFrame(room, at) {
  return HEADER + room.readUInt32LE(at) + Math.max(0, Number(room.readBigInt64LE(at + 4)));
}

function frameIn(room, at) {
  const textEnd = at + HEADER + room.readUInt32LE(at);
  const length = Number(room.readBigInt64LE(at + 4));
  const text = room.toString('utf8', at + HEADER, textEnd);
  return [text, length < 0 ? null : room.buffer.slice(room.byteOffset + textEnd, room.byteOffset + textEnd + length)];
}

// --- the connection of this thread -------------------------------------------------------------------------------

function pause(milliseconds) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

// Take what no other thread has: only one rename of a folder succeeds.
function claim(folder) {
  for (const until = Date.now() + 1000 * CONNECT_SECONDS; Date.now() < until; pause(RETRY_MILLISECONDS)) {
    for (const name of readdirSync(folder)) {
      if (!name.startsWith('free-')) continue;
      const own = path.join(folder, name.replace('free-', 'used-'));
      try {
        renameSync(path.join(folder, name), own);
        return own;
      } catch (error) {
        if (error.code !== 'ENOENT') throw error;
      }
    }
  }
  throw new Error(`no answer in ${CONNECT_SECONDS} s`);
}

function open(folder) {
  const own = claim(folder);
  const {O_WRONLY, O_NONBLOCK} = fs.constants;
  const probe = openSync(path.join(own, 'calls'), O_WRONLY | O_NONBLOCK);  // fails, and does not wait, without a host
  const calls = openSync(path.join(own, 'calls'), 'w');
  closeSync(probe);
  return {calls, answers: openSync(path.join(own, 'answers'), 'r'), events: path.join(own, 'events')};
}

class Connection {
  #folder;
  #pipes = null;
  #lost = null;
  #socket = null;
  #pending = new Set();
  #receive;
  #abandon;
  #refusal;
  #received = [];
  #header = Buffer.allocUnsafeSlow(HEADER);
  #room = this.#header;
  #have = 0;
  #scheduled = false;

  constructor(folder, {receive, abandon, refusal}) {
    this.#folder = folder;
    this.#receive = receive;
    this.#abandon = abandon;
    this.#refusal = refusal;
  }

  // Send a call, and return its answer.
  send(text, payload) {
    return this.#exchange(text, payload, () => readAnswer(this.#pipes.answers));
  }

  // Send a call that gets no answer.
  post(text, payload) {
    this.#exchange(text, payload, () => {});
  }

  #exchange(text, payload, read) {
    if (this.#lost !== null) throw this.#refusal(this.#lost);
    try {
      if (this.#pipes === null) this.#connect();
      writeFrame(this.#pipes.calls, text, payload);
      return read();
    } catch (error) {
      this.#end(error instanceof Lost || error.code !== undefined ? HOST_ENDED : error.message);
      throw this.#refusal(this.#lost);
    }
  }

  // A promise that is pending keeps the program alive, as a request does.
  expect(promise) {
    this.#pending.add(promise);
    if (this.#pending.size === 1) this.#socket.ref();
  }

  #connect() {
    const {connect} = require('node:net');
    this.#pipes = open(this.#folder);
    const callback = (count, buffer) => {
      this.#take(buffer.subarray(0, count));
      return true;
    };
    this.#socket = connect({path: this.#pipes.events, onread: {buffer: Buffer.allocUnsafeSlow(ROOM), callback}});
    this.#socket.on('error', () => {});
    this.#socket.on('close', () => this.#end(HOST_ENDED));
    this.#socket.unref();
  }

  // Put bytes together to events. The first is delivered now, each other in a task of its own.
  #take(bytes) {
    for (let at = 0; at < bytes.length;) {
      if (this.#have === 0 && bytes.length - at >= HEADER) {
        const whole = lengthOfFrame(bytes, at);
        if (bytes.length - at >= whole) {
          this.#received.push(frameIn(bytes, at));
          at += whole;
          continue;
        }
      }
      const count = bytes.copy(this.#room, this.#have, at);
      at += count;
      this.#have += count;
      if (this.#have < this.#room.length) break;
      if (this.#have === HEADER) {
        this.#room = Buffer.allocUnsafeSlow(lengthOfFrame(this.#header, 0));
        this.#header.copy(this.#room);
      } else {
        this.#received.push(frameIn(this.#room, 0));
        this.#room = this.#header;
        this.#have = 0;
      }
    }
    if (!this.#scheduled) this.#deliver();
  }

  #deliver() {
    this.#scheduled = false;
    const next = this.#received.shift();
    if (next === undefined) return;
    if (this.#received.length > 0) {
      this.#scheduled = true;
      setImmediate(() => this.#deliver());
    }
    const settlement = JSON.parse(next[0]);
    if (this.#pending.delete(settlement.promise) && this.#pending.size === 0) this.#socket.unref();
    this.#receive(settlement, next[1]);
  }

  #end(message) {
    if (this.#lost !== null) return;
    this.#lost = `webnn-py: ${message}`;
    this.#socket?.destroy();
    this.#abandon(this.#lost);
  }
}

// --- the globals -------------------------------------------------------------------------------------------------

function navigatorOf(global) {
  if (global.navigator !== undefined) return;  // Node has one since its version 21
  class Navigator {}
  Object.defineProperty(Navigator.prototype, Symbol.toStringTag, {value: 'Navigator', configurable: true});
  Object.defineProperty(global, 'Navigator', {value: Navigator, writable: true, configurable: true});
  const navigator = new Navigator();
  Object.defineProperty(global, 'navigator', {get: () => navigator, configurable: true, enumerable: true});
}

// What libraries for browsers look at, and Node lacks: the class of WebGPU's devices, which none is of here.
function webGpuOf(global) {
  if (global.GPUDevice !== undefined) return;
  class GPUDevice {
    constructor() { throw new TypeError('Illegal constructor'); }
  }
  Object.defineProperty(global, 'GPUDevice', {value: GPUDevice, writable: true, configurable: true});
}

// The scope of a page's dedicated worker, by which libraries that run in browsers and in Node tell them apart. Of classes it
// has that one alone: what looks for WorkerGlobalScope next imports scripts by URL.
function workerScopeOf(global) {
  class DedicatedWorkerGlobalScope {
    constructor() { throw new TypeError('Illegal constructor'); }
  }
  const values = {DedicatedWorkerGlobalScope, constructor: DedicatedWorkerGlobalScope, self: global};
  for (const [name, value] of Object.entries(values)) {
    Object.defineProperty(global, name, {value, writable: true, configurable: true});
  }
  const release = {...process.release, name: 'webnn-py'};
  Object.defineProperty(process, 'release', {value: release, enumerable: true, configurable: true});
}

// import() of the `blob:` URLs of scripts. Node's loader runs in a thread of its own, which gets the blobs by a port.
function blobModulesOf(global) {
  const {register} = require('node:module');
  if (register === undefined) return;  // Node has it since its version 20.6
  const ofNode = global.URL.createObjectURL;
  let port = null;
  const {createObjectURL} = {
    createObjectURL(blob) {
      const url = ofNode.call(this, blob);
      if (!/\bjavascript\b/.test(blob.type)) return url;
      if (port === null) {
        const {port1, port2} = new MessageChannel();
        const hooks = require('node:url').pathToFileURL(path.join(__dirname, 'node_blobs.mjs'));
        register(hooks, {data: port2, transferList: [port2]});
        port = port1;
        port.unref();
      }
      port.postMessage({url, blob});
      return url;
    },
  };
  Object.defineProperty(global.URL, 'createObjectURL', {value: createObjectURL, writable: true, enumerable: true, configurable: true});
}

// While WebAssembly compiles, Node's loop would end if nothing else were waited for; Node then runs what follows only
// when its optimizing compiler has ended, too, which for a library of 28 MB takes minutes.
function webAssemblyOf(global) {
  for (const name of ['compile', 'compileStreaming', 'instantiate', 'instantiateStreaming']) {
    const ofNode = global.WebAssembly[name];
    const {method} = {
      async method(...values) {
        const alive = setInterval(() => {}, FOREVER);
        try {
          return await ofNode.apply(this, values);
        } finally {
          clearInterval(alive);
        }
      },
    };
    Object.defineProperty(method, 'name', {value: name, configurable: true});
    Object.defineProperty(global.WebAssembly, name, {value: method, writable: true, configurable: true});
  }
}

// fetch() of files, too: `file:` URLs, and relative ones, from the folder in which the program runs.
function fetchOf(global) {
  const {fetch: ofNode} = global;
  const {fileURLToPath, pathToFileURL} = require('node:url');
  const typeOf = (file) => ({'.wasm': 'application/wasm', '.json': 'application/json'})[path.extname(file)] ?? '';
  async function fetch(resource, options) {
    const {signal, method = 'GET'} = options ?? {};
    if (typeof resource !== 'string' && !(resource instanceof URL)) return ofNode(resource, options);
    const url = URL.canParse(`${resource}`) ? new URL(resource) : new URL(`${resource}`, pathToFileURL(`${process.cwd()}/`));
    if (url.protocol !== 'file:' || method !== 'GET') return ofNode(resource, options);
    signal?.throwIfAborted();
    const file = fileURLToPath(`file://${url.pathname}`);
    let blob;
    try {
      blob = await fs.openAsBlob(file, {type: typeOf(file)});
    } catch {
      return new Response(null, {status: 404, statusText: 'Not Found'});
    }
    return new Response(blob, {headers: {'content-length': `${blob.size}`}});
  }
  Object.defineProperty(global, 'fetch', {value: fetch, writable: true, enumerable: true, configurable: true});
}

function install(folder) {
  const {description, files, webWorker} = JSON.parse(fs.readFileSync(path.join(folder, 'realm.json'), 'utf8'));
  const runtime = {__proto__: null, slots: new WeakMap(), DOMException, description, folder: __dirname};
  const connection = new Connection(folder, {
    receive: (settlement, bytes) => runtime.settle(settlement, bytes),
    abandon: (message) => runtime.abandon(message),
    refusal: (message) => runtime.ours(new DOMException(message, 'UnknownError')),
  });
  runtime.send = (text, payload) => connection.send(text, payload);
  runtime.post = (text, payload) => connection.post(text, payload);
  let numbered = 0;  // downwards: the host's own numbers go upwards
  runtime.promiseNumber = () => {
    numbered -= 1;
    return numbered;
  };
  navigatorOf(globalThis);
  webGpuOf(globalThis);
  webAssemblyOf(globalThis);
  fetchOf(globalThis);
  if (webWorker) {
    workerScopeOf(globalThis);
    blobModulesOf(globalThis);
  }
  for (const {name, source} of files) {
    vm.runInThisContext(`(${source}\n)`, {filename: `webnn_py:${name}`})(runtime);
    if (name !== 'calls.js') continue;
    const {ask} = runtime;
    runtime.ask = (message, bytes = null) => {
      const answered = ask(message, bytes);
      const promise = answered.answer.promise ?? answered.answer.expected;  // the latter of the loss by destroy()
      if (promise !== undefined) connection.expect(promise);
      return answered;
    };
  }
}

const folder = process.env.WEBNN_PY_HOST;
const mark = Symbol.for('webnn_py');
if (folder !== undefined && globalThis[mark] === undefined) {
  if (parseInt(process.versions.node, 10) < OLDEST_NODE) {
    throw new Error(`webnn-py needs Node ${OLDEST_NODE} or later; this is Node ${process.versions.node}`);
  }
  if (fs.existsSync(path.join(folder, 'realm.json'))) {
    Object.defineProperty(globalThis, mark, {value: true});
    install(folder);
  } else {
    process.emitWarning(`${HOST_ENDED}; there is no navigator.ml`, 'WebNNWarning');
  }
}
