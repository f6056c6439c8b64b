"""The recipes for asyncio and for notebooks run as they stand."""

import ast
import asyncio
import json
import warnings

import numpy as np
import pytest
import trio

from spec_tests.support.examples import EXAMPLES, load_example, output
from spec_tests.support.onnx_programs import product
from webnn_py import OperationError
from webnn_py.runtime.loop_thread import LoopThread


@pytest.fixture
def example():
    return load_example("from_asyncio")


@pytest.fixture
def batches():
    return [np.full((2, 4), number, np.float32) for number in range(3)]


def test_asyncio_runs_the_blocking_form_in_threads(example, batches):
    results = asyncio.run(example.in_threads(product(example.WEIGHTS), batches))
    for batch, result in zip(batches, results, strict=True):
        np.testing.assert_array_equal(result, batch @ example.WEIGHTS)
    assert not LoopThread.running


def test_asyncio_has_trio_as_a_guest(example, batches):
    results = asyncio.run(example.with_guest(lambda: example.multiply(batches)))
    for batch, result in zip(batches, results, strict=True):
        np.testing.assert_array_equal(result, batch @ example.WEIGHTS)


def test_an_error_of_the_guest_is_raised_in_asyncio(example):
    async def fail():
        await trio.lowlevel.checkpoint()
        raise OperationError("own")

    with pytest.raises(OperationError, match="own"):
        asyncio.run(example.with_guest(fail))


def test_cancelling_the_asyncio_task_cancels_the_guest(example):
    ended = []

    async def main():
        begun = asyncio.Event()

        async def hang():
            begun.set()
            try:
                await trio.sleep_forever()
            finally:
                ended.append("cancelled")

        task = asyncio.create_task(example.with_guest(hang))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == ["cancelled"]


def test_the_script_runs():
    printed = output(EXAMPLES / "from_asyncio.py")
    assert printed.splitlines()[-1] == "asyncio goes on"
    assert "1 · weights = [[18.0, 22.0, 26.0], [18.0, 22.0, 26.0]]" in printed


# --- the notebook ----------------------------------------------------------------------------------------------------


def cells():
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def execute(cell, namespace):
    """Run a cell as a kernel does: the last expression is its result."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), namespace)  # noqa: S102 - our own notebook
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)  # noqa: S307


def test_the_notebooks_cells_run_one_by_one_within_a_running_loop():
    async def kernel():
        namespace = {}
        results = []
        for cell in cells():
            results.append(execute(cell, namespace))
            await asyncio.sleep(0)
        return namespace, results

    namespace, results = asyncio.run(kernel())
    np.testing.assert_array_equal(results[2], namespace["x"] @ namespace["weights"])
    np.testing.assert_array_equal(results[3], results[2])
    assert repr(results[4]) == "<Environment 0 sessions, no device, closed>"
    assert not LoopThread.running


def test_running_the_first_cell_again_closes_the_environment_before():
    namespace = {}
    opening, *_ = cells()
    execute(opening, namespace)
    first = namespace["env"]._async
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        execute(opening, namespace)
    namespace["env"]._loop.run(first.close)  # waits for what has begun
    assert first.closed
    namespace["env"].close()
