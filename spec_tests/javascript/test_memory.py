"""The memory limit of a program bounds the memory of its engine and the memory that it takes in this process."""

import os
import subprocess
import sys

import pytest

from spec_tests.support.depth import amount
from spec_tests.support.scripts import both_engines
from webnn_py.javascript.session import MOST_CANCELLED, Timers

LIMIT_MIB = 48
PIECE = "2 ** 20"  # elements of float32: 4 MiB

BEGIN = f"""
const piece = {PIECE}, bytes = 4 * piece;
const context = await navigator.ml.createContext();
const described = {{dataType: 'float32', shape: [piece], readable: true, writable: true}};
const data = new Float32Array(piece).fill(1);
const kept = [];
async function until(step) {{
  for (let count = 0; count < 64; count += 1) {{
    try {{ kept.push(await step(count)); }} catch (error) {{ return console.log(count, error.name, error.message); }}
  }}
  console.log('never refused');
}}
function untilThrown(step) {{
  for (let count = 0; count < 1e5; count += 1) {{
    try {{ kept.push(step(count)); }} catch (error) {{ return console.log(count, error.name, error.message); }}
  }}
  console.log('never refused');
}}
"""

BUILD = """
async function built(count) {
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', described);
  return await builder.build({y: builder.add(x, builder.constant(described, data.fill(count)))});
}
"""

SETTLED = """
  const first = ends.findIndex((end) => end.status === 'rejected');
  console.log(first, ends[first].reason.name, ends[first].reason.message);
"""

MOST = LIMIT_MIB // 4

PIECES = {  # each step holds a piece; and how many of them there is room for
    "queued writes": (
        """const made = await context.createTensor(described);
        untilThrown(() => context.writeTensor(made, data));""",
        MOST - 1,
    ),
    "constants": (
        """const builder = new MLGraphBuilder(context);
        untilThrown(() => builder.constant(described, data));""",
        MOST,
    ),
    "constants of many builders": (
        """untilThrown(() => {
          const builder = new MLGraphBuilder(context);
          builder.constant(described, data);
          return builder;
        });""",
        MOST,
    ),
    "constants of a builder that cannot build": (
        """const builder = new MLGraphBuilder(context);
        await until(async () => {
          builder.constant(described, data);
          await builder.build({}).catch(() => {});
        });""",
        MOST,
    ),
    "constants after many builds": (
        """for (let count = 0; count < 16; count += 1) {
          const builder = new MLGraphBuilder(context);
          const x = builder.input('x', {dataType: 'float32', shape: [1]});
          (await builder.build({['y'.repeat(1e5)]: builder.relu(x)})).destroy();
        }
        await new Promise((go) => setTimeout(go, 1));
        const builder = new MLGraphBuilder(context);
        untilThrown(() => builder.constant(described, data));""",
        MOST,
    ),
    "tensors": ("await until(() => context.createTensor(described));", MOST),
    "tensors that nobody awaits": (
        f"""const all = Array.from({{length: 64}}, () => context.createTensor(described));
        const ends = await Promise.allSettled(all);{SETTLED}""",
        MOST,
    ),
    "constant tensors": ("await until(() => context.createConstantTensor(described, data));", MOST),
    "reads": (
        f"""const made = await context.createTensor(described);
        const ends = await Promise.allSettled(Array.from({{length: 64}}, () => context.readTensor(made)));{SETTLED}""",
        MOST - 1,
    ),
    "graphs": (BUILD + "await until(built);", MOST),
}

SMALL = {
    "dispatches": BUILD.replace("[piece]", "[1]")
    + """
      const graph = await built(1);
      const [x, y] = [await context.createTensor(described), await context.createTensor(described)];
      untilThrown(() => context.dispatch(graph, {x}, {y}));""",
    "operators": """
      const builder = new MLGraphBuilder(context);
      let x = builder.input('x', {dataType: 'float32', shape: [1]});
      untilThrown(() => { x = builder.relu(x, {label: 'x'.repeat(100)}); });""",
    "labels": """
      const builder = new MLGraphBuilder(context);
      const x = builder.input('x', {dataType: 'float32', shape: [1]});
      untilThrown((count) => builder.relu(x, {label: 'é'.repeat(5e5) + count}));""",
    "contexts": "await untilMany(async () => [await navigator.ml.createContext()]);",
    "text that is decoded": "untilThrown(() => new TextDecoder().decode(new Uint8Array(2 ** 22)));",
}

MANY = """
async function untilMany(step) {
  for (let count = 0; count < 1e5; count += 1) {
    try { kept.push(await step()); } catch (error) { return console.log(count, error.name, error.message); }
  }
}
"""

AFTERWARDS = """
for (const one of kept) one?.destroy?.();
kept.length = 0;
await new Promise((go) => setTimeout(go, 1));
const last = await context.createTensor({dataType: 'float32', shape: [2], readable: true, writable: true});
context.writeTensor(last, new Float32Array([3, 4]));
console.log(...new Float32Array(await context.readTensor(last)));
"""


def options(engine, limit_mib=LIMIT_MIB):
    return "--engine", engine, "--backend", "numpy", "--memory-limit", str(limit_mib)


