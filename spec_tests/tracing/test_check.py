"""A check finds the fault of programs that have one, and nothing in programs without."""

import gc
import inspect
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import webnn_py
from spec_tests.support.cells import cells
from spec_tests.support.examples import EXAMPLES, output
from spec_tests.tracing import correct_programs
from spec_tests.tracing.correct_programs import DOUBLED, ROWS, Setting, buffer, relu
from webnn_py import cli, tracing
from webnn_py.runtime import Environment, blocking
from webnn_py.tracing.checks import checking

# --- faults --------------------------------------------------------------------------------------------------------


async def input_for_each_call(s):
    kept = []
    for row in ROWS:
        kept.append(await buffer(s.context))
        s.run(row, kept[-1])
    s.context.destroy()


async def cache_that_forgets_half(s):
    cache = []
    for index, row in enumerate(ROWS * 2):
        cache.append(await buffer(s.context))
        s.run(row, cache[-1])
        if index % 2:
            cache.pop().destroy()
    s.context.destroy()


async def tensors_left_to_the_collector(s):
    for row in ROWS[:3]:
        made = await buffer(s.context)
        s.run(row, made)
        await s.context.drain()
        del made
        gc.collect()
    await s.context.drain()
    s.context.destroy()


async def tensor_never_destroyed(s):
    s.context.dispatch(s.graph, {"x": s.x}, {"y": s.y, "z": s.z})
    s.graph.destroy()


async def context_never_destroyed(s):
    s.graph.destroy()
    for one in (s.x, s.y, s.z):
        one.destroy()


async def written_back_in_a_loop(s):
    for row in ROWS:
        s.run(row)
        state = await s.context.read_buffer(s.z)
        s.context.write_buffer(s.z, state)
    s.context.destroy()


async def written_back_after_reading_into_an_array(s):
    into = np.empty(8, np.float32)
    s.run(ROWS[1])
    await s.context.read_buffer(s.z, out=into)
    s.context.write_buffer(s.z, into)
    s.context.destroy()


async def recurrent_state_through_the_host(s):
    state = ROWS[1]
    for _ in range(3):
        s.run(state)
        state = await s.context.read_buffer(s.z)
    s.context.destroy()


async def output_to_another_graph_through_the_host(s):
    other = await relu(s.context, times=2.0)
    s.run(ROWS[1])
    value = await s.context.read_buffer(s.z)
    s.context.write_buffer(s.y, value)
    s.context.dispatch(other, {"x": s.y}, {"y": s.x, "z": s.z})
    s.context.destroy()


async def graph_for_each_call(s):
    for row in ROWS[:3]:
        s.graph = await relu(s.context)
        s.run(row)
    s.context.destroy()


async def graph_again_on_another_line(s):
    await s.context.drain()
    again = await relu(s.context)
    again.destroy()
    s.context.destroy()


async def reads_in_a_loop(s):
    s.run(ROWS[1])
    for one in (s.x, s.y, s.z):
        await s.context.read_buffer(one)
    s.context.destroy()


async def two_reads_after_each_run(s):
    for row in ROWS[:4]:
        s.run(row)
        await s.context.read_buffer(s.y)
        await s.context.read_buffer(s.z)
    s.context.destroy()


FAULTS = {
    input_for_each_call: "tensor-per-call",
    cache_that_forgets_half: "tensor-per-call",
    tensors_left_to_the_collector: "not-destroyed",
    tensor_never_destroyed: "not-destroyed",
    context_never_destroyed: "not-destroyed",
    written_back_in_a_loop: "written-back",
    written_back_after_reading_into_an_array: "written-back",
    recurrent_state_through_the_host: "through-host",
    output_to_another_graph_through_the_host: "through-host",
    graph_for_each_call: "built-again",
    graph_again_on_another_line: "built-again",
    reads_in_a_loop: "reads-in-turn",
    two_reads_after_each_run: "reads-in-turn",
}


async def checked(body, *, ends=False):
    checks = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        async with webnn_py.open_ml() as ml:
            with checking(ml, checks):
                setting = await Setting(ml).open()
                await body(setting)
                await setting.context.drain()
                if ends:
                    setting.context.destroy()
    return checks[0]


@pytest.mark.parametrize(("body", "kind"), FAULTS.items(), ids=lambda one: getattr(one, "__name__", None))
async def test_each_fault_is_found_with_its_line(body, kind):
    check = await checked(body)
    found = [one for one in check.findings if one.kind == kind]
    assert found
    assert {one.source.file for one in found} <= {__file__, correct_programs.__file__}
    assert {one.kind for one in check.findings} == {kind}


CORRECT = [one for one in vars(correct_programs).values() if inspect.iscoroutinefunction(one) and not one.__doc__]


@cells("body", CORRECT, ids=lambda one: one.__name__)
async def test_nothing_is_found_where_there_is_no_fault(body):
    assert (await checked(body, ends=True)).findings == ()


async def test_a_check_is_entered_once(ml):
    with tracing.check(ml) as check, pytest.raises(RuntimeError, match="a check can be entered once"), check:
        pass
    with pytest.raises(RuntimeError, match="a check can be entered once"), check:
        pass


async def test_reads_that_fail_are_not_kept(ml):
    context = await ml.create_context(backend="numpy")
    with tracing.check(ml) as check:
        made = await buffer(context)
        read = context.read_buffer(made)
        made.destroy()
        with pytest.raises(webnn_py.InvalidStateError):
            await read
    assert not check._reading
    assert check.peak()[0] == 32


