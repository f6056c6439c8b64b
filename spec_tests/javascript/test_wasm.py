"""WebAssembly in ``webnn-py js --allow-wasm``: the same in V8 and, by wasmtime, in quickjs-ng; and its limits."""

import sys
from base64 import b64decode
from importlib.util import find_spec

import pytest

from spec_tests.javascript.test_hostile_scripts import POISON
from spec_tests.support.scripts import both_engines, both_with_wasm
from webnn_py.javascript import engine_commands

# (import "host" "twice" (func $twice (param i32) (result i32)))
# (import "host" "pair" (func $pair (result i64 f64)))
# (memory (export "memory") 1 4)
# (global (export "count") (mut i32) (i32.const 7))
# (global (export "pi") f32 (f32.const 3.5))
# (table (export "table") 2 funcref) (elem (i32.const 0) $add)
# (func $add (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
# (func (export "through") (param i32) (result i32) (call $twice (local.get 0)))
# (func (export "pair") (result i64 f64) (call $pair))
# (func (export "long") (param i64) (result i64) (i64.add (local.get 0) (i64.const 1)))
# (func (export "divide") (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
# (func (export "read") (param i32) (result i32) (i32.load (local.get 0)))
# (func (export "trap") unreachable)
# (func $deep (export "deep") (call $deep))
# (func (export "grow") (result i32) (memory.grow (i32.const 1)))
# (func (export "apply") (param i32) (result i32)
#   (call_indirect (param i32 i32) (result i32) (i32.const 4) (i32.const 5) (local.get 0)))
CALLS = (
    "AGFzbQEAAAABHQZgAX8Bf2AAAn58YAJ/fwF/YAF+AX5gAABgAAF/AhoCBGhvc3QFdHdpY2UAAARob3N0BHBhaXIAAQMLCgIAAQMC"
    "AAQEBQAEBAFwAAIFBAEBAQQGDgJ/AUEHC30AQwAAYEALB2oOBm1lbW9yeQIABWNvdW50AwACcGkDAQV0YWJsZQEAA2FkZAACB3Ro"
    "cm91Z2gAAwRwYWlyAAQEbG9uZwAFBmRpdmlkZQAGBHJlYWQABwR0cmFwAAgEZGVlcAAJBGdyb3cACgVhcHBseQALCQcBAEEACwEC"
    "CkkKBwAgACABagsGACAAEAALBAAQAQsHACAAQgF8CwcAIAAgAW0LBwAgACgCAAsDAAALBAAQCQsGAEEBQAALCwBBBEEFIAARAgAL"
    "ACAEbmFtZQEZBAAFdHdpY2UBBHBhaXICA2FkZAkEZGVlcA=="
)
# (func (export "spin") (loop (br 0)))
SPIN = "AGFzbQEAAAABBAFgAAADAgEABwgBBHNwaW4AAAoJAQcAA0AMAAsL"
# (memory (export "memory") 1) (func (export "eat") (local i32) (loop
#   (local.set 0 (memory.grow (i32.const 256)))
#   (if (i32.ne (local.get 0) (i32.const -1)) (then
#     (memory.fill (i32.shl (local.get 0) (i32.const 16)) (i32.const 1) (i32.const 16777216)) (br 1)))))
EAT = "AGFzbQEAAAABBAFgAAADAgEABQMBAAEHEAIGbWVtb3J5AgADZWF0AAAKKQEnAQF/A0BBgAJAACEAIABBf0cEQCAAQRB0QQFBgICACPwLAAwBCwsL"
# (import "e" "memory" (memory 1 4 shared))
# (func (export "add") (result i32) (i32.atomic.rmw.add (i32.const 0) (i32.const 5)))
# (func (export "grow") (result i32) (memory.grow (i32.const 1)))
SHARED = "AGFzbQEAAAABBQFgAAF/Ag4BAWUGbWVtb3J5AgMBBAMDAgAABw4CA2FkZAAABGdyb3cAAQoTAgoAQQBBBf4eAgALBgBBAUAACw=="
# (import "e" "f" (func $f)) (start $f)
STARTED = "AGFzbQEAAAABBAFgAAACBwEBZQFmAAAIAQAACwRuYW1lAQQBAAFm"
# (func $called) (@custom "note" "text")
NAMES = "AGFzbQEAAAABBAFgAAADAgEACgQBAgALAAkEbm90ZXRleHQAEARuYW1lAQkBAAZjYWxsZWQ="

