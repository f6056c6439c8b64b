"""Random graphs of the arithmetic and movement operators give what numpy gives, one operator after the other."""

import math

import attrs
import numpy as np
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spec_tests.support.buffers import filled, zeroed
from webnn_py import MLGraphBuilder, open_ml

MOST_ELEMENTS = 200
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


@attrs.define
class Program:
    """A graph as a list of the builder's calls, and the arrays that numpy computes for the same calls.

    Attributes:
        calls: the method, the indices of its operands, its other arguments, and the index of the output that is kept,
            or None for a method that returns one operand.
        arrays: the values: those of the inputs and constants, then one for each call.
        sources: how many inputs, and how many constants after them.
        outputs: the indices of the values that are outputs, some of them twice.
    """

    calls: list = attrs.field(factory=list)
    arrays: list = attrs.field(factory=list)
    sources: tuple[int, int] = (0, 0)
    outputs: list[int] = attrs.field(factory=list)


shapes = st.lists(st.integers(1, 4), max_size=3).map(tuple)


@st.composite
def programs(draw):
    program = Program(sources=(draw(st.integers(1, 3)), draw(st.integers(0, 2))))
    for _ in range(sum(program.sources)):
        shape = draw(shapes)
        seed = draw(st.integers(0, 99))
        program.arrays.append(np.random.default_rng(seed).integers(-9, 9, shape, np.int32))
    for _ in range(draw(st.integers(1, 12))):
        draw(st.sampled_from([draw_binary, draw_binary, draw_view, draw_view, draw_copy]))(draw, program)
    if not program.calls:
        draw_view(draw, program)
    computed = st.integers(sum(program.sources), len(program.arrays) - 1)
    program.outputs = draw(st.lists(computed, min_size=1, max_size=4))
    return program


def pick(draw, program):
    index = draw(st.integers(0, len(program.arrays) - 1))
    return index, program.arrays[index]


def draw_binary(draw, program):
    index, array = pick(draw, program)
    fitting = [
        other
        for other, candidate in enumerate(program.arrays)
        if fits(candidate.shape, array.shape) and math.prod(np.broadcast_shapes(candidate.shape, array.shape)) < 400
    ]
    other = draw(st.sampled_from(fitting))
    name = draw(st.sampled_from(sorted(BINARY)))
    program.calls.append((name, [index, other], [], {}, None))
    program.arrays.append(np.asarray(BINARY[name](array, program.arrays[other])))


def fits(shape, other):
    pairs = zip(reversed(shape), reversed(other), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def draw_view(draw, program):
    index, array = pick(draw, program)
    kind = draw(st.sampled_from(["reshape", "transpose", "reverse", "slice", "expand"]))
    options = {}
    if kind == "reshape":
        factors = draw(st.permutations([*prime_factors(array.size), 1]))
        cut = draw(st.integers(0, len(factors)))
        shape = [math.prod(factors[:cut]), math.prod(factors[cut:])]
        arguments, result = [shape], array.reshape(shape)
    elif kind == "transpose":
        permutation = draw(st.permutations(range(array.ndim)))
        arguments, options, result = [], {"permutation": permutation}, array.transpose(permutation)
    elif kind == "reverse":
        axes = draw(st.lists(st.sampled_from(range(array.ndim)), unique=True)) if array.ndim else []
        arguments, options, result = [], {"axes": axes}, np.flip(array, axes)
    elif kind == "slice":
        starts = [draw(st.integers(0, size - 1)) for size in array.shape]
        sizes = [draw(st.integers(1, size - start)) for size, start in zip(array.shape, starts, strict=True)]
        strides = [draw(st.integers(1, size)) for size in sizes]
        windows = zip(starts, sizes, strides, strict=True)
        result = array[tuple(slice(start, start + size, stride) for start, size, stride in windows)]
        arguments, options = [starts, sizes], {"strides": strides}
    else:
        shape = [draw(st.integers(1, 3)) if size == 1 else size for size in array.shape]
        if array.ndim < 4:
            shape = [draw(st.integers(1, 2)), *shape]
        shape = shape if math.prod(shape) <= MOST_ELEMENTS else array.shape
        arguments, result = [list(shape)], np.broadcast_to(array, shape)
    program.calls.append((kind, [index], arguments, options, None))
    program.arrays.append(np.array(result))


def prime_factors(number):
    for factor in range(2, number + 1):
        if number % factor == 0:
            return [factor, *prime_factors(number // factor)]
    return []


def draw_copy(draw, program):
    index, array = pick(draw, program)
    if not array.ndim:
        return
    axis = draw(st.integers(0, array.ndim - 1))
    kind = draw(st.sampled_from(["concat", "split", "tile", "pad"]))
    call = (kind, [index], [], {}, None)
    if kind == "concat" and 2 * array.size <= MOST_ELEMENTS:
        call, result = (kind, [index, index], [axis], {}, None), np.concatenate([array, array], axis)
    elif kind == "tile" and 2 * array.size <= MOST_ELEMENTS:
        repetitions = [2 if number == axis else 1 for number in range(array.ndim)]
        call, result = (kind, [index], [repetitions], {}, None), np.tile(array, repetitions)
    elif kind == "pad" and 3 * array.size <= MOST_ELEMENTS:
        padding = [[draw(st.integers(0, 1)) for _ in array.shape] for _ in range(2)]
        result = np.pad(array, list(zip(*padding, strict=True)), constant_values=7)
        call = (kind, [index], padding, {"value": 7}, None)
    else:
        cut = draw(st.integers(1, array.shape[axis]))
        sizes = [size for size in (cut, array.shape[axis] - cut) if size]
        piece = draw(st.integers(0, len(sizes) - 1))
        result = np.split(array, [cut], axis)[piece]
        call = ("split", [index], [sizes], {"axis": axis}, piece)
    program.calls.append(call)
    program.arrays.append(np.array(result))


def build(context, program):
    """Make the calls; the inputs are named for the values that they are given, x0 and so on."""
    builder = MLGraphBuilder(context)
    operands = []
    for index, array in enumerate(program.arrays[: sum(program.sources)]):
        if index < program.sources[0]:
            operands.append(builder.input(f"x{index}", data_type="int32", shape=array.shape))
        else:
            operands.append(builder.constant(array))
    for name, indices, arguments, options, kept in program.calls:
        chosen = [operands[index] for index in indices]
        given = [chosen] if name == "concat" else chosen
        result = getattr(builder, name)(*given, *arguments, **options)
        operands.append(result if kept is None else result[kept])
    return builder.build({f"y{number}": operands[index] for number, index in enumerate(program.outputs)})


async def run(program):
    async with open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        graph = await build(context, program)
        sources = {
            name: await filled(context, program.arrays[int(name[1:])], "int32") for name in graph.input_descriptors
        }
        targets = {name: await zeroed(context, d.shape, "int32") for name, d in graph.output_descriptors.items()}
        for _ in range(2):
            context.dispatch(graph, sources, targets)
            for name, target in targets.items():
                expected = program.arrays[program.outputs[int(name[1:])]]
                np.testing.assert_array_equal(await context.read_buffer(target), expected, f"the output {name}")
        for name, source in sources.items():
            unchanged = program.arrays[int(name[1:])]
            np.testing.assert_array_equal(await context.read_buffer(source), unchanged, f"the input {name}")
    assert context.statistics().live_bytes == 0


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(program=programs())
def test_a_random_graph_computes_what_numpy_computes(program):
    trio.run(run, program)
