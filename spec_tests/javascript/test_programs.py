"""Programs of strangers, as ``webnn-py js`` runs them: how they end, and what they may use."""

import os
import signal
import subprocess
import sys

import pytest

from spec_tests.javascript.conftest import Ended
from spec_tests.support.cells import Cells
from spec_tests.support.scripts import both_engines
from webnn_py import cli
from webnn_py.javascript import program as javascript_program

ENDLESS = {
    "in a loop": "for (;;) {}",
    "in microtasks": "(function again() { Promise.resolve().then(again); })();",
    "in one call": "Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1);",
    "in a task of its own": "setTimeout(() => { for (;;) {} }, 0);",
    "in a regular expression": "/^(a+)+$/.test('a'.repeat(64) + 'b');",
    "waiting": "setInterval(() => {}, 1000);",
    "in a loop that catches": "for (;;) { try { for (;;) {} } catch {} }",
}

HUNGRY = {
    "objects": "const kept = []; for (let i = 0;; i += 1) kept.push({i, more: [i]});",
    "buffers": "const kept = []; for (;;) kept.push(new Uint8Array(2 ** 20).fill(1));",
    "one string": "let text = 'x'; for (;;) text += text + [...text.slice(0, 9)].join();",
}


def command(path, engine, *options):
    return [sys.executable, "-m", "webnn_py", "js", str(path), "--engine", engine, "--backend", "numpy", *options]


@pytest.fixture
def program(tmp_path):
    def write(source, name="program.js"):
        path = tmp_path / name
        path.write_text(source, encoding="utf-8")
        return path

    return write


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a program in this process, which a limit must not end: its status, and what it wrote."""
    monkeypatch.setattr(javascript_program, "GRACE_SECONDS", 3600)

    def in_this_process(path, engine, *options):
        return Ended(cli.main(command(path, engine, *options)[3:]), *capsys.readouterr())

    return in_this_process


@pytest.mark.sampled(3)
@both_engines
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="Ctrl-C is sent to a process group")
@pytest.mark.parametrize("endless", ENDLESS.values(), ids=ENDLESS)
def test_an_interrupt_ends_a_program_and_leaves_no_process(program, endless, engine):
    path = program(f"console.log('started'); {endless}")
    with subprocess.Popen(
        command(path, engine), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout.readline() == b"started\n"
        os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=30)
        assert (process.returncode, told) == (cli.INTERRUPTED, b"")
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)


@pytest.mark.sampled(3)
@both_engines
@pytest.mark.parametrize("endless", ENDLESS.values(), ids=ENDLESS)
def test_a_time_limit_ends_a_program(run, program, endless, engine):
    ended = run(program(endless), engine, "--time-limit", "0.2")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "program.js was ended: it ran for 0.2 s, its time limit\n" in ended.stderr
    assert ended.stderr.count("\n") == 1


STEPS_FOR_MINUTES = """
const builder = new MLGraphBuilder(await navigator.ml.createContext());
const zeros = (...shape) => builder.constant(
  {dataType: 'float32', shape}, new Float32Array(shape.reduce((size, length) => size * length)));
const [steps, size] = [1000000, 256];
const [last] = builder.gru(zeros(steps, 1, 1), zeros(1, 3 * size, 1), zeros(1, 3 * size, size), steps, size);
console.log('begun');
await builder.build({last});
"""
"""A build that computes a constant; what comes before it takes little of the time limit."""

IMPATIENT = """
import sys
from webnn_py import cli
from webnn_py.javascript import program
program.GRACE_SECONDS = 0.5
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("backend", ["numpy", "onnxruntime"])
def test_a_time_limit_ends_a_build_at_work(tmp_path, backend):
    if backend == "onnxruntime":
        pytest.importorskip("onnxruntime")
    path = tmp_path / "program.mjs"
    path.write_text(STEPS_FOR_MINUTES, encoding="utf-8")
    options = ["--backend", backend, "--time-limit", "4"]
    arguments = [sys.executable, "-c", IMPATIENT, *command(path, "quickjs")[3:], *options]
    ended = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=300)
    assert (ended.returncode, ended.stdout) == (1, "begun\n")
    assert ended.stderr == f"webnn-py js: {path} was ended: it ran for 4 s, its time limit\n"