@pytest.mark.sampled(2)
@both_engines
@pytest.mark.parametrize("case", PIECES)
def test_memory_that_a_program_takes_in_the_host_is_refused_at_the_limit(end_of, case, engine):
    source, most = PIECES[case]
    ended = end_of(BEGIN + source, *options(engine))
    assert (ended.returncode, ended.stderr) == (0, "")
    count, name, _ = ended.stdout.splitlines()[0].split(maxsplit=2)
    assert name == "QuotaExceededError"
    assert most // 2 <= int(count) <= most


@both_engines
@pytest.mark.parametrize("case", ["tensors", "constant tensors", "graphs"])
def test_destroyed_things_leave_room(end_of, case, engine):
    ended = end_of(BEGIN + PIECES[case][0] + AFTERWARDS, *options(engine))
    assert (ended.returncode, ended.stderr, ended.stdout.splitlines()[1:]) == (0, "", ["3 4"])


@pytest.mark.sampled(2)
@both_engines
@pytest.mark.parametrize("case", SMALL)
def test_many_small_things_are_refused_at_the_limit(end_of, case, engine, pytestconfig):
    limit_mib = amount(pytestconfig, quick=LIMIT_MIB // 3, full=LIMIT_MIB, thorough=LIMIT_MIB)
    source = BEGIN.replace("[piece]", "[1]").replace(PIECE, "1") + MANY + SMALL[case]
    ended = end_of(source, *options(engine, limit_mib))
    assert (ended.returncode, ended.stderr) == (0, "")
    count, name, _ = ended.stdout.splitlines()[-1].split(maxsplit=2)
    assert name == "QuotaExceededError"
    assert int(count) < 1e5


@both_engines
def test_finished_work_leaves_room(end_of, engine, pytestconfig):
    turns = amount(pytestconfig, quick=MOST + 4, full=LIMIT_MIB, thorough=LIMIT_MIB)
    source = (
        BEGIN
        + BUILD
        + f"""
      const made = await context.createTensor(described);
      for (let turn = 0; turn < {turns}; turn += 1) {{
        context.writeTensor(made, data.fill(turn));
        (await built(turn)).destroy();
        if (new Float32Array(await context.readTensor(made))[0] !== turn) throw new Error('other data');
      }}
      console.log('done');"""
    )
    assert end_of(source, *options(engine)) == (0, "done\n", "")


@both_engines
def test_files_that_are_larger_than_the_limit_are_not_read(end_of, tmp_path, engine):
    for name in ("large.bin", "large.mjs"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(LIMIT_MIB * 2**20)
    source = """
      for (const read of [() => fetch('large.bin'), () => import('./large.mjs')]) {
        await read().then(() => console.log('read'), (error) => console.log(error.name, error.message));
      }"""
    ended = end_of(source, *options(engine), "--files", str(tmp_path))
    assert [line.split(" of the memory")[-1] for line in ended.stdout.splitlines()] == [" limit"] * 2
    assert ended.stdout.count("TypeError 'large.") == 2


def most_resident(tmp_path, engine, source):
    """Return the most memory that a process of its own held, in MiB, its status and the texts that it wrote."""
    path = tmp_path / "program.mjs"
    path.write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "webnn_py", "js", str(path), *options(engine)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, err = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss / 1024, process.returncode, out, err


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only there does the system tell what processes hold")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """How much memory a process comes to hold that keeps nothing."""
    return most_resident(tmp_path_factory.mktemp("plain"), "quickjs", BEGIN)[0]


@on_linux
@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", PIECES)
def test_the_process_does_not_grow_beyond_the_limit(tmp_path, plain, case):
    grown, status, out, err = most_resident(tmp_path, "quickjs", BEGIN + PIECES[case][0])
    assert (status, err) == (0, "")
    assert "QuotaExceededError" in out
    assert grown - plain < 1.25 * LIMIT_MIB


UNFORESEEN = """
const context = await navigator.ml.createContext();
const builder = new MLGraphBuilder(context);
const x = builder.input('x', {dataType: 'float32', shape: [1]});
const one = builder.constant({dataType: 'float32', shape: [1]}, new Float32Array([2]));
console.log('begun');
await builder.build({y: builder.add(builder.sin(builder.expand(one, [2 ** 28])), x)});
"""


@on_linux
@pytest.mark.sampled(2)
@both_engines
def test_memory_that_cannot_be_refused_ends_the_program_with_a_message(tmp_path, engine):
    _, status, out, err = most_resident(tmp_path, engine, UNFORESEEN)
    words = f"webnn-py js: {tmp_path / 'program.mjs'} was ended: it used up {LIMIT_MIB} MiB, its memory limit\n"
    assert (status, out, err) == (1, "begun\n", words)


async def test_cancelled_timers_are_released():
    timers = Timers(None, None)
    for timer in range(10 * MOST_CANCELLED):
        timers.start(timer, 1e6)
        if timer % 10:
            timers.cancel(timer)
    assert len(timers) == MOST_CANCELLED
    assert len(timers._heap) <= 3 * MOST_CANCELLED
