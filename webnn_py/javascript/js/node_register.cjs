// `import 'webnn-py/register'`: starts the Python process that webnn_py runs in, unless one serves this program already,
// and installs navigator.ml and WebNN's interfaces as globals, here and in the threads and processes to come.
'use strict';

const {spawn} = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const START_SECONDS = 60;
const RETRY_MILLISECONDS = 10;

const words = (text) => (text ?? '').split(/\s+/).filter((word) => word !== '');

function refuse(text) {
  const command = process.env.WEBNN_PY_COMMAND;
  const hint = command === undefined ? 'WEBNN_PY_COMMAND names another command, such as "/path/to/python -m webnn_py"'
      : `WEBNN_PY_COMMAND is ${JSON.stringify(command)}`;
  throw new Error(`webnn-py/register: ${text}; ${hint}`);
}

// Start the host, which ends when its standard input does, with this process; return its folder once it serves. The
// shell leaves word if the host ends before.
function start() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'webnn_py-'));
  const command = words(process.env.WEBNN_PY_COMMAND ?? 'webnn-py');
  const log = path.join(folder, 'errors');
  const errors = fs.openSync(log, 'w');
  const host = spawn('/bin/sh', ['-c', '"$@"; : 2>/dev/null >"$0/refused"', folder, ...command, 'node',
                                 ...words(process.env.WEBNN_PY_OPTIONS)],
                     {stdio: ['pipe', 'inherit', errors], env: {...process.env, WEBNN_PY_SERVE: folder}});
  fs.closeSync(errors);
  host.unref();
  host.stdin.unref();
  const still = new Int32Array(new SharedArrayBuffer(4));
  for (const until = Date.now() + 1000 * START_SECONDS; Date.now() < until;) {
    if (fs.existsSync(path.join(folder, 'realm.json'))) return folder;
    if (fs.existsSync(path.join(folder, 'refused'))) break;
    Atomics.wait(still, 0, 0, RETRY_MILLISECONDS);
  }
  const text = fs.readFileSync(log, 'utf8').trim();
  fs.rmSync(folder, {recursive: true});
  return refuse(text === '' ? `${command.join(' ')} did not start within ${START_SECONDS} s` : text);
}

if (globalThis[Symbol.for('webnn_py')] === undefined) {
  const folder = process.env.WEBNN_PY_HOST ?? start();
  const {client} = JSON.parse(fs.readFileSync(path.join(folder, 'realm.json'), 'utf8'));
  if (process.env.WEBNN_PY_HOST === undefined) {
    const quoted = client.replaceAll('\\', '\\\\').replaceAll('"', '\\"');
    process.env.WEBNN_PY_HOST = folder;
    process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --require="${quoted}"`.trimStart();
  }
  require(client);
}