async def test_numbers_lines_and_json():
    check = await checked(two_reads_after_each_run)
    (finding,) = check.findings
    assert finding.count == 8
    assert finding.source.function == "two_reads_after_each_run"
    told = json.loads(check.text("json"))
    assert told["findings"][0]["kind"] == "reads-in-turn"
    assert told["peak"]["bytes"] == 3 * 32
    assert sum(told["peak"]["held"].values()) == 3 * 32
    assert len(told["waits"]) == 2
    assert check.lines()[1] == "1 finding"


async def test_a_session_whose_state_goes_through_the_host(ml):
    async with Environment(ml, backend="numpy") as environment:
        session = await environment.create_session(DOUBLED)
        with environment.check() as check:
            state = ROWS[1]
            for _ in range(3):
                state = (await session.run({"x": state}))["y"]
    assert [(one.kind, one.count, one.source.file) for one in check.findings] == [("through-host", 2, __file__)]


def test_a_blocking_session():
    with blocking.Environment(backend="numpy") as environment:
        session = environment.create_session(DOUBLED)
        with environment.check() as check:
            for row in ROWS:
                session.run({"x": row})
        assert check.findings == ()


PROGRAM = """
import sys
import numpy as np
import trio
import webnn_py

async def main():
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        "NAME"  # programs of the same code are one to what looks lines up
        made = [await context.create_buffer(data_type="float32", shape=[8], readable=True) for _ in range(3)]
        for one in made:
            await context.read_buffer(one)

trio.run(main)
print(sys.argv[1:])
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize(("options", "given", "status"), [((), "0", 0), (("--error",), "0", 1), (("--json",), "3", 3)])
def test_the_command(tmp_path, capsys, options, given, status):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace('"NAME"', f"made = {given!r}, {options!r}"), encoding="utf-8")
    assert cli.main(["check", *options, str(path), given, "--x"]) == status
    ended = capsys.readouterr()
    assert ended.out == f"['{given}', '--x']\n"
    assert f"{path}:13 in main" in ended.err
    if "--json" in options:
        assert json.loads(ended.err)["findings"][0]["count"] == 3


def test_programs_that_are_none(tmp_path, capsys):
    assert cli.main(["check", str(tmp_path / "none.py")]) == 2
    path = tmp_path / "program.py"
    path.write_text("raise ValueError('no')", encoding="utf-8")
    assert cli.main(["check", str(path)]) == 1
    assert capsys.readouterr().err.endswith("ValueError: no\n")


SCRIPT = """
const d = {dataType: 'float32', shape: [8]};
const context = await navigator.ml.createContext();
const builder = new MLGraphBuilder(context);
const graph = await builder.build({y: builder.neg(builder.input('x', d))});
const x = await context.createTensor({...d, readable: true, writable: true});
const y = await context.createTensor({...d, readable: true, writable: true});
context.writeTensor(x, new Float32Array([1, 2, 3, 4, 5, 6, 7, 8]));
context.dispatch(graph, {x}, {y});
context.writeTensor(x, await context.readTensor(y));
if (DESTROY) context.destroy();
"""


@pytest.mark.sampled(2)
def test_nothing_is_found_in_scripts_without_a_fault(tmp_path, capfd):
    path = tmp_path / "program.mjs"
    path.write_text(Path(__file__).with_name("correct_programs.js").read_text(encoding="utf-8"), encoding="utf-8")
    assert cli.main(["node", "--backend", "numpy", "--check=error", str(path)]) == 0
    ended = capfd.readouterr()
    assert ended.err.startswith("no findings\n")
    assert int(ended.out) >= 20


# Those that need no GPU, no network and no more time than a test.
OF_THE_PACKAGE = (
    "convolution_layouts",
    "copy_tensors",
    "decode_loop",
    "destroy_in_flight",
    "fibonacci",
    "from_asyncio",
    "lstm_steps",
    "perceptron",
    "same_bits",
    "sessions_come_and_go",
    "two_contexts",
)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", OF_THE_PACKAGE)
def test_nothing_is_found_in_the_examples(name):
    output("-m", "webnn_py", "check", "--error", EXAMPLES / f"{name}.py")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["same_bits", "two_products"])
def test_nothing_is_found_in_the_examples_in_javascript(name):
    output("-m", "webnn_py", "node", "--check=error", "--backend", "numpy", EXAMPLES / f"{name}.js")


@pytest.mark.parametrize(("destroys", "options", "status"), [("true", ["--check"], 0), ("false", ["--check=error"], 1)])
def test_javascript(tmp_path, capfd, destroys, options, status):
    path = tmp_path / "program.mjs"
    path.write_text(SCRIPT.replace("DESTROY", destroys), encoding="utf-8")
    assert cli.main(["node", "--backend", "numpy", *options, str(path)]) == status
    told = capfd.readouterr().err.replace(f"{tmp_path}/", "")
    lines = [line.partition(": ")[0] for line in told.splitlines()]
    of_the_end = [] if destroys == "true" else ["program.mjs:3", "program.mjs:5", "program.mjs:6", "program.mjs:7"]
    assert [line for line in lines if line.startswith("program.mjs")] == [*of_the_end, "program.mjs:10"]
