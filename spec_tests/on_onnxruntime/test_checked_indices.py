"""Indices are not cut to their range before a Gather: onnxruntime refuses those out of it, and then they are."""

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import assert_both, computed, on_both
from webnn_py import MLGraphBuilder, UnknownError

onnxruntime = pytest.importorskip("onnxruntime")

TABLE = np.random.default_rng(3).normal(size=(7, 4)).astype(np.float32)
WITHIN = {"int32": [-7, -1, 0, 6], "int64": [-7, -1, 0, 6], "uint32": [0, 1, 2, 6]}
BEYOND = {
    "int32": [-8, 7, 2**31 - 1, -(2**31)],
    "int64": [-8, 7, 2**31, 2**32, -(2**32), 2**63 - 1, -(2**63)],
    "uint32": [7, 2**31, 2**32 - 1],
}


def looked_up(b, indices):
    return b.gather(b.constant(TABLE), indices)


@pytest.mark.parametrize("data_type", WITHIN)
async def test_indices_in_their_range_are_looked_up_at_once(contexts, written, exact_runs, data_type):
    await assert_both(contexts, looked_up, np.array(WITHIN[data_type], data_type))
    assert (written["Gather"], written["Where"], len(exact_runs)) == (1, 0, 0)


@pytest.mark.parametrize(
    ("data_type", "index"), [(data_type, index) for data_type, indices in BEYOND.items() for index in indices]
)
async def test_an_index_beyond_its_range_is_cut_to_it_in_a_second_run(contexts, exact_runs, capfd, data_type, index):
    got = await assert_both(contexts, looked_up, np.array([1, index, 2], data_type))
    np.testing.assert_array_equal(got[1], TABLE[0 if index < 0 else 6])
    assert len(exact_runs) == 1
    assert capfd.readouterr() == ("", "")


async def test_each_run_is_right_whatever_was_before(contexts, exact_runs):
    context, _ = contexts
    builder = MLGraphBuilder(context)
    graph = await builder.build({"y": looked_up(builder, builder.input("x", data_type="int32", shape=[2]))})
    x = await context.create_buffer(data_type="int32", shape=[2], writable=True)
    y = await context.create_buffer(data_type="float32", shape=[2, 4], readable=True)
    for count, indices in ((0, [1, 2]), (1, [9, -9]), (1, [3, 4]), (2, [-1, 7])):
        context.write_buffer(x, np.array(indices, np.int32))
        context.dispatch(graph, {"x": x}, {"y": y})
        np.testing.assert_array_equal(await context.read_buffer(y), TABLE[np.clip(indices, -7, 6)])
        assert len(exact_runs) == count


async def test_a_number_that_is_looked_at_and_an_index_out_of_range_are_both_made_good(contexts, exact_runs):
    x, indices = np.array([[1, np.nan], [2, 3]], np.float32), np.array([0, 1, 5], np.int32)
    got = await assert_both(contexts, lambda b, x, indices: b.gather(b.reduce_max(x, axes=[1]), indices), x, indices)
    np.testing.assert_array_equal(got, [np.nan, 3, 3])
    assert len(exact_runs) == 1


async def test_constant_indices_are_cut_as_the_model_is_written(contexts, exact_runs):
    await assert_both(contexts, lambda b, x: b.gather(x, b.constant(np.array([-9, 9], np.int32))), TABLE)
    assert not exact_runs


async def test_another_provider_is_not_relied_on(ml, written):
    others = [name for name in onnxruntime.get_available_providers() if name != "CPUExecutionProvider"]
    if not others:
        pytest.skip("onnxruntime has no other provider here")
    context = await ml.create_context(backend="onnxruntime", execution_provider=others[0])
    np.testing.assert_array_equal(await computed(context, looked_up, np.array([5, 1], np.int32)), TABLE[[5, 1]])
    assert written["Where"] == 2


@pytest.fixture
def failing(monkeypatch):
    """Make all runs fail, and those be ended, too, once something is in the list."""
    from webnn_py.devices.onnxruntime import session  # noqa: PLC0415 - an extra

    made, is_ended = session.BoundSession.__init__, []

    def init(self, *arguments):
        made(self, *arguments)

        def compute(_binding, options):
            options.terminate = bool(is_ended)
            raise RuntimeError("out of order")

        self.compute = compute

    monkeypatch.setattr(session.BoundSession, "__init__", init)
    return is_ended


@pytest.mark.parametrize("draw", [looked_up, lambda b, x: b.abs(x)])
async def test_other_failures_stay_failures(contexts, failing, draw):
    with pytest.raises(UnknownError, match="out of order"):
        await on_both(contexts, draw, np.array([1], np.int32))


async def test_a_run_that_is_ended_is_not_run_again(contexts, failing, exact_runs):
    failing.append(True)
    with pytest.raises(UnknownError):
        await on_both(contexts, looked_up, np.array([1], np.int32))
    assert not exact_runs