START = """
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const failing = (body) => {
  try {
    return body();
  } catch (error) {
    return `${error.name} ${error instanceof (WebAssembly[error.name] ?? globalThis[error.name])}`;
  }
};
"""

PROGRAM = """
const {Module, Instance, Memory, Table, Global} = WebAssembly;
let inner = () => 0;
const host = {twice: (value) => inner(value), pair: () => [5n, 0.5]};
const {module, instance} = await WebAssembly.instantiate(bytesOf(CALLS), {host});
const {memory, count, pi, table, add, through, pair, long, divide, read, trap, deep, grow, apply} = instance.exports;
console.log(Module.imports(module).map(({module, name, kind}) => [module, name, kind].join('.')).join());
console.log(Module.exports(module).map(({name, kind}) => `${kind} ${name}`).join());
const {exports} = instance;
console.log(Object.isFrozen(exports), Object.getPrototypeOf(exports), Object.keys(exports).length);
console.log(add(2, 3), add('7', -9), add(2 ** 31, 1), add(), add.length, long(2n ** 63n - 1n), pair());
console.log([() => long(1), () => divide(1, 0), () => read(65536), trap, deep].map(failing).join(' '));
inner = (value) => value * 2.9;
console.log(through(5));
inner = () => { throw new EvalError(); };
console.log(failing(() => through(5)));
inner = (value) => value === 0 ? 0 : 1 + through(value - 1);
console.log(through(100), failing(() => { inner = (value) => through(value + 1); through(0); }));
inner = () => Symbol.iterator;
console.log(failing(() => through(1)), add(1, 1));
host.pair = () => 5;
console.log(memory.buffer === memory.buffer, memory.buffer.byteLength, read(8));
const before = memory.buffer;
const view = new Uint32Array(before);
view[2] = 77;
inner = () => { view[2] += 1; return memory.grow(1); };
console.log(read(8), through(0), before.byteLength, view.length, memory.buffer.byteLength, read(8));
const second = new DataView(memory.buffer);
console.log(grow(), failing(() => second.getInt8(0)), memory.buffer.byteLength, failing(() => memory.grow(9)), read(8));
for (const name of ['transfer', 'transferToFixedLength']) console.log(name, failing(() => memory.buffer[name](16)));
console.log(failing(() => structuredClone(memory.buffer, {transfer: [memory.buffer]})), memory.buffer.byteLength);
console.log(structuredClone(memory.buffer).byteLength, new ArrayBuffer(8).transfer(16).byteLength);
console.log(count.value, pi.value, failing(() => { pi.value = 1; }), failing(() => { count.value = 2n; }));
count.value = 2 ** 32 + 9;
console.log(count.value, new Global({value: 'i64'}, -1n).value);
console.log(new Global({value: 'f32'}, 1.1) - 1, new Global({value: 'i32'}).value);
console.log(table.length, table.get(0) === add, table.get(1));
console.log(failing(() => table.get(5)), failing(() => table.set(1, () => 0)));
table.set(1, add);
console.log(apply(1), table.grow(2), table.length, table.get(3), failing(() => apply(2)), failing(() => table.grow(9)));
table.set(0);
console.log(table.get(0), failing(() => apply(0)));
console.log(new Table({initial: 2, maximum: 3, element: 'anyfunc'}, add).get(1) === add);
const again = new Instance(module, {host: {twice: read, *pair() { yield 1n; yield 2; }}});
console.log(again.exports.through(8), again.exports.memory === memory, again.exports.pair());
host.pair = 0;
const wrong = new Instance(module, {host: {twice: read, pair: () => [1n]}}).exports.pair;
console.log(failing(wrong));
"""

