"""A compiled graph of the numpy device: folding, views, outputs, and the memory of intermediates."""

import numpy as np
import pytest

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.stand_ins import noted
from webnn_py import MLGraphBuilder
from webnn_py.devices.numpy.kernels.recurrent import Network

X = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


class Drawn:
    """A builder on a context, and the graph that comes of it, run on arrays."""

    def __init__(self, context):
        self.context = context
        self.builder = MLGraphBuilder(context)

    def input(self, name="x", array=X):
        return self.builder.input(name, data_type=array.dtype.name, shape=array.shape)

    async def build(self, **outputs):
        self.graph = await self.builder.build(outputs)
        return self

    @property
    def steps(self):
        """The operators that run at each dispatch; None for a copy into an output."""
        calls = self.graph.handle.compiled._calls
        return [None if call.node is None else call.node.operator.name for call in calls]

    @property
    def byte_length(self):
        return self.graph.handle.compiled.byte_length

    async def run(self, **inputs):
        """Dispatch with fresh buffers and read every output; also see that no input has changed."""
        sources = {name: await filled(self.context, array, array.dtype.name) for name, array in inputs.items()}
        targets = {
            name: await zeroed(self.context, descriptor.shape, descriptor.data_type)
            for name, descriptor in self.graph.output_descriptors.items()
        }
        self.context.dispatch(self.graph, sources, targets)
        results = {name: await self.context.read_buffer(buffer) for name, buffer in targets.items()}
        for name, array in inputs.items():
            np.testing.assert_array_equal(await self.context.read_buffer(sources[name]), array, f"the input {name}")
        return results


@pytest.fixture
def drawn(numpy_context):
    return Drawn(numpy_context)


VIEWS = {
    "reshape": (lambda b, v: b.reshape(v, [4, 6]), lambda a: a.reshape(4, 6)),
    "transpose": (lambda b, v: b.transpose(v, permutation=[2, 0, 1]), lambda a: a.transpose(2, 0, 1)),
    "expand": (lambda b, v: b.expand(v, [5, 2, 3, 4]), lambda a: np.broadcast_to(a, (5, 2, 3, 4))),
    "slice": (lambda b, v: b.slice(v, [0, 1, 0], [2, 2, 4], strides=[1, 1, 3]), lambda a: a[:, 1:3, ::3]),
    "reverse": (lambda b, v: b.reverse(v, axes=[0, 2]), lambda a: a[::-1, :, ::-1]),
    "view of a view": (
        lambda b, v: b.reverse(b.slice(b.transpose(v), [0, 1, 0], [3, 2, 2])),
        lambda a: a.T[0:3, 1:3, 0:2][::-1, ::-1, ::-1],
    ),
    "reshape of a transpose": (
        lambda b, v: b.reshape(b.transpose(v), [24]),
        lambda a: a.T.reshape(24),
    ),
    "view of a reshape of a transpose": (
        lambda b, v: b.reverse(b.reshape(b.transpose(v), [4, 6])),
        lambda a: a.T.reshape(4, 6)[::-1, ::-1],
    ),
    "reshape of an expansion": (
        lambda b, v: b.reshape(b.expand(v, [2, 2, 3, 4]), [48]),
        lambda a: np.broadcast_to(a, (2, 2, 3, 4)).reshape(48),
    ),
}

each_view = pytest.mark.parametrize(("draw", "expected"), VIEWS.values(), ids=VIEWS)


@each_view
async def test_a_view_of_an_output_is_another_output(drawn, draw, expected):
    x = drawn.input()
    total = drawn.builder.add(x, x)
    await drawn.build(total=total, y=draw(drawn.builder, total))
    for factor in (1, 10):
        results = await drawn.run(x=X * factor)
        np.testing.assert_array_equal(results["total"], 2 * X * factor)
        np.testing.assert_array_equal(results["y"], expected(2 * X * factor))


BASES = {
    "input": (lambda _, x: x, lambda array: array),
    "constant": (lambda b, _: b.constant(X), lambda _: X),
    "intermediate": (lambda b, x: b.add(x, x), lambda array: 2 * array),
}
each_base = pytest.mark.parametrize(("base", "values"), BASES.values(), ids=BASES)


@each_view
@each_base
async def test_a_view_is_an_output(drawn, draw, expected, base, values):
    await drawn.build(y=draw(drawn.builder, base(drawn.builder, drawn.input())))
    for array in (X, X * 10):
        given = {"x": array} if drawn.graph.input_descriptors else {}
        np.testing.assert_array_equal((await drawn.run(**given))["y"], expected(values(array)))
    assert given or drawn.steps == [None], "a view of a constant is computed at build"


