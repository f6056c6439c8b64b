// Node's side of the protocol: read what to do, do it, say that it is done; meanwhile scripts call the host.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const url = require('node:url');
const vm = require('node:vm');

// --- frames: kind, bytes of text, bytes of payload (-1: none), text, payload -------------------------------------

const HEADER = 13;

function readExactly(length) {
  const buffer = Buffer.allocUnsafeSlow(length);
  for (let at = 0; at < length;) {
    const count = fs.readSync(0, buffer, at, length - at, null);
    if (count === 0) process.exit(0);
    at += count;
  }
  return buffer;
}

function writeAll(buffer) {
  for (let at = 0; at < buffer.length;) at += fs.writeSync(1, buffer, at);
}

function write(kind, text, payload) {
  const data = Buffer.from(text);
  const head = Buffer.allocUnsafe(HEADER + data.length);
  head.write(kind, 0, 'latin1');
  head.writeUInt32LE(data.length, 1);
  head.writeBigInt64LE(BigInt(payload === null ? -1 : payload.byteLength), 5);
  data.copy(head, HEADER);
  writeAll(head);
  if (payload !== null) writeAll(payload);
}

function read() {
  const head = readExactly(HEADER);
  const text = readExactly(head.readUInt32LE(1)).toString();
  const length = Number(head.readBigInt64LE(5));
  return {text, payload: length < 0 ? null : readExactly(length)};
}

// --- the realm of scripts: the language and nothing of Node ------------------------------------------------------

const realm = vm.createContext(vm.constants.DONT_CONTEXTIFY);
const RealmUint8Array = vm.runInContext('Uint8Array', realm);
vm.runInContext('for (const name of ["console", "WebAssembly"]) delete globalThis[name];', realm);

// Bytes go to scripts as an ArrayBuffer of their own realm.
function toRealm(payload) {
  if (payload === null) return null;
  const bytes = new RealmUint8Array(payload.length);
  bytes.set(payload);
  return bytes.buffer;
}

const runtime = vm.runInContext('({slots: new WeakMap()})', realm);
const pair = vm.runInContext('(a, b) => [a, b]', realm);
runtime.send = (text, bytes) => {
  const view = bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  write('C', text, view);
  const answer = read();
  return pair(answer.text, toRealm(answer.payload));
};
const parse = vm.runInContext('JSON.parse', realm);

// --- modules: relative imports of local files --------------------------------------------------------------------

const modules = new Map();

function module_(source, file) {
  const made = new vm.SourceTextModule(source, {
    context: realm,
    identifier: file,
    initializeImportMeta: (meta) => { meta.url = url.pathToFileURL(file).href; },
  });
  modules.set(file, made);
  return made;
}

function link(specifier, referrer) {
  if (!/^\.{0,2}\//.test(specifier)) throw new Error(`cannot import ${specifier}: only files, by ./name.js`);
  const file = path.resolve(path.dirname(referrer.identifier), specifier);
  return modules.get(file) ?? module_(fs.readFileSync(file, 'utf8'), file);
}

async function evaluateModule(source, name) {
  try {
    const made = module_(source, path.resolve(name));
    await made.link(link);
    await made.evaluate();
  } catch (error) {
    runtime.reportError(error);
  }
}

// --- what to do --------------------------------------------------------------------------------------------------

const DOES = {
  load: ({source, name}) => vm.runInContext(`(${source}\n)`, realm, {filename: name})(runtime),
  evaluate: ({source, name}) => void vm.runInContext(source, realm, {filename: name}),
  module: ({source, name}) => void evaluateModule(source, name),
  call: ({function: name, argument}, payload) => runtime[name](parse(argument), toRealm(payload)),
};

function report(error) {
  const isError = typeof error === 'object' && error !== null && 'message' in error;
  const message = isError ? `${error.name}: ${error.message}` : String(error);
  return JSON.stringify({message, stack: isError ? `${error.stack}` : ''});
}

// Within one turn of Node's loop nothing runs microtasks; "jobs" ends the turn, and the next says that they ran.
function turn() {
  for (;;) {
    const {text, payload} = read();
    const message = JSON.parse(text);
    if (message.do === 'jobs') {
      setImmediate(() => {
        write('D', 'null', null);
        turn();
      });
      return;
    }
    let error = 'null';
    try {
      DOES[message.do](message, payload);
    } catch (thrown) {
      error = report(thrown);
    }
    write('D', error, null);
  }
}

process.on('unhandledRejection', (reason, promise) => runtime.reportRejection(reason, promise));
process.on('uncaughtException', (error) => runtime.reportError(error));
turn();
