"""Programs of the user's own Node, where there is one: ``webnn-py node``, and ``import 'webnn-py/register'``."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile

import pytest
import trio

import webnn_py
from webnn_py import cli
from webnn_py.javascript.node_files import own_node

ADD = """
const d = {dataType: 'float32', shape: [2]};
async function add(context, ...given) {
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', d);
  const graph = await builder.build({y: builder.add(x, builder.constant(d, new Float32Array([10, 20])))});
  const a = await context.createTensor({...d, writable: true});
  const y = await context.createTensor({...d, readable: true});
  context.writeTensor(a, new Float32Array(given));
  context.dispatch(graph, {x: a}, {y});
  return [...new Float32Array(await context.readTensor(y))];
}
"""


def test_threads_and_children_have_the_api(end_of):
    ended = end_of(
        ADD
        + """
        import {spawnSync} from 'node:child_process';
        import {Worker, isMainThread, parentPort} from 'node:worker_threads';
        const sum = await add(await navigator.ml.createContext(), 1, 2);
        if (!isMainThread) parentPort.postMessage(sum);
        else if (process.argv[2] === 'child') console.log(JSON.stringify(sum));
        else {
          const ofWorker = await new Promise((resolve) => {
            new Worker(new URL(import.meta.url)).once('message', resolve);
          });
          const child = spawnSync(process.execPath, [process.argv[1], 'child'], {encoding: 'utf8'});
          console.log(JSON.stringify([sum, ofWorker, JSON.parse(child.stdout)]));
          process.exitCode = 7;
        }
        """
    )
    assert (ended.returncode, ended.stderr) == (7, "")
    assert json.loads(ended.stdout) == [[11, 22]] * 3


def test_large_tensors_errors_and_the_order_of_settlements(end_of):
    ended = end_of(
        ADD
        + """
        const context = await navigator.ml.createContext();
        const shown = [];
        const big = {dataType: 'int32', shape: [3_000_000], readable: true, writable: true};
        const tensor = await context.createTensor(big);
        const data = Int32Array.from({length: 3_000_000}, (_, index) => index);
        context.writeTensor(tensor, data);
        const read = new Int32Array(await context.readTensor(tensor));
        shown.push(read.every((value, index) => value === index));
        const target = new Int32Array(3_000_000);
        shown.push(await context.readTensor(tensor, target), target[2_999_999]);
        const order = [];
        await Promise.all([0, 1, 2, 3].map(async (index) => {
          await context.createTensor(d);
          order.push(index);
          await null;
          order.push(index);
        }));
        shown.push(order);
        const builder = new MLGraphBuilder(context);
        try { builder.relu(1); } catch (error) {
          shown.push(error.name, error.stack.split('\\n')[1].match(/program.mjs:\\d+/)[0]);
        }
        await builder.build({}).catch((error) => shown.push(error.name));
        await context.readTensor(1).catch((error) => shown.push(error.name));
        try { MLContext(); } catch (error) { shown.push(error.name); }
        context.destroy();
        shown.push((await context.lost).message !== '');
        try { new MLGraphBuilder(context); } catch (error) {
          shown.push(error.name, error instanceof DOMException);
        }
        console.log(JSON.stringify(shown, (_, value) => value === undefined ? null : value));
        """
    )
    assert ended.stderr == ""
    order = [0, 0, 1, 1, 2, 2, 3, 3]
    place, *rest = json.loads(ended.stdout)[5:]
    assert json.loads(ended.stdout)[:5] == [True, None, 2_999_999, order, "TypeError"]
    assert place == "program.mjs:33"
    assert rest == ["TypeError", "TypeError", "TypeError", True, "InvalidStateError", True]


def test_threads_end_while_others_start(end_of):
    ended = end_of(
        ADD
        + """
        import {Worker, isMainThread} from 'node:worker_threads';
        if (isMainThread) {
          const rounds = async () => {
            for (let round = 0; round < 6; round += 1) {
              await new Promise((resolve, reject) => {
                new Worker(new URL(import.meta.url)).once('exit', resolve).once('error', reject);
              });
            }
          };
          await Promise.all([rounds(), rounds(), rounds()]);
          console.log('done');
        } else await add(await navigator.ml.createContext(), 1, 2);
        """
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_many_calls_at_once_and_the_lines_of_errors(end_of):
    ended = end_of(
        ADD
        + """
        const shown = [];
        const context = await navigator.ml.createContext();
        await context.createConstantTensor(d, new Uint8ClampedArray(8)).catch((error) => shown.push(error.stack));
        const tensor = await context.createTensor({...d, readable: true, writable: true});
        const reads = Array.from({length: 1000}, (_, index) => {
          context.writeTensor(tensor, new Float32Array([index, 0]));
          return context.readTensor(tensor);
        });
        shown.push((await Promise.all(reads)).every((bytes, index) => new Float32Array(bytes)[0] === index));
        tensor.destroy();
        await context.readTensor(tensor).catch((error) => shown.push(error.stack));
        console.log(JSON.stringify(shown));
        """
    )
    clamped, in_order, destroyed = json.loads(ended.stdout)
    assert clamped.startswith("TypeError: data are a Uint8ClampedArray")
    assert clamped.splitlines()[-1].endswith("program.mjs:16:23")
    assert in_order
    assert destroyed.startswith("InvalidStateError: ")
    assert "node_client" not in clamped + destroyed


def test_options_reach_the_program(end_of, tmp_path):
    trace = tmp_path / "trace.json"
    ended = end_of(
        ADD
        + """
        const context = await navigator.ml.createContext();
        await add(context, 1, 2);
        console.log(typeof context.saveGraph, context.opSupportLimits().add.a.rankRange.max);
        """,
        *["--trace", str(trace), "--graph-cache", str(tmp_path / "cache"), "--browser", "chromium-153-litert"],
    )
    assert ended.stdout == "function 6\n"
    sources = {
        event["args"]["source"]
        for event in json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
        if event["name"] == "dispatch()" and "source" in event.get("args", {})
    }
    assert sources == {f"{tmp_path / 'program.mjs'}:10 in add"}


def device_of(trace):
    """The device of the one context that was traced."""
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    (device,) = (event["args"]["backend"] for event in events if "backend" in event.get("args", {}))
    return device


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ("", {}),
        ("{powerPreference: 'low-power'}", {"power_preference": "low-power"}),
        ("{accelerated: false}", {"accelerated": False}),
    ],
)
def test_without_a_named_device_it_is_the_one_that_python_takes(tmp_path, given, options):
    async def of_python():
        async with webnn_py.open_ml() as ml:
            return (await ml.create_context(**options)).backend.name

    program = tmp_path / "program.mjs"
    program.write_text(f"(await navigator.ml.createContext({given})).destroy();", encoding="utf-8")
    trace = tmp_path / "trace.json"
    assert cli.main(["node", "--trace", str(trace), str(program)]) == 0
    assert device_of(trace) == trio.run(of_python)
    assert cli.main(["node", "--backend", "numpy", "--trace", str(trace), str(program)]) == 0
    assert device_of(trace) == "numpy"


def test_statuses_of_commands(tmp_path, capfd, monkeypatch):
    def status_of(*command):
        return cli.main(["node", "--backend", "numpy", *command])

    assert status_of("--", "sh", "-c", "exit 3") == 3
    assert status_of("--", "sh", "-c", "kill -9 $$") == 128 + signal.SIGKILL
    assert status_of("--", "no_such_command") == 2
    assert status_of("none.mjs") == 2
    text = tmp_path / "text"
    text.touch(0o755)
    assert status_of("--", str(text)) == 2
    assert status_of() == 2
    assert capfd.readouterr().err.splitlines() == [
        "webnn-py node: no_such_command: no such command",
        "webnn-py node: none.mjs: no such file",
        f"webnn-py node: {text} cannot be run: Exec format error",
        "webnn-py node: name a program or a command: webnn-py node app.mjs",
    ]
    monkeypatch.setenv("NODE_OPTIONS", "--no-warnings")
    assert status_of("--", "sh", "-c", 'echo "$NODE_OPTIONS" "$@"', "sh", "a", "--", "b") == 0
    out = capfd.readouterr().out
    assert out.startswith('--no-warnings --require="')
    assert out.endswith("a -- b\n")


def test_what_is_wrong_with_a_program_fails_it(end_of):
    source = "await navigator.ml.createContext();\n"
    ended = end_of(source, "--check=error")
    assert ended.returncode == 1
    assert "program.mjs:1: a context made here and never destroyed: call destroy() (not-destroyed)" in ended.stderr
    source = "const context = await navigator.ml.createContext(); context.destroy(); await context.lost;"
    ended = end_of(source, "--check=error")
    assert (ended.returncode, ended.stderr) == (0, "no findings\n")


def test_what_libraries_for_browsers_find(end_of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.json").write_text('{"a": 1}', encoding="utf-8")
    (tmp_path / "empty.wasm").write_bytes(b"\0asm\1\0\0\0")
    ended = end_of(
        """
        const shown = [];
        shown.push(await (await fetch('some.json')).json());
        shown.push((await fetch(new URL('some.json', import.meta.url))).headers.get('content-length'));
        shown.push((await fetch('none.json')).status);
        const {instance} = await WebAssembly.instantiateStreaming(fetch('empty.wasm'));
        shown.push(Object.keys(instance.exports), WebAssembly.compile.name);
        shown.push(await fetch('some.json', {signal: AbortSignal.abort()}).catch((error) => error.name));
        try { new GPUDevice(); } catch (error) { shown.push(error.message); }
        console.log(JSON.stringify(shown));
        """
    )
    assert ended.stderr == ""
    assert json.loads(ended.stdout) == [{"a": 1}, "8", 404, [], "compile", "AbortError", "Illegal constructor"]


def test_libraries_take_threads_for_workers_of_a_page(end_of):
    source = """
        import {Worker, isMainThread, parentPort} from 'node:worker_threads';
        const found = [typeof self, globalThis.self === globalThis, globalThis.constructor.name, process.release.name];
        if (typeof DedicatedWorkerGlobalScope === 'function') {
          try { new DedicatedWorkerGlobalScope(); } catch (error) { found.push(error.message); }
        }
        const show = (ofWorker) => console.log(JSON.stringify([found, ofWorker]));
        if (!isMainThread) parentPort.postMessage(found);
        else new Worker(new URL(import.meta.url)).once('message', show);
        """
    ended = end_of(source, "--web-worker")
    assert ended.stderr == ""
    scope = ["object", True, "DedicatedWorkerGlobalScope", "webnn-py", "Illegal constructor"]
    assert json.loads(ended.stdout) == [scope] * 2
    assert json.loads(end_of(source).stdout) == [["undefined", False, "Object", "node"]] * 2


def test_modules_of_blobs(end_of):
    ended = end_of(
        """
        const urlOf = (text, type = 'text/javascript') => URL.createObjectURL(new Blob([text], {type}));
        const first = urlOf('export const one = 1; export const url = import.meta.url;');
        const second = urlOf(`export {one as again, url} from '${first}'; import 'node:fs';`);
        const shown = [(await import(first)).one, (await import(second)).again, (await import(second)).url === first];
        for (const url of [urlOf('1', 'text/plain'), 'blob:nodedata:none', urlOf('throw new RangeError()')]) {
          await import(url).catch((error) => shown.push(error.code ?? error.name));
        }
        console.log(JSON.stringify(shown));
        """,
        "--web-worker",
    )
    assert ended.stderr == ""
    refused = "ERR_UNSUPPORTED_ESM_URL_SCHEME"
    assert json.loads(ended.stdout) == [1, 1, True, refused, refused, "RangeError"]


def start(tmp_path, source):
    path = tmp_path / "program.mjs"
    path.write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "webnn_py", "node", "--backend", "numpy", "--", "node", str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.sampled(2)
def test_the_host_is_killed(tmp_path):
    host = start(
        tmp_path,
        ADD
        + """
        const context = await navigator.ml.createContext();
        const pending = context.createTensor({dataType: 'float32', shape: [20_000_000]});
        process.kill(process.ppid, 'SIGKILL');
        const shown = [];
        const alive = setInterval(() => {}, 1000);
        await pending.then(() => context.lost, (error) => shown.push(error.name));
        shown.push((await context.lost).message);
        try { new MLGraphBuilder(context); } catch (error) { shown.push(error.name); }
        await context.createTensor(d).catch((error) => shown.push(error.name));
        console.log(shown.slice(-3).join('; '));
        clearInterval(alive);
        """,
    )
    out, _ = host.communicate(timeout=60)  # the end of the output is the program's
    assert host.returncode == -signal.SIGKILL
    assert out == "webnn-py: the process that runs webnn_py has ended; UnknownError; UnknownError\n"


@pytest.mark.sampled(2)
def test_ctrl_c_ends_both(tmp_path):
    source = "await navigator.ml.createContext(); console.log(process.pid); setInterval(() => {}, 1000);"
    with start(tmp_path, source) as host:
        program = int(host.stdout.readline())
        host.send_signal(signal.SIGINT)
        assert host.wait(60) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(program, 0)


@pytest.mark.sampled(2)
def test_the_npm_package(tmp_path, capsys):
    assert cli.main(["npm-pack", str(tmp_path)]) == 0
    package = capsys.readouterr().out.strip()
    with tarfile.open(package) as archive:
        archive.extractall(tmp_path, filter="data")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "package").rename(tmp_path / "node_modules" / "webnn-py")
    path = tmp_path / "program.mjs"
    path.write_text(
        "import 'webnn-py/register';" + ADD + "console.log(...await add(await navigator.ml.createContext(), 1, 2));",
        encoding="utf-8",
    )

    def end(**variables):
        environment = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(
            [shutil.which("node") or own_node(), str(path)],
            env=environment | variables,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    command = f"{sys.executable} -m webnn_py"
    worked = end(WEBNN_PY_COMMAND=command, WEBNN_PY_OPTIONS="--backend numpy")
    assert (worked.stdout, worked.stderr) == ("11 22\n", "")
    refused = end(WEBNN_PY_COMMAND=command, WEBNN_PY_OPTIONS="--browser mosaic")
    assert "webnn-py/register: webnn-py node: argument --browser: invalid choice: 'mosaic'" in refused.stderr
