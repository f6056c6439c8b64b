// Runs one file of web-platform-tests: node wpt_window.cjs JOB. The scope is a window's without a document; the job's scripts
// run in one task, for between the scripts of a page no promise of the harness may be settled. Results are lines of JSON on
// the standard output.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const {Console} = require('node:console');
const {Writable} = require('node:stream');
const vm = require('node:vm');

const {scripts, harness, location, isolated, folders, given, aliases} = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const {exit} = process;

function tell(message) {
  const line = Buffer.from(`${JSON.stringify(message)}\n`);
  for (let at = 0; at < line.length;) at += fs.writeSync(1, line, at);
}

const install = (name, value) =>
    Object.defineProperty(globalThis, name, {value, writable: true, configurable: true, enumerable: false});

// --- the scope ---------------------------------------------------------------------------------------------------

// No `document`: testharness.js would then look for elements to show results in.
install('self', globalThis);
install('window', globalThis);
install('Window', class Window {
  static [Symbol.hasInstance](value) { return value === globalThis; }
});
install('GLOBAL', {isWindow: () => true, isWorker: () => false, isShadowRealm: () => false});
install('location', Object.freeze({...location, toString: () => location.href}));
install('crossOriginIsolated', isolated);
install('isSecureContext', true);

const log = new Writable({
  write(chunk, encoding, done) {
    tell({log: `${chunk}`.trimEnd()});
    done();
  },
});
install('console', new Console({stdout: log, stderr: log}));

// Files of the checkout.
install('fetch', async (resource) => {
  const url = new URL(`${resource}`, location.href);
  if (url.origin !== location.origin) throw new TypeError(`fetch(): ${url} is not a file of the checkout`);
  const asked = decodeURIComponent(url.pathname).slice(1);
  const name = aliases[asked] ?? asked;
  if (given[name] !== undefined) return new Response(given[name]);
  const file = folders.map((folder) => path.join(folder, name)).find((one) => fs.statSync(one, {throwIfNoEntry: false})?.isFile());
  return file === undefined ? new Response(null, {status: 404}) : new Response(fs.readFileSync(file));
});

// --- events ------------------------------------------------------------------------------------------------------

const events = new EventTarget();
for (const name of ['addEventListener', 'removeEventListener', 'dispatchEvent']) install(name, events[name].bind(events));
const dispatch = (type, properties) =>
    events.dispatchEvent(Object.assign(new Event(type, {cancelable: true}), properties));

const textOf = (error) => error instanceof Error ? `${error.name}: ${error.message}` : String(error);

let reporting = false;
function reportError(error) {
  let unhandled = true;
  if (!reporting) {
    reporting = true;  // the exceptions of a listener are not events
    unhandled = dispatch('error', {message: `Uncaught ${textOf(error)}`, error, filename: '', lineno: 0, colno: 0});
    setImmediate(() => { reporting = false; });
  }
  if (unhandled) tell({log: `uncaught: ${error?.stack ?? textOf(error)}`});
}
install('reportError', reportError);
process.on('uncaughtException', reportError);
process.on('unhandledRejection', (reason, promise) => {
  if (dispatch('unhandledrejection', {reason, promise})) tell({log: `unhandled: ${reason?.stack ?? textOf(reason)}`});
});

// --- the scripts -------------------------------------------------------------------------------------------------

function watch() {
  const statuses = ['PASS', 'FAIL', 'TIMEOUT', 'NOTRUN', 'PRECONDITION_FAILED'];
  // A test is reported when it is made, and again when it starts.
  globalThis.add_test_state_callback((test) => tell({known: test.index, name: test.name, started: test.phase > 0}));
  globalThis.add_result_callback((test) => tell({
    ended: test.index, name: test.name, status: statuses[test.status], message: test.message ?? null}));
  globalThis.add_completion_callback((tests, {status, message}) => {
    tell({harness: ['OK', 'ERROR', 'TIMEOUT', 'PRECONDITION_FAILED'][status], message: message ?? null});
    exit(0);
  });
}

for (const {name, source} of scripts) {
  try {
    vm.runInThisContext(source, {filename: name});
  } catch (error) {
    reportError(error);
  }
  if (name === harness) watch();
}
