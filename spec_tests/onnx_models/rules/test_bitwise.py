import numpy as np

from spec_tests.onnx_models.single_node import Random, compared, node

SIGNED, UNSIGNED = ("int8", "int32", "int64"), ("uint8", "uint32", "uint64")
random = Random(8)


def integers(data_type):
    """Return four integers of the whole range, and its ends."""
    limits = np.iinfo(data_type)
    return np.concatenate([random.integers(data_type, 4), np.array([limits.min, limits.max, 0, 1], data_type)])


test_bits_of_integers = compared(
    *(
        node(operator, 18, integers(data_type).reshape(2, 4), integers(data_type)[3:7])
        for operator in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
        for data_type in (*SIGNED, *UNSIGNED)
    ),
    *(node("BitwiseNot", 18, integers(data_type)) for data_type in (*SIGNED, *UNSIGNED)),
)


def shifted(versions, data_type, direction, places=(0, 1, 5, 7, 3, 4, 2, 6), *, x=None, oracle="reference"):
    x = integers(data_type) if x is None else np.array(x, data_type)
    return node("BitShift", versions, x, np.array(places, data_type), direction=direction, oracle=oracle)


test_shifted_bits = compared(
    *(shifted([11, 28], data_type, direction) for data_type in UNSIGNED for direction in ("LEFT", "RIGHT")),
    *(
        shifted(11, "uint32", direction, [31, 32, 99], x=[1, 2**31, 5], oracle=[np.uint32(moved)])
        for direction, moved in (("LEFT", [2**31, 0, 0]), ("RIGHT", [0, 0, 0]))
    ),
)
