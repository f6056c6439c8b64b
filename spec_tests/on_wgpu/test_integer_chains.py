"""Chains of three integer operators, and kernels of each kind that read them, give to the bit what numpy gives.

Drivers join integer instructions, and some do it wrongly: NVIDIA's 580 loses negations between minima and maxima, and
how 64-bit negations wrap. Values come from the whole range of the data type. Hardware runs every chain; software, which
compiles each kernel for long, those of one pair of operators for each first one.
"""

import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

ROWS, COLUMNS = 24, 100

OPERATORS = {
    "neg": lambda b, x, _: b.neg(x),
    "abs": lambda b, x, _: b.abs(x),
    "sign": lambda b, x, _: b.sign(x),
    "relu": lambda b, x, _: b.relu(x),
    "clamp": lambda b, x, _: b.clamp(x, min_value=3, max_value=100),
    "max": lambda b, x, y: b.max(x, y),
    "max, second": lambda b, x, y: b.max(y, x),
    "min": lambda b, x, y: b.min(x, y),
    "min, second": lambda b, x, y: b.min(y, x),
    "add": lambda b, x, y: b.add(x, y),
    "sub": lambda b, x, y: b.sub(x, y),
    "sub, second": lambda b, x, y: b.sub(y, x),
    "mul": lambda b, x, y: b.mul(x, y),
    "div": lambda b, x, y: b.div(x, y),
    "from 0": lambda b, x, _: b.sub(number(b, x, 0), x),
    "times -1": lambda b, x, _: b.mul(x, number(b, x, -1)),
    "by -1": lambda b, x, _: b.div(x, number(b, x, -1)),
    "prelu": lambda b, x, y: b.prelu(x, y),
}

READERS = {
    "reduce_max": lambda b, x: b.reduce_max(x, axes=[1]),
    "reduce_min": lambda b, x: b.reduce_min(x, axes=[1]),
    "reduce_max of columns": lambda b, x: b.reduce_max(x, axes=[0]),
    "reduce_min of all": lambda b, x: b.reduce_min(x),
    "reduce_sum": lambda b, x: b.reduce_sum(x, axes=[1]),
    "arg_max": lambda b, x: b.arg_max(x, axis=1),
    "arg_min": lambda b, x: b.arg_min(x, axis=0),
    "cumulative_sum": lambda b, x: b.cumulative_sum(x, axis=1),
    "max_pool2d": lambda b, x: b.max_pool2d(b.reshape(x, [1, 1, ROWS, COLUMNS]), window_dimensions=[3, 3]),
    "transpose": lambda b, x: b.transpose(x),
    "concat": lambda b, x: b.concat([x, b.reverse(x)], axis=0),
    "gather at it": lambda b, x: b.gather(b.constant(np.arange(7, dtype=np.float32)), x),
    "cast": lambda b, x: b.cast(x, "float32"),
    "where it is": lambda b, x: b.where(b.greater(x, number(b, x, 3)), x, b.reverse(x)),
}

SIGNED_ONLY = {"neg", "abs", "sign", "relu", "prelu"}
WIDE_ONLY = {"reduce_sum", "cumulative_sum"}
INDICES_ONLY = {"gather at it"}
DATA_TYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64"]


def operators_of(data_type):
    return [name for name in OPERATORS if name not in SIGNED_ONLY or data_type.startswith("int")]


def readers_of(data_type):
    missing = (WIDE_ONLY if data_type.endswith("int8") else set()) | (
        set() if data_type in ("int32", "uint32", "int64") else INDICES_ONLY
    )
    return [name for name in READERS if name not in missing]


CASES = [(data_type, first) for data_type in DATA_TYPES for first in operators_of(data_type)]


def number(builder, like, value):
    """A constant scalar; of unsigned types -1 is the highest number."""
    return builder.constant(np.array(value).astype(like.data_type))


def whole_range(data_type, rng):
    limits = np.iinfo(data_type)
    values = rng.integers(limits.min, limits.max, (ROWS, COLUMNS), data_type, endpoint=True)
    edges = np.array([limits.min, limits.min + 1, limits.max, 0, 1, limits.max // 2], data_type)
    values.flat[rng.choice(values.size, 60, replace=False)] = np.tile(edges, 10)
    return values


def chains_of(names, data_type, turn):
    """What follows two operators: every third one, by itself and read by kernels of some kind; read by every kind.

    No two outputs share an operator, so that each has a kernel of its own; what two read would be stored between.
    """
    readers = readers_of(data_type)
    thirds = operators_of(data_type)
    return [
        [(*names, third) for third in thirds],
        [(*names, third, readers[(turn + place) % len(readers)]) for place, third in enumerate(thirds)],
        [(*names, reader) for reader in readers],
    ]


async def values_of(context, arrays, chains):
    """What each chain computes; the n-th operator takes the n-th of the other arrays."""
    builder = MLGraphBuilder(context)
    x, *others = (builder.input(name, data_type=array.dtype.name, shape=array.shape) for name, array in arrays.items())
    outputs = {}
    for chain in chains:
        value = x
        for name, other in zip(chain, [*others, None], strict=False):
            value = READERS[name](builder, value) if name in READERS else OPERATORS[name](builder, value, other)
        outputs["; ".join(chain)] = value
    return await compute(context, builder, arrays, outputs)


@pytest.mark.sampled(47, full=3)
@pytest.mark.parametrize(("data_type", "first"), CASES)
async def test_a_chain_of_integer_operators_is_right_to_the_bit(ml, data_type, first, rng):
    numpy, gpu = [await ml.create_context(backend=backend) for backend in ("numpy", "wgpu")]
    arrays = {name: whole_range(data_type, rng) for name in "abcd"}
    operators = operators_of(data_type)
    begin = CASES.index((data_type, first))
    is_software = "(software)" in gpu.backend.adapter
    wrong = []
    for step in range(1 if is_software else len(operators)):
        names = (first, operators[(begin + step) % len(operators)])
        for chains in chains_of(names, data_type, begin + step)[: 2 if is_software else None]:
            expected, got = [await values_of(context, arrays, chains) for context in (numpy, gpu)]
            wrong += [
                f"{name}: {np.count_nonzero(got[name] != values)} of {values.size}"
                for name, values in expected.items()
                if not np.array_equal(got[name], values)
            ]
    assert not wrong, "\n".join(wrong)