@each_view
@each_base
async def test_a_view_is_an_operand_like_any_other(drawn, draw, expected, base, values):
    x, b = drawn.input(), drawn.builder
    view = draw(b, base(b, x))
    await drawn.build(y=b.add(view, b.reshape(b.slice(x, [0] * 3, [1] * 3), [])))
    for array in (X + 1, X + 10):
        results = await drawn.run(x=array)
        np.testing.assert_array_equal(results["y"], expected(values(array)) + array[0, 0, 0])


async def test_a_view_that_is_an_output_does_not_share_the_inputs_memory(numpy_context, drawn):
    await drawn.build(y=drawn.builder.transpose(drawn.input()))
    source, target = await filled(numpy_context, X, "int32"), await zeroed(numpy_context, [4, 3, 2], "int32")
    numpy_context.dispatch(drawn.graph, {"x": source}, {"y": target})
    numpy_context.write_buffer(source, X * 0)
    np.testing.assert_array_equal(await numpy_context.read_buffer(target), X.T)


async def test_views_follow_the_buffers_of_each_dispatch(numpy_context, drawn):
    x = drawn.input()
    await drawn.build(y=drawn.builder.add(drawn.builder.reverse(x), x))
    sources = [await filled(numpy_context, X * factor, "int32") for factor in (1, 10)]
    targets = [await zeroed(numpy_context, X.shape, "int32") for _ in sources]
    for source, target in zip(sources, targets, strict=True):
        numpy_context.dispatch(drawn.graph, {"x": source}, {"y": target})
    for factor, target in zip((1, 10), targets, strict=True):
        expected = (X[::-1, ::-1, ::-1] + X) * factor
        np.testing.assert_array_equal(await numpy_context.read_buffer(target), expected)


async def test_views_take_no_step_and_no_memory(drawn):
    x, b = drawn.input(), drawn.builder
    await drawn.build(y=b.add(b.reverse(b.transpose(b.reshape(x, [2, 12]))), b.reshape(x, [12, 2])))
    assert drawn.steps == ["add"]
    assert drawn.byte_length == 0


async def test_a_graph_of_constants_only_is_computed_at_build(drawn):
    b = drawn.builder
    total = b.mul(b.add(b.constant(X), b.constant(X)), b.constant(3, data_type="int32"))
    await drawn.build(y=total, half=b.sub(total, b.constant(X)))
    assert drawn.steps == [None, None]
    assert drawn.byte_length == 2 * X.nbytes
    assert drawn.graph.input_descriptors == {}
    for _ in range(2):
        results = await drawn.run()
        np.testing.assert_array_equal(results["y"], 6 * X)
        np.testing.assert_array_equal(results["half"], 5 * X)


async def test_what_depends_on_no_input_is_no_step(drawn):
    b = drawn.builder
    factor = b.add(b.constant(X), b.transpose(b.constant(np.ascontiguousarray(X.T))))
    await drawn.build(y=b.mul(drawn.input(), factor))
    assert drawn.steps == ["mul"]
    assert drawn.byte_length == X.nbytes, "only the folded constant stays"
    np.testing.assert_array_equal((await drawn.run(x=X))["y"], X * 2 * X)


async def test_what_a_constant_buffer_makes_is_computed_at_build_too(numpy_context, drawn):
    weights = await constant(numpy_context, X, "int32")
    b = drawn.builder
    held = b.constant(weights)
    await drawn.build(y=b.add(drawn.input(), b.add(held, held)))
    weights.destroy()
    assert drawn.steps == ["add"]
    np.testing.assert_array_equal((await drawn.run(x=X))["y"], 3 * X)


async def test_one_value_is_computed_once_under_many_names(drawn):
    x = drawn.input()
    total = drawn.builder.add(x, x)
    await drawn.build(a=total, b=total, c=total)
    assert drawn.steps == ["add", None, None]
    for factor in (1, 10):
        results = await drawn.run(x=X * factor)
        assert results.keys() == {"a", "b", "c"}
        for result in results.values():
            np.testing.assert_array_equal(result, 2 * X * factor)


async def test_an_output_that_other_nodes_read_is_right_for_both(drawn):
    x, b = drawn.input(), drawn.builder
    total = b.add(x, x)
    await drawn.build(y=b.mul(total, total), total=total)
    results = await drawn.run(x=X)
    np.testing.assert_array_equal(results["total"], 2 * X)
    np.testing.assert_array_equal(results["y"], 4 * X * X)


@pytest.mark.parametrize("used", [[0], [1], [2], [0, 2], [0, 1, 2]], ids=str)
async def test_a_node_with_several_outputs_may_be_used_in_part(drawn, used):
    pieces = drawn.builder.split(drawn.input(), 3, axis=1)
    doubled = {f"y{index}": drawn.builder.add(pieces[index], pieces[index]) for index in used}
    await drawn.build(**doubled, piece=pieces[used[0]])
    results = await drawn.run(x=X)
    for index in used:
        np.testing.assert_array_equal(results[f"y{index}"], 2 * X[:, index : index + 1])
    np.testing.assert_array_equal(results["piece"], X[:, used[0] : used[0] + 1])