EXPECTED = [
    "host.twice.function,host.pair.function",
    (
        "memory memory,global count,global pi,table table,function add,function through,function pair,function long,"
        "function divide,function read,function trap,function deep,function grow,function apply"
    ),
    "true null 14",
    "5 -2 -2147483647 0 2 -9223372036854775808n [5n, 0.5]",
    "TypeError true RuntimeError true RuntimeError true RuntimeError true RangeError true",
    "14",
    "EvalError true",
    "100 RangeError true",
    "TypeError true 2",
    "true 65536 0",
    "77 1 0 0 131072 78",
    "2 TypeError true 196608 RangeError true 78",
    "transfer TypeError true",
    "transferToFixedLength TypeError true",
    "TypeError true 196608",
    "196608 16",
    "7 3.5 TypeError true TypeError true",
    "9 -1n",
    "0.10000002384185791 0",
    "2 true null",
    "RangeError true TypeError true",
    "9 2 4 null RuntimeError true 4",
    "null RuntimeError true",
    "true",
    "78 false [1n, 2]",
    "TypeError true",
]


def with_constants(program, **constants):
    lines = [f"const {name} = {text!r};" for name, text in constants.items()]
    return "\n".join([*lines, START, program])


@both_with_wasm
def test_instances_share_memory_tables_globals_and_functions_with_the_script(run, engine):
    assert run(engine, with_constants(PROGRAM, CALLS=CALLS), "--allow-wasm") == EXPECTED


SMALL = """
const {Module, Instance, Memory} = WebAssembly;
const made = (text, imports) => new Instance(new Module(bytesOf(text)), imports);
const memory = new Memory({initial: 1, maximum: 3, shared: true});
const {add, grow} = made(SHARED, {e: {memory}}).exports;
const seen = new Int32Array(memory.buffer);
console.log(add(), Atomics.load(seen, 0), memory.buffer instanceof SharedArrayBuffer);
console.log(grow(), memory.buffer.byteLength, seen.length, memory.grow(1), memory.buffer.byteLength, grow());
Atomics.store(new Int32Array(memory.buffer), 0, 40);
console.log(add(), seen[0]);
let started = 0;
made(STARTED, {e: {f: () => { started += 1; }}});
console.log(started, failing(() => made(STARTED, {e: {f: () => { throw new EvalError(); }}})));
console.log(failing(() => made(STARTED)), failing(() => made(STARTED, {})));
console.log(failing(() => made(STARTED, {e: {f: 1}})));
console.log(failing(() => made(SHARED, {e: {memory: new Memory({initial: 1})}})));
const [section] = Module.customSections(new Module(bytesOf(NAMES)), 'note');
console.log(new TextDecoder().decode(section), Module.customSections(new Module(bytesOf(NAMES)), 'other').length);
console.log(WebAssembly.validate(bytesOf(NAMES)), WebAssembly.validate(new Uint8Array([0, 97])));
const wrong = new Uint8Array([0, 97]);
console.log(failing(() => new Module(wrong)), failing(() => new Module('text')), failing(() => Module(1)));
const rejected = async (promise) => promise.then(() => 'fulfilled', (error) => error.name);
console.log(await rejected(WebAssembly.compile(wrong)), await rejected(WebAssembly.instantiate(bytesOf(STARTED))));
for (const descriptor of [{initial: -1}, {initial: 2, maximum: 1}, {}, undefined, {initial: 1, shared: true}]) {
  console.log(failing(() => new Memory(descriptor)));
}
const {compileStreaming} = WebAssembly;
console.log(await rejected(compileStreaming(fetch('none.wasm'))), await rejected(compileStreaming(5)));
const {instance, module} = await WebAssembly.instantiateStreaming(fetch('module.wasm'), {e: {f() {}}});
console.log(instance instanceof Instance, module instanceof Module);
console.log((await compileStreaming(fetch('module.wasm'))) instanceof Module);
"""


