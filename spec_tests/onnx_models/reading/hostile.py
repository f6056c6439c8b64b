"""Nodes with values of attributes and shapes of inputs that no exporter writes, in a fixed order."""

from functools import partial

import attrs
import numpy as np

from spec_tests.onnx_models.conversion.influence import attributes_of, conversion_of, declared

LEAST, MOST = -(2**63), 2**63 - 1
INTEGERS = (0, -1, 1, LEAST, MOST, 2**31, -(2**31), 2**32, 7, 255, 65536)
LISTS = (
    *([], [0], [-1], [MOST], [LEAST], [0, 0], [-1, -1], [2**31] * 2, [2**31 - 1] * 2, [0] * 3, [-3] * 3, [2**40] * 3),
    *([0] * 4, [-1] * 4, [2**62] * 4, [0] * 6, [-1] * 6, [2**33] * 6, [1] * 7),
)
VALUES = {
    "INT": INTEGERS,
    "FLOAT": (0.0, -1.0, np.inf, -np.inf, np.nan, 1e38, -1e38, 1e-45),
    "INTS": LISTS,
    "FLOATS": ([], [0.0], [np.nan] * 2, [np.inf] * 3, [-1.0] * 4, [1e38] * 8),
    "STRING": ("", "x", "0", "NOTSET", "...", "->", "i,i,i->ii", "ij", "a" * 2000),
    "STRINGS": ([], [""], ["x", "y"], ["Relu"] * 7),
}
"""By the type that ONNX gives an attribute."""

SHAPES = ((), (1,), (2,), (1, 1), (3, 1, 2), (1, 2, 3, 4), (1,) * 5, (2, 1, 1, 1, 1, 2))
DATA_TYPES = ("float32", "float16", "int32", "int64", "uint8", "int8", "bool", "uint64", "float64", "int16")


def hostile_values(kind, given):
    """Return values for an attribute of a type, some of them as long as what a case gives."""
    if kind != "INTS" or not given:
        return VALUES.get(kind, ())
    alike = [[value] * len(given) for value in (0, -1, MOST, LEAST, 2**31, 65536)]
    return [*LISTS, *alike, [*given, 1], list(given[:-1])]


def hostile_arrays(array):
    """Yield an input in other shapes, with extreme elements, and in other data types."""
    for shape in (*SHAPES, (0, *array.shape[1:])):
        if shape != array.shape:
            yield np.resize(array, shape).astype(array.dtype)
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        for value in dict.fromkeys((0, -1, limits.min, limits.max, 2**31, 7)):
            if limits.min <= value <= limits.max:
                yield np.full_like(array, value)
    elif array.dtype.kind == "f":
        with np.errstate(over="ignore"):  # 1e38 is infinite in float16
            yield from [np.full_like(array, value) for value in (0, -1, np.nan, np.inf, 1e38)]
    for data_type in DATA_TYPES:
        if array.dtype != data_type:
            with np.errstate(all="ignore"):
                yield np.nan_to_num(array).astype(data_type)


def hostile_cases(cases):
    """Yield functions that return changed cases: of each rule and set of what is given, as it is, all known, none.

    Attributes take hostile values and are left out, inputs take hostile arrays and are left out, one at a time.
    """
    for case in _unlike(cases):
        given = tuple(index for index, item in enumerate(case.inputs) if item is not None)
        for known in dict.fromkeys((case.known, given, ())):
            yield from _changed(attrs.evolve(case, known=known), given)


def _unlike(cases):
    """Return the first case of each rule and set of what is given."""
    seen = {}
    for case in cases:
        absent = tuple(item is None for item in case.inputs)
        way = conversion_of(case.operator, case.version)
        seen.setdefault((case.operator, way, absent, case.known, tuple(sorted(case.attributes))), case)
    return seen.values()


def _changed(case, given):
    kinds = declared(case.operator, case.version).attributes
    for name in attributes_of(case.operator, case.version):
        for value in hostile_values(kinds.get(name), case.attributes.get(name)):
            yield partial(attrs.evolve, case, attributes={**case.attributes, name: value})
        if name in case.attributes:
            left = {key: item for key, item in case.attributes.items() if key != name}
            yield partial(attrs.evolve, case, attributes=left)
    for index in given:
        for array in (*hostile_arrays(case.inputs[index]), None):
            inputs = tuple(array if place == index else item for place, item in enumerate(case.inputs))
            known = tuple(place for place in case.known if inputs[place] is not None)
            yield partial(attrs.evolve, case, inputs=inputs, known=known)
