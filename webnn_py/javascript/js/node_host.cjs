// Node's side of the protocol: read what to do, do it, say that it is done; meanwhile scripts call the host.
'use strict';

const fs = require('node:fs');
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
const withheld = process.argv.includes('allow-wasm') ? ['console'] : ['console', 'WebAssembly'];
vm.runInContext(`for (const name of ${JSON.stringify(withheld)}) delete globalThis[name];`, realm);

// Getters of this realm work on the views of the other, whatever a script has made of its own.
const viewPrototype = Object.getPrototypeOf(Uint8Array.prototype);
const [bufferOf, offsetOf, lengthOf] = ['buffer', 'byteOffset', 'byteLength']
    .map((name) => Object.getOwnPropertyDescriptor(viewPrototype, name).get);

// Bytes go to scripts as an ArrayBuffer of their own realm.
function toRealm(payload) {
  if (payload === null) return null;
  const bytes = new RealmUint8Array(payload.length);
  viewPrototype.set.call(bytes, payload);
  return bufferOf.call(bytes);
}

function ask(text, bytes) {
  const own = bytes === null ? null : new Uint8Array(bufferOf.call(bytes), offsetOf.call(bytes), lengthOf.call(bytes));
  write('C', text, own);
  return read();
}

// The runtime, and what enters it, in the realm of scripts: an object of this realm, be it an exception of a full
// stack, would hand a script all that Node can do.
let payload = null;
const glue = vm.runInContext(`(function (send, take) {
  'use strict';
  const own = {__proto__: null, parse: JSON.parse, String, RangeError, TypeError, SyntaxError};
  const guarded = (body) => {
    try {
      return body();
    } catch {
      throw new own.RangeError('Maximum call stack size exceeded');
    }
  };
  const runtime = {
    __proto__: null,
    slots: new WeakMap(),
    send: (text, bytes) => [guarded(() => send(text, bytes)), guarded(take)],
  };
  const isError = (error) => typeof error === 'object' && error !== null && 'message' in error;
  return {
    __proto__: null,
    runtime,
    call: (name, text, bytes) => void runtime[name](own.parse(text), bytes),
    refusal: (message) => new own.TypeError(message),
    syntaxError: (message) => new own.SyntaxError(message),
    shown(error) {
      try {
        return [isError(error) ? \`\${error.name}: \${error.message}\` : own.String(error),
                isError(error) ? \`\${error.stack}\` : ''];
      } catch {
        return ['Error: an exception that cannot be shown', ''];
      }
    },
  };
})`, realm, {filename: 'webnn_py:prelude.js'})((text, bytes) => {
  const answer = ask(text, bytes);
  payload = toRealm(answer.payload);
  return answer.text;
}, () => {
  const taken = payload;
  payload = null;
  return taken;
});
const {runtime} = glue;

// --- modules: the host says which file is meant, and what is in it -----------------------------------------------

const modules = new Map();
let linked = Promise.resolve();  // modules are linked one after the other: Node refuses one that is being linked

function module_(source, name) {
  const made = new vm.SourceTextModule(source, {
    context: realm,
    identifier: name,
    initializeImportMeta: (meta) => { meta.url = `file:///${name}`; },
    importModuleDynamically: importFrom,
  });
  modules.set(name, made);
  return made;
}

// The module that an import means. What is wrong with its text is told without a piece of it.
function link(specifier, referrer, attributes) {
  if (Object.keys(attributes).length > 0) {
    const words = `cannot import ${JSON.stringify(specifier)} in ${referrer.identifier}: import attributes`;
    throw glue.refusal(`${words} are not supported; fetch() reads other files than modules`);
  }
  const {text, payload: source} = ask(JSON.stringify({module: specifier, from: referrer.identifier}), null);
  const answer = JSON.parse(text);
  if (answer.error) throw glue.refusal(answer.error.message);
  const known = modules.get(answer.value);
  if (known !== undefined) return known;
  try {
    return module_(source.toString(), answer.value);
  } catch {
    throw glue.syntaxError(`cannot import ${answer.value} in ${referrer.identifier}: it is not a JavaScript module`);
  }
}

async function evaluated(made) {
  const linking = linked.then(async () => {
    if (made.status === 'unlinked') await made.link((specifier, referrer, {attributes}) => link(specifier, referrer, attributes));
  });
  linked = linking.catch(() => {});
  await linking;
  await made.evaluate();
}

async function importFrom(specifier, referrer, attributes) {
  try {
    const found = link(specifier, {identifier: referrer?.identifier ?? scriptName}, attributes);
    await evaluated(found);
    return found;
  } catch (error) {
    throw error instanceof Error ? glue.refusal(error.message) : error;
  }
}

async function evaluateModule(source, name) {
  try {
    await evaluated(module_(source, name));
  } catch (error) {
    runtime.reportError(error);
  }
  ask(JSON.stringify({evaluated: name}), null);
}

// --- what to do --------------------------------------------------------------------------------------------------

let scriptName = '';

const DOES = {
  // Text that one of these evaluates for a script, a timer's, may import: without a function of ours Node would reject it
  // with an error of its own realm.
  load: ({source, name}) => vm.runInContext(
      `(${source}\n)`, realm, {filename: `webnn_py:${name}`, importModuleDynamically: importFrom})(runtime),
  evaluate: ({source, name}) => {
    scriptName = name;
    vm.runInContext(source, realm, {filename: name, importModuleDynamically: importFrom});
  },
  module: ({source, name}) => {
    scriptName = name;
    evaluateModule(source, name);
  },
  call: ({function: name, argument}, bytes) => glue.call(name, argument, toRealm(bytes)),
};

function report(error) {
  const shown = glue.shown(error);
  return JSON.stringify({message: shown[0], stack: shown[1]});
}

// Within one turn of Node's loop nothing runs microtasks; "jobs" ends the turn, and the next says that they ran.
function turn() {
  for (;;) {
    const {text, payload: bytes} = read();
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
      DOES[message.do](message, bytes);
    } catch (thrown) {
      error = report(thrown);
    }
    write('D', error, null);
  }
}

process.on('SIGINT', () => {});  // Ctrl-C is the parent's, which ends this process
process.on('unhandledRejection', (reason, promise) => runtime.reportRejection(reason, promise));
process.on('uncaughtException', (error) => runtime.reportError(error));
turn();