@both_with_wasm
def test_shared_memory_start_functions_wrong_arguments_and_streaming(run, engine, tmp_path):
    (tmp_path / "module.wasm").write_bytes(b64decode(STARTED))
    program = with_constants(SMALL, SHARED=SHARED, STARTED=STARTED, NAMES=NAMES)
    assert run(engine, program, "--allow-wasm", "--files", str(tmp_path)) == [
        "0 5 true",
        "1 131072 16384 2 196608 -1",
        "40 45",
        "1 EvalError true",
        "TypeError true TypeError true",
        "LinkError true",
        "LinkError true",
        "text 0",
        "true false",
        "CompileError true TypeError true TypeError true",
        "CompileError TypeError",
        "TypeError true",
        "RangeError true",
        "TypeError true",
        "TypeError true",
        "TypeError true",
        "TypeError TypeError",
        "true true",
        "true",
    ]


# What a script replaces of its built-ins, as POISON does, must not come between the classes and their numbers.
POISONED = """
const source = bytesOf(CALLS);
const {Module, Instance, Memory, Table, Global} = WebAssembly;
const {grow: growMemory} = Memory.prototype;
const bufferOf = getOwnPropertyDescriptor(Memory.prototype, 'buffer').get;
const valueOf = getOwnPropertyDescriptor(Global.prototype, 'value').get;
const {get: elementOf, set: setElement} = Table.prototype;
const {exports: exportsOf} = Module;
const exportsOfInstance = getOwnPropertyDescriptor(Instance.prototype, 'exports').get;
const sizeOf = getOwnPropertyDescriptor(ArrayBuffer.prototype, 'byteLength').get;
const host = {__proto__: null, twice: (value) => value * 2, pair: () => items(5n, 2)};
const items = (...given) => ({__proto__: null, [iterator]: () => {
  let at = 0;
  return {__proto__: null, next: () => at < given.length
    ? {__proto__: null, done: false, value: given[at++]} : {__proto__: null, done: true, value: undefined}};
}});
const memoryOf = {__proto__: null, initial: 1, minimum: undefined, maximum: 2, shared: false};
MEMBERS.push('name', 'module', 'imports', 'exports', 'initial', 'maximum', 'element', 'mutable');
CONSTRUCTORS.push('WebAssembly');
poisonEverything();
const module = new Module(source);
const exported = apply(exportsOfInstance, new Instance(module, {__proto__: null, host}), []);
log(exported.add(1, 2), exported.through(4), exportsOf(module).length, exported.pair()[0]);
log(apply(growMemory, exported.memory, [1]), apply(sizeOf, apply(bufferOf, exported.memory, []), []), exported.grow());
log(apply(valueOf, exported.count, []), apply(elementOf, exported.table, [0]) === exported.add);
apply(setElement, exported.table, [1, exported.add]);
log(exported.apply(1), apply(growMemory, new Memory(memoryOf), [1]), touched);
"""


@both_with_wasm
def test_replacing_every_built_in_changes_nothing(end_of, engine):
    program = with_constants(POISON + POISONED, CALLS=CALLS)
    ended = end_of(program, "--engine", engine, "--backend", "numpy", "--allow-wasm", name="program.js")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == ["3 8 14 5n", "1 131072 2", "7 true", "9 1 "]


