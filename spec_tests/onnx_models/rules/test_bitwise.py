import numpy as np

from spec_tests.onnx_models.single_node import check, each, node

SIGNED, UNSIGNED = ("int8", "int32", "int64"), ("uint8", "uint32", "uint64")
rng = np.random.default_rng(8)


def integers(data_type):
    """Some of the whole range, with its ends."""
    limits = np.iinfo(data_type)
    some = rng.integers(limits.min, limits.max, 4, dtype=data_type, endpoint=True)
    return np.concatenate([some, np.array([limits.min, limits.max, 0, 1], data_type)])


@each(
    *(
        node(operator, 18, integers(data_type).reshape(2, 4), integers(data_type)[3:7])
        for operator in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
        for data_type in (*SIGNED, *UNSIGNED)
    ),
    *(node("BitwiseNot", 18, integers(data_type)) for data_type in (*SIGNED, *UNSIGNED)),
)
async def test_bits_of_integers(context, case):
    await check(context, case)


@each(
    *(
        node(
            "BitShift",
            version,
            integers(data_type),
            np.array([0, 1, 5, 7, 3, 4, 2, 6], data_type),
            direction=direction,
            oracle="reference",
        )
        for version in (11, 28)
        for data_type in UNSIGNED
        for direction in ("LEFT", "RIGHT")
    ),
    *(
        node("BitShift", 11, np.uint32([1, 2**31, 5]), np.uint32([31, 32, 99]), direction=direction, oracle=[moved])
        for direction, moved in (("LEFT", np.uint32([2**31, 0, 0])), ("RIGHT", np.uint32([0, 0, 0])))
    ),
)
async def test_shifted_bits(context, case):
    await check(context, case)
