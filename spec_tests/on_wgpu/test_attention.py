"""Attention is one kernel, whatever it is drawn of, and computes what the products and the softmax would."""

import numpy as np
import pytest

from spec_tests.support.both_devices import check_both
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Graph, Input
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.devices.wgpu.codegen.attention import emit, tile
from webnn_py.devices.wgpu.codegen.attention.tile import AttentionTile
from webnn_py.devices.wgpu.lowering import LoweringContext, lowered
from webnn_py.devices.wgpu.passes.arena import place_blocks
from webnn_py.devices.wgpu.passes.kernel_groups import KernelGroups
from webnn_py.devices.wgpu.records.features import Features

pytestmark = pytest.mark.sampled(7, full=3)

LOWEST = np.finfo(np.float16).min


@pytest.fixture(autouse=True)
def _also_small(fuse_attention_from):
    """Small attention is computed so, too."""
    fuse_attention_from(0)


@pytest.fixture
def check(ml, compiled):
    """Checks that a drawing computes what numpy does, and returns how many kernels it takes."""

    async def check(draw, arrays, tolerance=2e-6):
        await check_both(ml, arrays, draw, rtol=tolerance, is_finite=False)
        return compiled[-1][0]

    return check


def arrays(rows=20, keys=24, size=16, *, batch=(2,), key_batch=None, columns=None, data_type="float32", **others):
    """Queries, keys and values, and arrays of further shapes."""
    rng = np.random.default_rng([rows, keys, size])
    shapes = {"q": (*batch, rows, size), "k": (*(key_batch or batch), keys, size)}
    shapes["v"] = (*(key_batch or batch), keys, columns or size)
    shapes |= others
    return {name: (rng.integers(-64, 65, shape) / 32).astype(data_type) for name, shape in shapes.items()}


def turned(b, k):
    rank = k.rank
    return b.transpose(k, permutation=[*range(rank - 2), rank - 1, rank - 2])


def number(b, value, like):
    return b.constant(value, data_type=like.data_type)


def plain(b, q, k, v):
    return b.matmul(b.softmax(b.matmul(q, turned(b, k)), q.rank - 1), v)


def masked(b, q, k, v, m):
    scores = b.mul(b.matmul(q, turned(b, k)), number(b, 0.25, q))
    return b.matmul(b.softmax(b.add(scores, m), q.rank - 1), v)


def chosen(b, q, k, v, m):
    scores = b.div(b.matmul(q, turned(b, k)), number(b, 4, q))
    hidden = b.where(b.greater(m, number(b, 0, m)), scores, number(b, -np.inf, q))
    return b.matmul(b.softmax(hidden, q.rank - 1), v)


def seen(b, q, k, v, m):
    scores = b.matmul(q, turned(b, k))
    return b.matmul(b.softmax(b.where(m, scores, number(b, -100, q)), q.rank - 1), v)


def truths(given):
    return {**given, "m": (given["m"] > 0).astype(np.uint8)}


def capped(b, q, k, v):
    scores = b.mul(b.tanh(b.div(b.matmul(q, turned(b, k)), number(b, 5, q))), number(b, 5, q))
    return b.matmul(b.softmax(scores, q.rank - 1), v)


