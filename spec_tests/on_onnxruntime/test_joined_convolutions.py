"""Convolutions of few filters of one image are written as one, and give what each gives alone."""

from functools import partial

import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

pytest.importorskip("onnxruntime")

from webnn_py.rewriting.passes import passes_left_out

RNG = np.random.default_rng(12)
X = RNG.normal(size=(2, 32, 6, 5)).astype(np.float32)
X[0, 0, 0, 0], X[0, 3, 5, 4], X[1, 31, 2, 2] = np.nan, np.inf, -np.inf
COUNTS = 1, 1, 4, 10


class Drawing:
    """A builder that makes up the same constants each time."""

    def __init__(self, builder):
        self._builder = builder
        self._rng = np.random.default_rng(13)

    def __getattr__(self, name):
        return getattr(self._builder, name)

    def numbers(self, *shape, data_type="float32"):
        return self.constant((self._rng.normal(size=shape) / 8).astype(data_type))


def pointwise(b, x, count, *, window=1, is_biased=True, **options):
    _, channels, _, _ = x.shape
    filters = b.numbers(count, channels, window, window, data_type=x.data_type)
    bias = {"bias": b.numbers(count, data_type=x.data_type)} if is_biased else {}
    return b.conv2d(x, filters, **bias, **options)


def depthwise(b, x, **options):
    _, count, _, _ = x.shape
    return b.conv2d(x, b.numbers(count, 1, 3, 3), groups=count, padding=[1, 1, 1, 1], bias=b.numbers(count), **options)


def last(b, x):
    return b.transpose(x, permutation=[0, 2, 3, 1])


def rows(b, x):
    batch, height, width, channels = x.shape
    return b.reshape(x, [batch, height * width, channels])


def named(*operands):
    return {f"y{number}": operand for number, operand in enumerate(operands)}


def each(steps, b, x, counts=COUNTS, **options):
    """A branch for each of some counts of filters, with the same steps behind its convolution."""
    made = []
    for count in counts:
        y = pointwise(b, x, count, **options)
        for step in steps:
            y = step(b, y)
        made.append(y)
    return named(*made)


def behind_each(step, b, x, **options):
    return {name: step(b, y) for name, y in each([], b, x, **options).items()}


def heads(b, x):
    scores, *others = each([depthwise, last, rows], b, x).values()
    return named(b.sigmoid(scores), *others, b.softmax(others[-1], 2))


def with_one_that_goes_on_otherwise(b, x):
    *others, y = each([depthwise], b, x).values()
    return named(*(last(b, other) for other in others), b.transpose(y, permutation=[0, 3, 2, 1]))


def with_one_that_is_read_twice(b, x):
    *others, y = each([depthwise], b, x).values()
    return named(*(last(b, other) for other in others), last(b, y), b.neg(y))


def with_one_that_is_an_output(b, x):
    branches = each([depthwise], b, x)
    return branches | {f"{name}, last": last(b, y) for name, y in branches.items()}


def with_one_output_of_two_names(b, x):
    branches = each([], b, x)
    return branches | {"same": branches["y2"]}


def cut_into_lines(b, x):
    """Reshapes that leave the channels' axis as none."""
    return behind_each(lambda b, y: b.reshape(y, [2, y.shape[1] * 30]), b, x)


def turned_round(b, x):
    return each([lambda b, y: b.transpose(y)], b, x)


def last_and_cut_otherwise(b, x):
    """Reshapes after which something else than the channels' axis differs."""
    branches = each([last], b, x, counts=(4, 4)).values()
    return named(*(b.reshape(y, shape) for y, shape in zip(branches, ([2, 30, 4], [2, 15, 2, 4]), strict=True)))


def one_behind_the_other(b, x):
    first = each([], b, x, counts=(8, 8, 8, 8)).values()
    return each([depthwise], b, b.concat([*first], 1))


def of_more_than_one_walk(b, x):
    return each([], b, x, counts=(4, 8, 10, 8, 8, 8))


def of_two_windows(b, x):
    return named(*(pointwise(b, x, 2, window=window) for window in (1, 1, 3)))


def of_two_ways(b, x):
    padded = {"window": 3, "padding": [1, 1, 1, 1]}
    return named(pointwise(b, x, 2, **padded), pointwise(b, x, 2, **padded), pointwise(b, x, 2, window=3))


def some_with_bias(b, x):
    return named(*(pointwise(b, x, 3, is_biased=is_biased) for is_biased in (True, False)))


def with_computed_filters(b, x):
    filters = b.slice(b.clamp(x, min_value=-1, max_value=1), [0, 0, 0, 0], [2, 32, 1, 1])
    return named(*(b.conv2d(x, filters) for _ in range(2)))


def of_groups(b, x):
    return named(*(b.conv2d(x, b.numbers(4, 16, 1, 1), groups=2) for _ in range(2)))


def of_images_of_fewer_channels(b, x):
    return each([], b, b.slice(x, [0, 0, 0, 0], [2, 28, 6, 5]))


def of_channels_last(b, x):
    y = last(b, x)
    return named(*(b.conv2d(y, b.numbers(2, 32, 1, 1), input_layout="nhwc") for _ in range(2)))


def of_float16(b, x):
    y = b.cast(x, "float16")
    return each([], b, y, counts=(2, 2))