FILES = """
const response = await fetch('note.txt');
console.log(response.headers.get('Content-Length'), response.headers.get('etag'));
const reader = response.body.getReader();
console.log(new TextDecoder().decode((await reader.read()).value), (await reader.read()).done);
const blob = new Blob(['a', new Uint8Array([98]), new Blob(['ç'])], {type: 'text/plain'});
console.log(blob.size, blob.type, await blob.text(), await blob.slice(1, 2).text());
const url = URL.createObjectURL(blob);
console.log(await (await fetch(url)).text(), (await (await fetch('note.txt')).blob()).size);
URL.revokeObjectURL(url);
console.log(await fetch(url).then(() => 'read', (error) => error.name));
const request = new XMLHttpRequest();
request.open('GET', new URL('note.txt', location.href));
request.responseType = 'arraybuffer';
request.onload = () => console.log(request.status, request.response.byteLength);
request.send();
const direct = new XMLHttpRequest();
direct.open('GET', 'note.txt', false);
direct.send();
console.log(direct.responseText, direct.getResponseHeader('content-length'), typeof GPUDevice, typeof Worker);
"""


@both_with_wasm
def test_libraries_load_their_files_by_blobs_and_requests(run, engine, tmp_path):
    (tmp_path / "note.txt").write_text("noted", encoding="utf-8")
    assert run(engine, FILES, "--allow-wasm", "--files", str(tmp_path)) == [
        "5 null",
        "noted true",
        "4 text/plain abç b",
        "abç 5",
        "TypeError",
        "noted 5 function undefined",
        "200 5",
    ]


@both_engines
def test_without_the_option_there_is_none_of_it(run, engine):
    names = ["WebAssembly", "Blob", "XMLHttpRequest", "GPUDevice", "URL.createObjectURL"]
    assert run(engine, f"console.log({', '.join(f'typeof {name}' for name in names)});") == [
        " ".join(["undefined"] * len(names))
    ]


@both_with_wasm
def test_a_loop_that_never_ends_is_ended_by_the_time_limit(end_of, engine):
    program = with_constants(
        "new WebAssembly.Instance(new WebAssembly.Module(bytesOf(SPIN))).exports.spin();", SPIN=SPIN
    )
    ended = end_of(program, "--engine", engine, "--backend", "numpy", "--allow-wasm", "--time-limit", "1")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.endswith("was ended: it ran for 1 s, its time limit\n")


GREEDY = {
    "instructions": "const {eat, memory} = new WebAssembly.Instance(new WebAssembly.Module(bytesOf(EAT))).exports;"
    " eat(); console.log(memory.buffer.byteLength / 2 ** 20);",
    "memories": """
const kept = [];
try {
  for (;;) {
    const memory = new WebAssembly.Memory({initial: 256});
    new Uint8Array(memory.buffer).fill(1);
    kept.push(memory);
  }
} catch (error) {
  console.log(16 * kept.length);
}""",
    "growth": """
const memory = new WebAssembly.Memory({initial: 256, maximum: 65536, shared: true});
try {
  for (;;) new Uint8Array(memory.buffer, memory.grow(256) * 2 ** 16).fill(1);
} catch (error) {
  console.log(memory.buffer.byteLength / 2 ** 20);
}""",
}


@pytest.mark.skipif(sys.platform != "linux", reason="the operating system's limits are Linux's")
@pytest.mark.sampled(3)
@both_with_wasm
@pytest.mark.parametrize("kind", GREEDY)
def test_memory_of_webassembly_counts_for_the_memory_limit(end_of, engine, kind):
    program = with_constants(GREEDY[kind], EAT=EAT)
    options = "--engine", engine, "--backend", "numpy", "--allow-wasm", "--memory-limit", "96"
    ended = end_of(program, *options)
    if ended.returncode == 0:
        assert 48 <= float(ended.stdout) <= 96 + 64
    else:
        assert (ended.returncode, ended.stdout) == (1, "")
        assert "it used up 96 MiB, its memory limit" in ended.stderr


def test_quickjs_says_what_to_install_for_webassembly(end_of, monkeypatch):
    monkeypatch.setattr(engine_commands, "find_spec", lambda name: None if name == "wasmtime" else find_spec(name))
    ended = end_of("1", "--engine", "quickjs", "--allow-wasm")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "WebAssembly in the JavaScript engine quickjs is not installed; pip install" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