def of_a_layer(b, q, k, v):
    """Heads side by side in a row, as linear layers return them; and so they are joined again."""
    batch, rows, width = q.shape

    def heads(x, axes):
        return b.transpose(b.reshape(x, [batch, x.shape[1], width // 16, 16]), permutation=axes)

    scores = b.matmul(heads(q, [0, 2, 1, 3]), heads(k, [0, 2, 3, 1]))
    mixed = b.matmul(b.softmax(scores, 3), heads(v, [0, 2, 1, 3]))
    return b.reshape(b.transpose(mixed, permutation=[0, 2, 1, 3]), [batch, rows, width])


def reshaped_between(b, q, k, v, m):
    """The mask is added in other axes than the products are computed in."""
    batch, rows, _ = q.shape
    keys = k.shape[1]
    scores = b.reshape(b.matmul(q, turned(b, k)), [batch // 2, 2, rows, keys])
    probabilities = b.softmax(b.add(scores, m), 3)
    return b.matmul(b.reshape(probabilities, [batch, rows, keys]), v)


def in_float32_between(b, q, k, v):
    probabilities = b.softmax(b.cast(b.matmul(q, turned(b, k)), "float32"), q.rank - 1)
    return b.matmul(b.cast(probabilities, "float16"), v)


def of_groups(b, q, k, v, m=None):
    """Each head of keys and values serves for a group of heads of queries."""
    groups = q.shape[1] // k.shape[1]

    def repeated(x):
        batch, heads, length, size = x.shape
        by_group = b.expand(b.reshape(x, [batch, heads, 1, length, size]), [batch, heads, groups, length, size])
        return b.reshape(by_group, [batch, heads * groups, length, size])

    scores = b.matmul(q, turned(b, repeated(k)))
    scores = scores if m is None else b.add(scores, m)
    return b.matmul(b.softmax(scores, 3), repeated(v))


def with_a_cache(b, q, k, v, past_k, past_v):  # noqa: PLR0917 - the operands
    """Keys and values of before and of now, as a decoder joins them."""
    keys, values = b.concat([past_k, k], 2), b.concat([past_v, v], 2)
    return b.matmul(b.softmax(b.matmul(q, turned(b, keys)), 3), values)


def with_zeros_for_dead_rows(b, q, k, v, m):
    hidden = b.where(b.greater(m, number(b, 0, m)), number(b, -np.inf, q), number(b, 0, q))
    dead = b.equal(b.reduce_max(hidden, axes=[1], keep_dimensions=True), number(b, -np.inf, q))
    probabilities = b.softmax(b.add(b.matmul(q, turned(b, k)), hidden), 2)
    return b.matmul(b.where(dead, number(b, 0, q), probabilities), v)


def with_zeros_for_nan(b, q, k, v, m):
    probabilities = b.softmax(b.add(b.matmul(q, turned(b, k)), m), 2)
    return b.matmul(b.where(b.is_nan(probabilities), number(b, 0, q), probabilities), v)


def with_zeros_for_dead_rows_of_some_heads(b, q, k, v, m):
    """Probabilities are reshaped before what says which rows are dead, which is the same for some matrices."""
    probabilities = b.reshape(b.softmax(b.matmul(q, turned(b, k)), 2), [q.shape[0] // 2, 2, *q.shape[1:2], k.shape[1]])
    return b.matmul(b.where(b.greater(m, number(b, 0, m)), number(b, 0, q), probabilities), v)


def of_keys_repeated_for_some_axes(b, q, k, v):
    """Keys and values are expanded to the last axes, and by the products to the first one."""
    keys, values = (b.expand(x, [*q.shape[1:3], *x.shape[-2:]]) for x in (k, v))
    return b.matmul(b.softmax(b.matmul(q, turned(b, keys)), 4), values)


def and_more(b, q, k, v, m):
    """Element-wise nodes in front of the softmax and behind the product."""
    return b.mul(b.tanh(masked(b, q, k, v, m)), number(b, 3, q))


def of_constant_scores(b, q, k, v, m):
    """Queries and keys are constants, so that their product is one, too."""
    queries, keys = (b.constant(x) for x in (CONSTANTS["q"], CONSTANTS["k"]))
    return b.matmul(b.softmax(b.add(b.matmul(queries, turned(b, keys)), m), 2), v)


def of_constant_values(b, q, k, v):
    """Values are repeated of what is computed of constants."""
    values = b.expand(b.add(b.constant(CONSTANTS["v"][:1]), number(b, 1, q)), v.shape)
    return b.matmul(b.softmax(b.matmul(q, turned(b, k)), 2), values)


def dead(given):
    given["m"][1] = -np.inf
    return given


def keys_turned_before(b, q, k, v):
    return b.matmul(b.softmax(b.matmul(q, k), 2), v)


def turned_keys(given):
    return {**given, "k": np.ascontiguousarray(given["k"].swapaxes(1, 2))}


CONSTANTS = arrays()

DRAWINGS = {
    "plain": (plain, arrays()),
    "without a batch": (plain, arrays(batch=())),
    "few rows": (plain, arrays(rows=2)),
    "other columns": (plain, arrays(columns=40)),
    "masked keys": (masked, arrays(m=(24,))),
    "a mask": (masked, arrays(m=(20, 24))),
    "a mask of single elements": (masked, arrays(keys=23, m=(2, 20, 23))),
    "a column": (masked, arrays(rows=3, m=(2, 3, 1))),
    "chosen": (chosen, arrays(m=(2, 20, 24))),
    "truths": (seen, truths(arrays(m=(20, 24)))),
    "truths of rows": (seen, truths(arrays(rows=3, keys=23, m=(2, 3, 23)))),
    "zeros for NaN": (with_zeros_for_nan, dead(arrays(m=(20, 24)))),
    "zeros for NaN, few rows": (with_zeros_for_nan, dead(arrays(rows=3, keys=23, m=(3, 23)))),
    "capped": (capped, arrays()),
    "a layer": (of_a_layer, arrays(size=48)),
    "reshaped between": (reshaped_between, arrays(batch=(4,), m=(2, 1, 1, 24))),
    "groups": (of_groups, arrays(batch=(1, 4), key_batch=(1, 2))),
    "groups, a row": (of_groups, arrays(rows=1, batch=(2, 4), key_batch=(2, 2), m=(2, 1, 1, 24))),
    "one head of keys": (plain, arrays(rows=1, batch=(2, 3), key_batch=(2, 1))),
    "repeated for some axes": (of_keys_repeated_for_some_axes, arrays(batch=(2, 2, 3), key_batch=(2, 1))),
    "constant values": (of_constant_values, arrays()),
    "element-wise nodes behind": (and_more, arrays(m=(20, 24))),
    "element-wise nodes behind, few rows": (and_more, arrays(rows=3, m=(3, 24))),
    "more keys than a tile": (masked, arrays(rows=10, keys=300, m=(10, 300))),
}
"""Drawings that one kernel computes."""


@pytest.mark.parametrize(("draw", "given"), DRAWINGS.values(), ids=DRAWINGS)
async def test_attention_is_one_kernel(check, draw, given):
    assert await check(draw, given) == 1


def scores_are_masked_later(b, q, k, v, m):
    scores = b.matmul(q, turned(b, k))
    return b.matmul(b.softmax(b.add(scores, m), 2), v), b.reduce_max(scores)


def scores_are_read(b, q, k, v):
    scores = b.matmul(q, turned(b, k))
    return b.matmul(b.softmax(scores, 2), v), b.relu(scores)


def probabilities_are_an_output(b, q, k, v):
    probabilities = b.softmax(b.matmul(q, turned(b, k)), 2)
    return b.matmul(probabilities, v), probabilities


def along_the_queries(b, q, k, v):
    return b.matmul(b.softmax(b.matmul(q, turned(b, k)), 1), v)


SEVERAL = {
    "zeros for dead rows": (with_zeros_for_dead_rows, arrays(m=(20, 24)), 3),
    "zeros for dead rows of some heads": (
        with_zeros_for_dead_rows_of_some_heads,
        arrays(batch=(4,), m=(2, 1, 20, 1), v=(2, 2, 24, 16)),
        2,
    ),
    "keys the other way round": (keys_turned_before, turned_keys(arrays()), 2),
    "an output before its mask": (lambda b, q, k, v, m: (plain(b, q, k, v), b.neg(m)), arrays(m=(3,)), 2),
    "scores that are read before their mask is written": (scores_are_masked_later, arrays(m=(24,)), 4),
    "scores are read": (scores_are_read, arrays(), 4),
    "probabilities are an output": (probabilities_are_an_output, arrays(), 3),
    "a softmax along the queries": (along_the_queries, arrays(), 3),
    "constant scores": (of_constant_scores, arrays(m=(20, 24)), 2),
    "no vec4s": (plain, arrays(size=15), 3),
    "keys the other way round for a row": (keys_turned_before, turned_keys(arrays(rows=1)), 3),
}
"""Drawings that take further kernels, or that one kernel cannot compute, and how many they take."""


@pytest.mark.parametrize(("draw", "given", "kernels"), SEVERAL.values(), ids=SEVERAL)
async def test_what_is_around_or_cannot_be_one_kernel_takes_several(check, draw, given, kernels):
    assert await check(draw, given) == kernels


@pytest.mark.sampled(1)
async def test_keys_and_values_may_be_joined_from_a_cache(check):
    cache = {"past_k": (1, 2, 23, 16), "past_v": (1, 2, 23, 16)}
    assert await check(with_a_cache, arrays(rows=1, keys=1, batch=(1, 2), **cache)) == 3


async def test_little_work_is_left_to_three_kernels(check, fuse_attention_from):
    fuse_attention_from(2**16)
    assert await check(plain, arrays()) == 3


async def test_a_long_row_is_shared_by_workgroups(check):
    given = arrays(rows=2, keys=1030, m=(2, 1030))
    given["m"][0, :600] = given["m"][1] = -np.inf
    assert await check(masked, given) == 2


SPECIAL = {"rows": {"rows": 20}, "few rows": {"rows": 4}, "parts": {"rows": 4, "keys": 600}}


@pytest.mark.usefixtures("adapter_features")
@pytest.mark.parametrize("sizes", SPECIAL.values(), ids=SPECIAL)
async def test_nan_infinities_and_rows_that_are_masked_as_a_whole(check, sizes):
    given = arrays(**sizes, batch=(6,), m=(6, 1, sizes.get("keys", 24)))
    queries, keys, values, mask = given.values()
    queries[0, 1, 3], queries[1, 2, 3] = np.nan, np.inf
    keys[2, 5, 3], keys[3, 5, 3] = np.nan, -np.inf
    values[4, 3, 2], values[4, 4, 3] = np.nan, np.inf
    mask[...] = 0
    mask[5, 0, 7:] = -np.inf
    mask[4, 0, 4] = np.inf if sizes["rows"] == 4 else 0
    await check(masked, given)
    mask[5] = -np.inf
    await check(masked, given)


@pytest.mark.usefixtures("adapter_features")
@pytest.mark.parametrize("sizes", SPECIAL.values(), ids=SPECIAL)
async def test_float16(check, sizes):
    keys = sizes.get("keys", 24)
    given = arrays(**sizes, data_type="float16", m=(sizes["rows"], keys))
    given["m"][0] = LOWEST  # then scores are rounded to that, and all are the same
    given["m"][1, ::2] = -np.inf
    await check(masked, given, 3e-3)


async def test_float16_with_a_softmax_in_float32(check):
    assert await check(in_float32_between, arrays(data_type="float16"), 3e-3) == 1


WAYS = {
    "a row": {"lanes": 4, "each": 1, "threads": 64},
    "more rows than lanes": {"lanes": 2, "each": 8, "threads": 64},
    "as many": {"lanes": 4, "each": 4, "threads": 32},
    "slices": {"lanes": 4, "each": 2, "slices": 4, "threads": 64},
    "slices and parts": {"lanes": 4, "each": 4, "slices": 2, "threads": 32, "splits": 3},
    "parts": {"lanes": 2, "each": 4, "threads": 32, "splits": 2},
    "nothing but slices": {"lanes": 4, "each": 2, "slices": 16, "threads": 64},
    "eight keys at once": {"lanes": 4, "each": 4, "slices": 2, "threads": 64, "at_once": 8},
    "sixteen keys at once, read ahead": {
        "lanes": 2,
        "each": 4,
        "threads": 32,
        "splits": 2,
        "is_ahead": True,
        "at_once": 16,
    },
    "a lane alone": {"lanes": 1, "each": 2, "threads": 32},
    "a lane alone, slices": {"lanes": 1, "each": 4, "slices": 32, "threads": 32},
}
"""Tiles of a workgroup."""


@pytest.fixture
def set_tile(monkeypatch):
    """A function that sets the tile of a workgroup."""
    return lambda **way: monkeypatch.setattr(emit, "choose_tile", lambda shape, _: AttentionTile(shape, **way))


@pytest.mark.parametrize("sizes", [(16, 32), (12, 20)], ids=["whole rows of lanes", "rows that lanes do not divide"])
@pytest.mark.parametrize("shuffles", [True, False], ids=["shuffles", "workgroup memory"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_lanes_share_rows_in_every_way(check, set_tile, way, shuffles, sizes):
    set_tile(**way, shuffles=shuffles and way["lanes"] > 1)
    slices, (size, columns) = way.get("slices", 1), sizes
    rows = way["threads"] // way["lanes"] // slices * way["each"] + (slices < 16)
    given = arrays(rows=rows, keys=75, size=size, columns=columns, m=(rows, 75))
    given["m"][0] = -np.inf
    given["q"][1, -1] = np.nan
    assert await check(masked, given) == (1 if way.get("splits", 1) == 1 else 2)


@pytest.mark.parametrize(
    "given",
    [arrays(rows=1, batch=(2, 8), key_batch=(2, 1), keys=12, columns=256), arrays(rows=70, keys=300, size=48)],
    ids=["a row", "many rows"],
)
async def test_attention_is_one_kernel_without_subgroups(check, change_features, given):
    change_features(subgroups=False)
    assert await check(plain, given) == 1


@pytest.mark.parametrize("growth", [0.125, 8.0, -8.0])
async def test_scores_may_grow_along_a_row(check, growth):
    given = arrays(keys=80, batch=(1,), m=(20, 80))
    numbers = np.arange(80) if growth > 0 else np.arange(80) // 4 % 3 * np.arange(80)
    given["m"] = (abs(growth) * numbers * np.linspace(0, 1, 20)[:, None]).astype("float32")
    assert await check(masked, given) == 1


class Memory:
    """Memory that has a size only."""

    def __init__(self, size):
        self.size = size


@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_memory_grows_with_the_length_and_not_with_its_square(data_type):
    shape = [1, 8, 16384, 64]
    builder = RewriteBuilder()
    descriptor = MLOperandDescriptor(data_type, tuple(shape))
    inputs = {name: Input(descriptor, name) for name in "qkv"}
    drawn = plain(builder, *(builder.gelu(builder.operand(value)) for value in inputs.values()))
    graph = Graph.reaching({"y": builder.value(drawn)})
    for features in (Features(), Features(subgroups=True, least_subgroup=32, max_workgroup_storage=49152)):
        kernels = lowered(KernelGroups.from_graph(graph, features), LoweringContext())[0].nodes
        arenas = {item.buffer for item in place_blocks(kernels, 2**31, lambda size, _: Memory(size)).values()}
        assert sum(arena.size for arena in arenas) <= 3 * descriptor.byte_length


@pytest.mark.sampled(1)
@pytest.mark.parametrize("features", [{"subgroups": True, "least_subgroup": 32}, {}], ids=["subgroups", "none"])
@pytest.mark.parametrize("storage", [16384, 32768, 49152])
def test_a_tile_fits_the_memory_of_a_workgroup(storage, features):
    adapter = Features(max_workgroup_storage=storage, **features)
    for size in (16, 64, 80, 128, 256, 512):
        for rows in (1, 8, 16, 512):
            found = emit.find_tile(tile.AttentionShape(1, rows, 2048, size, size), adapter)
            assert found is not None
            assert found.storage <= storage