JOINED = {
    "alone": (partial(each, []), 1, 4),
    "without bias": (partial(each, [], is_biased=False), 1, 4),
    "of two": (partial(each, [], counts=(3, 12)), 1, 2),
    "with windows in steps": (
        partial(each, [], window=3, strides=[2, 1], padding=[1, 1, 2, 2], dilations=[2, 1]),
        1,
        4,
    ),
    "with Relus behind": (partial(each, [lambda b, y: b.relu(y)]), 1, 4),
    "with depthwise ones behind": (partial(each, [depthwise, lambda b, y: b.relu(y), depthwise]), 3, 4),
    "heads": (heads, 2, 4),
    "with one that goes on otherwise": (with_one_that_goes_on_otherwise, 2, 4),
    "with one that is read twice": (with_one_that_is_read_twice, 2, 4),
    "with one that is an output": (with_one_that_is_an_output, 2, 4),
    "with one output of two names": (with_one_output_of_two_names, 1, 4),
    "cut into lines": (cut_into_lines, 1, 4),
    "turned round": (turned_round, 1, 4),
    "last and cut otherwise": (last_and_cut_otherwise, 1, 2),
    "one behind the other": (one_behind_the_other, 3, 8),
    "of more than one walk": (of_more_than_one_walk, 2, 6),
    "of two windows": (of_two_windows, 2, 2),
    "of two ways": (of_two_ways, 2, 2),
    "depthwise, of channels in blocks that would be none": (partial(each, [depthwise], counts=(3, 12)), 4, 0),
    "with others of some of them behind": (
        partial(behind_each, lambda b, y: pointwise(b, y, 2) if y.shape[1] == 4 else y),
        5,
        0,
    ),
    "behind which a constant is added": (partial(behind_each, lambda b, y: b.add(y, b.numbers(1, 1, 1, 1))), 4, 0),
    "some with bias": (some_with_bias, 2, 0),
    "with computed filters": (with_computed_filters, 2, 0),
    "of groups": (of_groups, 2, 0),
    "of images of fewer channels": (of_images_of_fewer_channels, 4, 0),
    "of channels last": (of_channels_last, 2, 0),
    "of float16": (of_float16, 2, 0),
    "of many filters": (partial(each, [], counts=(12, 13)), 2, 0),
    "of very many filters": (partial(each, [], counts=(33, 1)), 2, 0),
}
"""How many convolutions are drafts, and how many pieces."""


def convolutions(nodes):
    return sum(node.operator == "Conv" for node in nodes)


def pieces(nodes):
    return sum(len(node.outputs) for node in nodes if node.operator == "Split")


async def computed(ml, draw, *, backend="onnxruntime"):
    context = await ml.create_context(backend=backend, **({"threads": 1} if backend == "onnxruntime" else {}))
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=X.shape)
    return await compute(context, builder, {"x": X}, draw(Drawing(builder), x))


@pytest.mark.parametrize("case", JOINED)
async def test_convolutions_of_one_image_are_one_with_the_same_results(ml, drafts, case):
    draw, count, cut = JOINED[case]
    ours = await computed(ml, draw)
    assert (convolutions(drafts[0]), pieces(drafts[0])) == (count, cut)
    with passes_left_out("convolution-branches"):
        apart = await computed(ml, draw)
    for expected in (apart, await computed(ml, draw, backend="numpy")):
        assert ours.keys() == expected.keys()
        for name, array in ours.items():
            error = 2e-2 if case == "of float16" else 1e-4
            np.testing.assert_allclose(array, expected[name], rtol=error, atol=error, err_msg=name)
    assert pieces(drafts[1]) == 0


async def test_what_heads_end_in_is_cut_along_the_axis_to_which_the_channels_have_moved(ml, drafts):
    await computed(ml, heads)
    operators = [node.operator for node in drafts[0]]
    assert [operators.count(name) for name in ("Conv", "Transpose", "Reshape", "Split")] == [2, 1, 1, 1]
    (split,) = (node for node in drafts[0] if node.operator == "Split")
    assert dict(split.attributes)["axis"] == 2


async def test_joined_constants_lie_in_a_context_once_for_all_graphs_that_join_the_same(ml):
    context = await ml.create_context(backend="onnxruntime", threads=1)
    filters = [np.full((4, 32, 3, 3), number, np.float32) for number in (1, 2, 3)]
    for array in filters:
        array.flags.writeable = False
    x = np.ones((1, 32, 3, 3), np.float32)

    def drawn(*chosen):
        builder = MLGraphBuilder(context)
        image = builder.input("x", data_type="float32", shape=x.shape)
        constants = [builder._constant_shared(filters[number], bytes([number])) for number in chosen]
        return builder, named(*(builder.conv2d(image, constant) for constant in constants))

    graphs, live = [], []
    for chosen in ((0, 1), (0, 1), (1, 0)):
        builder, outputs = drawn(*chosen)
        graphs.append(await builder.build(outputs))
        live.append(context.statistics().live_bytes)
    assert live[1] - live[0] < 2 * filters[0].nbytes <= live[2] - live[1]
    builder, outputs = drawn(0, 2)
    results = await compute(context, builder, {"x": x}, outputs)
    assert [float(results[name][0, 0, 0, 0]) for name in ("y0", "y1")] == [288, 864]
