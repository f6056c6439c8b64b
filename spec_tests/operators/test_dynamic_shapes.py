"""Every operator with a named dimension: the same bits, or the same refusal, as in a graph of these sizes."""

from functools import partial

import attrs
import numpy as np
import pytest

import webnn_py
from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.computing import run_graph
from spec_tests.support.depth import amount, has_turn
from webnn_py import MLDynamicDimension, MLGraphBuilder, MLOperandDescriptor
from webnn_py.operators.examples import examples_of
from webnn_py.operators.registry import OPERATORS


@attrs.frozen
class Way:
    """A dimension that takes the place of 2 in operands' shapes, at which axes, and its sizes in dispatches."""

    dimension: MLDynamicDimension
    axes: range
    sizes: tuple[int, ...]

    def drawn(self, size, axis):
        """Return the dimension in a shape of the dynamic graph."""
        return self.dimension if size == 2 and axis in self.axes else size

    def fixed(self, number):
        """Return the dimension in a shape of a graph of fixed sizes."""
        return lambda size, axis: number if size == 2 and axis in self.axes else size


WAYS = [
    Way(MLDynamicDimension("n", 2), range(9), (2, 1)),
    Way(MLDynamicDimension("n", 5), range(1), (5, 3, 1)),
    Way(MLDynamicDimension("n", 6, 2), range(9), (4,)),
]
MOST_ON_GPU = 2
"""So many calls of each operator run on the GPU, each with one size: software Vulkan compiles slowly."""


@pytest.fixture
async def ml():
    async with webnn_py.open_ml(experimental={"dynamic-shapes"}) as opened:
        yield opened


def drawn(context, operator, example, size_of):
    """A builder, and the outputs of a call; TypeError where it is refused."""
    builder = MLGraphBuilder(context)

    def operand(name, descriptor):
        shape = [size_of(size, axis) for axis, size in enumerate(descriptor.shape)]
        return builder.input(name, data_type=descriptor.data_type, shape=shape)

    def argument(name, value):
        if isinstance(value, MLOperandDescriptor):
            return operand(name, value)
        if operator.parameters[name].is_operand:
            return [operand(f"{name}{index}", descriptor) for index, descriptor in enumerate(value)]
        return value

    results = getattr(builder, operator.name)(**{name: argument(name, value) for name, value in example.items()})
    results = results if isinstance(results, list) else [results]
    return builder, {f"result{index}": result for index, result in enumerate(results)}


def data_of(descriptor, shape):
    random = np.random.default_rng(len(shape))
    if descriptor.data_type.startswith("float"):
        return (2 * random.random(shape) - 0.5).astype(descriptor.data_type)
    return random.integers(0, 2, shape).astype(descriptor.data_type)


async def check(context, operator, example, way, most=None):
    """The number of sizes of a call that have been compared."""
    try:
        builder, outputs = drawn(context, operator, example, way.drawn)
    except TypeError:
        return 0  # already at the largest size
    graph = await builder.build(outputs)
    if graph._dynamic is None:
        graph.destroy()
        return 0
    sizes = way.sizes[-1 if most else 0 :]
    for size in sizes:
        await check_size(context, graph, partial(drawn, context, operator, example, way.fixed(size)), size)
    graph.destroy()
    return len(sizes)


async def check_size(context, graph, draw_fixed, size):
    shapes = {
        name: [number if isinstance(number, int) else size for number in descriptor.shape]
        for name, descriptor in graph.input_descriptors.items()
    }
    case = f"{graph!r} where n is {size}"
    try:
        builder, outputs = draw_fixed()
    except TypeError:
        with pytest.raises(TypeError, match="the graph is none where n"):
            graph.compute_shapes(shapes)
        return
    wanted_shapes = {name: output.shape for name, output in outputs.items()}
    assert graph.compute_shapes(shapes) == wanted_shapes, case
    arrays = {name: data_of(descriptor, shapes[name]) for name, descriptor in graph.input_descriptors.items()}
    fixed = await builder.build(outputs)
    wanted = await run_graph(context, fixed, arrays, wanted_shapes)
    got = await run_graph(context, graph, arrays, wanted_shapes)
    fixed.destroy()
    for name, array in wanted.items():
        np.testing.assert_array_equal(got[name], array, err_msg=f"{name} of {case}")


def examples(context, operator):
    rows = context.op_support_limits()[operator.name]
    types = {name: [*rows[name]["data_types"]] for name in operator.limits}
    chosen = {name: "float32" if "float32" in row else row[0] for name, row in types.items()}
    return list(examples_of(operator, chosen, 3))


@pytest.mark.parametrize("way", range(len(WAYS)))
async def test_an_operator_computes_the_same_on_numpy(request, ml, way):
    context = await ml.create_context(backend="numpy")
    parts = amount(request.config, quick=16, full=2, thorough=1)
    compared = 0
    for index, name in enumerate(sorted(OPERATORS)):
        calls = examples(context, OPERATORS[name])
        for place, example in enumerate(calls):
            if has_turn(request.config, 5 * index + place, parts):
                compared += await check(context, OPERATORS[name], example, WAYS[way])
    assert compared > 5


@pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)
@pytest.mark.parametrize("way", range(len(WAYS)))
async def test_an_operator_computes_the_same_on_the_gpu(request, ml, shared_gpu, way):
    context = await ml.create_context(gpu_device=shared_gpu)
    parts = amount(request.config, quick=60, full=12, thorough=1)
    for index, name in enumerate(sorted(OPERATORS)):
        for place, example in enumerate(examples(context, OPERATORS[name])[:MOST_ON_GPU]):
            if has_turn(request.config, 7 * way + MOST_ON_GPU * index + place, parts):
                await check(context, OPERATORS[name], example, WAYS[way], most=1)