@both_engines
def test_a_program_within_its_limits_does_not_notice_them(run, program, engine):
    path = program("console.log(new Uint8Array(2 ** 24).fill(1).length); setTimeout(() => console.log('late'), 20);")
    ended = run(path, engine, "--time-limit", "60", "--memory-limit", "64")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "16777216\nlate\n", "")


@both_engines
@pytest.mark.parametrize("hungry", HUNGRY.values(), ids=HUNGRY)
def test_a_memory_limit_ends_a_program(run, program, hungry, engine):
    ended = run(program(hungry), engine, "--memory-limit", "64", "--time-limit", "60")
    assert (ended.returncode, ended.stdout) == (1, "")
    words = ("it used up 64 MiB, its memory limit", "InternalError: out of memory", "RangeError: ")
    assert any(word in ended.stderr for word in words), ended.stderr


@pytest.mark.sampled(2)
@both_engines
@pytest.mark.parametrize("source", ["for (;;) console.log('x')", "setInterval(() => console.log('x'), 0)"])
def test_a_closed_standard_output_ends_a_program(program, source, engine):
    with subprocess.Popen(command(program(source), engine), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"x\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 1


@pytest.mark.sampled(2)
@both_engines
def test_a_standard_output_that_was_never_open_ends_a_program(program, engine):
    words = " ".join(f"'{word}'" for word in command(program("for (;;) console.log('x')"), engine))
    ended = subprocess.run(["/bin/sh", "-c", f"exec {words} >&-"], stderr=subprocess.PIPE, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (1, b"")


UNHANDLED = {
    "at once": "Promise.reject(new RangeError('mine'))",
    "of an async function": "(async () => { await null; throw new RangeError('mine'); })(); 1;",
    "of a timer's function": "setTimeout(async () => { throw new RangeError('mine'); })",
    "of the API": "navigator.ml.createContext().then((c) => c.createTensor({dataType: 'float32', shape: [0]}))",
}


@both_engines
@pytest.mark.parametrize("source", UNHANDLED.values(), ids=UNHANDLED)
def test_an_unhandled_rejection_is_printed_and_ends_with_status_1(run, program, source, engine):
    ended = run(program(source), engine)
    assert ended.returncode == 1
    assert ended.stderr.startswith(("Unhandled rejection: RangeError: mine", "Unhandled rejection: TypeError: "))


@both_engines
def test_a_rejection_that_is_handled_before_the_task_ends_is_not_printed(run, program, engine):
    source = "const p = Promise.reject(1); Promise.resolve().then(() => p.catch(() => console.log('handled')));"
    assert run(program(source), engine) == (0, "handled\n", "")


# --- files ---------------------------------------------------------------------------------------------------------

FETCH = "fetch('%s').then(async (r) => console.log(r.status, await r.text()), (e) => console.log(e.name, e.message));"


@both_engines
def test_fetch_reads_nothing_without_a_folder(run, program, engine):
    ended = run(program(FETCH % "program.js"), engine)
    assert ended.stdout.startswith("TypeError fetch(): 'program.js' cannot be read")
    assert "--files FOLDER" in ended.stdout


URLS = {
    "a.txt": "200 inside",
    "/a.txt": "200 inside",
    "file:///sub/../a.txt": "200 inside",
    "missing.txt": "404 ",
    "../secret.txt": "TypeError",
    "%2e%2e/secret.txt": "TypeError",
    "link.txt": "TypeError",
    "https://example.com/": "TypeError",
    "//example.com/a.txt": "TypeError",
    "a.txt%00": "TypeError",
}


@both_engines
def test_fetch_reads_the_folder_that_is_given_and_nothing_else(run, program, tmp_path, engine):
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("inside", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("outside", encoding="utf-8")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    ended = run(
        program("\n".join(f"await {FETCH % url}" for url in URLS), "program.mjs"), engine, "--files", str(folder)
    )
    assert ended.returncode == 0, ended.stderr
    with Cells() as cells:
        for (url, answer), line in zip(URLS.items(), ended.stdout.splitlines(), strict=True):
            with cells.cell(url):
                assert line.startswith(answer)
                assert "outside" not in line


MODULES = {
    "import {name} from './lib/a.mjs'; console.log(name);": "a of b",
    "console.log((await import('./lib/a.mjs')).name);": "a of b",
    "import './lib/a.mjs'; console.log((await import('./lib/a.mjs')) === (await import('/lib/a.mjs')));": "true",
    "console.log(import.meta.url, (await import('./lib/a.mjs')).url);": "file:///main.mjs file:///lib/a.mjs",
    "import('./none.mjs').catch((e) => console.log(e instanceof TypeError, /none/.test(e.message)));": "true true",
    "import('../secret.mjs').catch((e) => console.log(e instanceof TypeError));": "true",
    "import('node:fs').catch((e) => console.log(e instanceof TypeError));": "true",
    "import('./broken.mjs').catch((e) => console.log(e instanceof SyntaxError));": "true",
    "import('./throws.mjs').catch((e) => console.log(e instanceof RangeError, e.message));": "true mine",
    "const p = import('./none.mjs'); p.catch(() => {}); console.log(p instanceof Promise);": "true",
    "(await Promise.all([1, 2].map(() => import('./lib/a.mjs')))).map((m) => console.log(m.name));": "a of b\na of b",
    "import('./main.mjs').then((m) => console.log(typeof m));": "object",
    "setTimeout(\"import('./lib/a.mjs').then((m) => console.log(m.name))\");": "a of b",
    "console.log((await (0, eval)(\"import('./lib/a.mjs')\")).name);": "a of b",
}


@both_engines
@pytest.mark.parametrize("source", MODULES)
def test_modules_import_those_of_the_folder_that_is_given(run, program, tmp_path, source, engine):
    folder = tmp_path / "program"
    (folder / "lib").mkdir(parents=True)
    files = {
        "program/main.mjs": source,
        "program/lib/a.mjs": "import {b} from './b.mjs'; export const name = `a of ${b}`, url = import.meta.url;",
        "program/lib/b.mjs": "export const b = 'b';",
        "program/broken.mjs": "(",
        "program/throws.mjs": "throw new RangeError('mine');",
        "secret.mjs": "export default 1;",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    ended = run(folder / "main.mjs", engine, "--files", str(folder))
    assert (ended.stdout, ended.stderr, ended.returncode) == (f"{MODULES[source]}\n", "", 0)


@both_engines
def test_a_program_in_the_folder_imports_relative_to_its_place(run, tmp_path, engine):
    (tmp_path / "source").mkdir()
    (tmp_path / "a.mjs").write_text("export const name = 'a';", encoding="utf-8")
    source = "const {name} = await import('../a.mjs'); console.log(name, import.meta.url, location.href);"
    (tmp_path / "source" / "main.mjs").write_text(source, encoding="utf-8")
    ended = run(tmp_path / "source" / "main.mjs", engine, "--files", str(tmp_path))
    assert ended == (0, "a file:///source/main.mjs file:///source/main.mjs\n", "")


PRIVATE = "abc123secret"

DYNAMIC = {
    "plain": "import('./%s')",
    "by a URL": "import('file:///%s')",
    "in eval": "(0, eval)(\"import('./%s')\")",
    "in a function of text": "new Function(\"return import('./%s')\")()",
    "in a timer's text": "new Promise((go) => { globalThis.go = go; setTimeout(\"go(import('./%s'))\"); })",
    "with a type": "import('./%s', {with: {type: 'json'}})",
    "with a type of text": "import('./%s', {with: {type: 'text'}})",
}

OUTCOMES = "const read = () => console.log('read'), refused = (e) => console.log(e.name, e.message, e.stack);"

STATIC = {
    "plain": ("import './secret.txt';", "TypeError"),
    "of a name": ("import {name} from './secret.mjs';", "TypeError"),
    "with a type": ("import value from './secret.json' with {type: 'json'};", "TypeError"),
    "re-exported": ("export * from './broken.mjs';", "SyntaxError"),
}

SECRETS = {
    "secret.txt": "TypeError",
    "secret.json": "TypeError",
    "secret": "TypeError",
    "secret.mjs.txt": "TypeError",
    "broken.mjs": "SyntaxError",
    "link.mjs": "TypeError",
    "linked/secret.mjs": "TypeError",
    "../secret.mjs": "TypeError",
    "sub/../../secret.mjs": "TypeError",
    "%2e%2e/secret.mjs": "TypeError",
    "..%2fsecret.mjs": "TypeError",
    "folder.mjs": "TypeError",
}


@pytest.fixture
def secrets(tmp_path):
    """A folder of files that are no modules, and links out of it to one that would be."""
    folder = tmp_path / "files"
    (folder / "folder.mjs").mkdir(parents=True)
    for file in ("secret.txt", "secret.json", "secret", "secret.mjs.txt", "../secret.mjs"):
        (folder / file).write_text(PRIVATE, encoding="utf-8")
    (folder / "broken.mjs").write_text(f"let a = 1;\nlet {PRIVATE} {PRIVATE}", encoding="utf-8")
    (folder / "link.mjs").symlink_to(tmp_path / "secret.mjs")
    (folder / "linked").symlink_to(tmp_path)
    return folder


def assert_reveals_nothing(ended, tmp_path):
    assert PRIVATE not in ended.stdout + ended.stderr
    assert str(tmp_path) not in ended.stdout + ended.stderr


@both_engines
@pytest.mark.parametrize("given", [True, False], ids=["a folder", "no folder"])
def test_no_import_reveals_the_content_of_a_file_that_is_no_module(run, secrets, given, engine):
    tries = [(way, name) for way in DYNAMIC for name in SECRETS]
    lines = [f"await {DYNAMIC[way] % name}.then(read, refused); console.log('--');" for way, name in tries]
    (secrets / "program.mjs").write_text("\n".join([OUTCOMES, *lines]), encoding="utf-8")
    ended = run(secrets / "program.mjs", engine, *(["--files", str(secrets)] if given else []))
    assert ended.returncode == 0, ended.stderr
    told = [text.strip() for text in ended.stdout.split("--\n")[:-1]]
    assert len(told) == len(tries)
    for (way, name), text in zip(tries, told, strict=True):
        expected = SECRETS[name] if given and "type" not in way else "TypeError"
        assert text.startswith(expected), (way, name, text)
    assert_reveals_nothing(ended, secrets.parent)


@pytest.mark.sampled(3)
@both_engines
@pytest.mark.parametrize("case", STATIC)
@pytest.mark.parametrize("given", [True, False], ids=["a folder", "no folder"])
def test_no_static_import_reveals_the_content_of_a_file(run, secrets, case, given, engine):
    source, expected = STATIC[case]
    (secrets / "secret.mjs").symlink_to(secrets.parent / "secret.mjs")
    (secrets / "program.mjs").write_text(source, encoding="utf-8")
    ended = run(secrets / "program.mjs", engine, *(["--files", str(secrets)] if given else []))
    assert ended.returncode == 1
    assert f"Uncaught {expected if given else 'TypeError'}: " in ended.stderr
    assert_reveals_nothing(ended, secrets.parent)


@both_engines
def test_a_program_sees_no_path_and_no_other_file(run, program, tmp_path, engine):
    (tmp_path / "secret.map").write_text(PRIVATE, encoding="utf-8")
    source = f"""
      console.log(Object.keys(import.meta).join(), import.meta.url, new Error('mine').stack);
      console.log([typeof Worker, typeof SharedWorker, typeof importScripts, typeof require, typeof module,
                   typeof ShadowRealm, typeof WebAssembly, typeof process].join());
      throw new Error('thrown');
      //# sourceMappingURL=file://{tmp_path}/secret.map
    """
    ended = run(program(source, "program.mjs"), engine)
    assert ended.returncode == 1
    assert ended.stdout.startswith("url file:///program.mjs ")
    assert ended.stdout.splitlines()[-1] == ",".join(["undefined"] * 8)
    assert_reveals_nothing(ended, tmp_path)


# --- modules that do not end -----------------------------------------------------------------------------------------

UNSETTLED = {
    "a promise of its own": "await new Promise(() => {});",
    "a context that is not lost": "await (await navigator.ml.createContext()).lost;",
    "another module": "await import('./never.mjs');",
    "a module that it imports": "import './never.mjs';",
    "after a timer": "await new Promise((go) => setTimeout(go, 1)); await new Promise(() => {});",
    "for the items of nothing": "for await (const item of [new Promise(() => {})]) console.log(item);",
}


@both_engines
@pytest.mark.parametrize("source", UNSETTLED.values(), ids=UNSETTLED)
def test_a_module_whose_await_never_settles_ends_with_status_13(run, program, source, engine):
    program("export const x = 1; await new Promise(() => {});", "never.mjs")
    path = program(source, "program.mjs")
    ended = run(path, engine, "--files", str(path.parent))
    assert (ended.returncode, ended.stdout) == (13, "")
    assert ended.stderr == "program.mjs: unsettled top-level await: nothing is left that could end it\n"


SETTLED = {
    "a module that ends": ("console.log(await 1);", "program.mjs", 0),
    "a module that ends late": ("await new Promise((go) => setTimeout(go, 1)); console.log(1);", "program.mjs", 0),
    "a module with what nobody awaits": ("new Promise(() => {}); console.log(1);", "program.mjs", 0),
    "a classic script": ("(async () => { await new Promise(() => {}); })(); console.log(1);", "program.js", 0),
    "a module that throws": ("console.log(1); throw new RangeError('mine');", "program.mjs", 1),
    "a module that throws late": ("console.log(1); await null; throw new RangeError('mine');", "program.mjs", 1),
    "one that is none": ("console.log(1); (", "program.mjs", 1),
}


@both_engines
@pytest.mark.parametrize("case", SETTLED)
def test_a_module_that_settles_is_not_called_unsettled(run, program, case, engine):
    source, name, status = SETTLED[case]
    ended = run(program(source, name), engine)
    assert ended.returncode == status
    assert "unsettled" not in ended.stderr


@both_engines
def test_a_rejection_during_a_top_level_await_is_printed_and_ends_with_status_1(run, program, engine):
    ended = run(program("Promise.reject(new RangeError('mine')); await new Promise(() => {});", "program.mjs"), engine)
    assert ended.returncode == 1
    assert ended.stderr.startswith("Unhandled rejection: RangeError: mine")
    assert "program.mjs: unsettled top-level await" in ended.stderr


@both_engines
def test_classic_scripts_import_too(run, program, tmp_path, engine):
    (tmp_path / "a.mjs").write_text("export const name = 'a';", encoding="utf-8")
    source = "import('./a.mjs').then(({name}) => console.log(name)); setTimeout(() => import('./a.mjs'), 1);"
    ended = run(program(source), engine, "--files", str(tmp_path))
    assert (ended.stdout, ended.stderr, ended.returncode) == ("a\n", "", 0)


@pytest.mark.parametrize("case", ["folder", "not UTF-8", "missing"])
def test_a_file_that_is_no_program_is_reported_in_one_line(tmp_path, capsys, case):
    path = tmp_path
    if case == "not UTF-8":
        path = tmp_path / "a.js"
        path.write_bytes(b"// caf\xe9")
    if case == "missing":
        path = tmp_path / "none.js"
    assert cli.main(["js", str(path)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert str(path) in told
    assert ("is not UTF-8 (byte 6)" in told) is (case == "not UTF-8")


def test_a_folder_for_the_expected_failures_is_reported_in_one_line(tmp_path, capsys):
    checkout = tmp_path / "resources"
    checkout.mkdir()
    (checkout / "testharness.js").write_text("", encoding="utf-8")
    (tmp_path / "webnn").mkdir()
    (tmp_path / "webnn" / "a.any.js").write_text("", encoding="utf-8")
    assert cli.main(["wpt", str(tmp_path), "--expected", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@both_engines
def test_a_script_sees_nothing_of_the_machine(run, program, engine, monkeypatch):
    monkeypatch.setenv("SECRET", "told")
    source = """
      const global = (function () { return this; })();
      const found = [];
      let calls = 0;
      const deep = () => {
        try {
          deep();
          if ((calls += 1) > 2000) return; // far from the end of the stack all are alike
          fetch('x').catch(() => {});
          import('./x.mjs').catch((error) => { found.push(error); tell(); });
        } catch (error) { found.push(error); }
      };
      const reach = (error) => {
        try { return typeof error.constructor.constructor('return this')().process; } catch { return 'undefined'; }
      };
      let told;
      const tell = () => {
        clearTimeout(told);
        told = setTimeout(() => console.log([...new Set(found.map(reach))].join()), 1);
      };
      deep();
      console.log([...new Set(found.map(reach))].join(), typeof global.process, typeof require);
    """
    ended = run(program(source), engine)
    assert ended.stdout == "undefined undefined undefined\nundefined\n"