async def test_the_intermediates_of_a_chain_share_the_memory_of_two(drawn):
    x = drawn.input("x", np.zeros(1000, np.float32))
    value = x
    for _ in range(10):
        value = drawn.builder.add(value, x)
    await drawn.build(y=value)
    aligned = 4032
    assert drawn.byte_length == 2 * aligned, "nine intermediates of 4000 bytes, two of which live at a time"
    array = np.arange(1000, dtype=np.float32)
    np.testing.assert_array_equal((await drawn.run(x=array))["y"], 11 * array)


async def test_an_intermediate_keeps_its_memory_until_its_last_reader(drawn):
    x, b = drawn.input(), drawn.builder
    early = b.add(x, x)
    value = early
    for _ in range(6):
        value = b.add(value, x)
    await drawn.build(y=b.sub(value, early))
    np.testing.assert_array_equal((await drawn.run(x=X))["y"], 6 * X)


async def test_an_intermediate_that_is_only_seen_through_a_view_keeps_its_memory(drawn):
    x, b = drawn.input(), drawn.builder
    view = b.reverse(b.transpose(b.add(x, x)))
    value = x
    for _ in range(4):
        value = b.sub(value, x)
    await drawn.build(y=b.add(b.transpose(view), value))
    np.testing.assert_array_equal((await drawn.run(x=X))["y"], 2 * X[::-1, ::-1, ::-1] - 3 * X)


async def test_an_intermediate_that_is_an_output_through_a_view_keeps_its_memory_to_the_end(drawn):
    x, b = drawn.input(), drawn.builder
    view = b.transpose(b.add(x, x))
    value = b.transpose(view)
    for _ in range(4):
        value = b.sub(value, x)
    await drawn.build(view=view, y=value)
    results = await drawn.run(x=X)
    np.testing.assert_array_equal(results["view"], 2 * X.T)
    np.testing.assert_array_equal(results["y"], -2 * X)


async def test_a_released_graph_holds_no_arrays(numpy_context, drawn):
    x = drawn.input()
    await drawn.build(y=drawn.builder.add(drawn.builder.mul(x, drawn.builder.constant(X)), x))
    compiled = drawn.graph.handle.compiled
    drawn.graph.destroy()
    await numpy_context.drain()
    assert compiled._template == []
    assert compiled._calls == []


@pytest.mark.parametrize(("features", "between", "times"), [(2000, True, 1), (4, False, 3)])
async def test_a_kernel_looks_once_at_arrays_that_are_always_the_same(drawn, monkeypatch, features, between, times):
    """Those in the arena; it looks at an input's buffer in each dispatch."""
    looks = noted(monkeypatch, Network, "prepare")
    x = np.linspace(-1, 1, 3 * features, dtype=np.float32).reshape(1, 3, features)
    builder = drawn.builder
    operand = drawn.input(array=x)
    operand = builder.neg(operand) if between else operand
    weight = builder.constant(np.full((1, 8, features), 0.5 / features, np.float32))
    recurrent = builder.constant(np.full((1, 8, 2), 0.25, np.float32))
    (hidden, _) = builder.lstm(operand, weight, recurrent, steps=1, hidden_size=2)
    await drawn.build(y=builder.neg(hidden))
    assert len(looks) == (times == 1)
    results = [(await drawn.run(x=array))["y"] for array in (x, 2 * x, x)]
    assert len(looks) == times
    np.testing.assert_array_equal(results[0], results[2])
    assert (results[0] != results[1]).any()


async def test_the_plan_names_what_a_dispatch_calls(drawn):
    x = drawn.input(array=X.astype(np.float32))
    softened = drawn.builder.softmax(x, 1)
    await drawn.build(y=drawn.builder.relu(softened), x=drawn.builder.identity(x))
    names = [kernel.name for kernel in drawn.graph.handle.compiled.plan.kernels]
    assert names == [step or "copy" for step in drawn.steps] == ["softmax", "relu", "copy"]


@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 2)])
async def test_what_is_gathered_from_one_place_follows_the_input(drawn, shape):
    arrays = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + number for number in (1, 10, 100)]
    gathered = drawn.builder.gather(drawn.input(array=arrays[0]), drawn.builder.constant(np.array(1, np.int32)))
    await drawn.build(y=drawn.builder.neg(gathered))
    for array in arrays:
        np.testing.assert_array_equal((await drawn.run(x=array))["y"], -array[1])
