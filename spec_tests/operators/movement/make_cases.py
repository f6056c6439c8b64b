"""Make the cases of the operators that move elements.

torch moves the bits, as integers of the same width, and numpy pads; neither computes anything.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from spec_tests.operators.oracle import (
    ALL_TYPES,
    BROADCASTS,
    FLOAT_TYPES,
    INTEGER_TYPES,
    SHAPES,
    Cases,
    Constant,
    case,
    extremes,
    generator,
    spread,
    unique,
    write,
)

ORACLE = f"torch {torch.__version__} on the bits as integers"
ORACLE_OF_PAD = f"numpy {np.__version__}'s pad; the value rounded by Python"


def mixed(data_type: str, shape: Sequence[int], *key: object) -> np.ndarray:
    """Random values, with extreme ones at about half of the places."""
    rng = generator("movement", data_type, shape, *key)
    chosen = np.asarray(rng.choice(extremes(data_type), shape))
    return np.asarray(np.where(rng.integers(0, 2, shape), chosen, spread(rng, data_type, shape, -99, 99)))


def bits(array: np.ndarray) -> torch.Tensor:
    """The bits of an array as signed integers."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    return torch.from_numpy(array.view(f"i{array.itemsize}").copy())


def back(tensor: torch.Tensor, like: np.ndarray) -> np.ndarray:
    """The array that has these bits, of the data type that ``like`` has."""
    array = np.ascontiguousarray(tensor.numpy()).reshape(tuple(tensor.shape))
    return array.view(like.dtype)


def moved(function: Callable[..., torch.Tensor], *arrays: np.ndarray) -> np.ndarray:
    """Return the result of a function of torch for arrays of one data type."""
    return back(function(*[bits(array) for array in arrays]), arrays[0])


def moved_case(data_type: str, shape: Sequence[int], said: str, function: Callable, **options: Any) -> dict[str, Any]:
    """Return one case of random values; options that are None are left out."""
    array = mixed(data_type, tuple(shape))
    given = {name: value for name, value in options.items() if value is not None}
    return case(f"{data_type}, {list(shape)}{said}", {"input": array}, moved(function, array), options=given)


def in_turn(types: Sequence[str] = ALL_TYPES) -> Iterator[str]:
    """One data type after the other, without end."""
    return itertools.cycle(types)


def everywhere(shapes: Sequence[tuple[int, ...]] = SHAPES) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every data type with two of the shapes, so that each shape comes up with several."""
    for index, data_type in enumerate(ALL_TYPES):
        for shift in (0, 3):
            yield data_type, shapes[(index + shift) % len(shapes)]


def concat_cases() -> Cases:
    cases = []

    def add(data_type: str, shapes: Sequence[tuple[int, ...]], axis: int) -> None:
        arrays = [mixed(data_type, shape, index) for index, shape in enumerate(shapes)]
        expected = moved(lambda *tensors: torch.cat(tensors, axis), *arrays)
        name = f"{data_type}, {' and '.join(str(list(shape)) for shape in shapes)} along axis {axis}"
        cases.append(case(name, {"inputs": arrays}, expected, options={"axis": axis}))

    def resized(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
        return (*shape[:axis], size, *shape[axis + 1 :])

    types = in_turn()
    for shape in SHAPES[1:]:
        for axis in range(len(shape)):
            add(next(types), [shape, resized(shape, axis, 1)], axis)
            add(next(types), [resized(shape, axis, size) for size in (1, 3, 2)], axis)
    for data_type in ALL_TYPES:
        add(data_type, [(2, 3), (2, 2)], 1)
        add(data_type, [(1,), (30,), (2,)], 0)
    add("float32", [(2, 3)], 1)
    add("int8", [(1,)] * 20, 0)
    arrays = [mixed("float32", (2, 2), "constants", index) for index in range(3)]
    expected = moved(lambda *tensors: torch.cat(tensors, 0), *arrays)
    inputs = {"inputs": [arrays[0], Constant(arrays[1]), arrays[2]]}
    cases.append(case("a constant among inputs", inputs, expected, options={"axis": 0}))
    return cases


def expand_cases() -> Cases:
    cases = []

    def add(data_type: str, shape: tuple[int, ...], new_shape: tuple[int, ...]) -> None:
        said = f" to {list(new_shape)}"
        cases.append(moved_case(data_type, shape, said, lambda x: x.expand(new_shape), new_shape=new_shape))

    targets = [(), (5,), (4, 3), (2, 3, 3), (2, 3, 2, 2), (1, 2, 2, 3, 3)]
    for data_type in ALL_TYPES:
        for shape, target in zip([(), (1,), (1, 3), *SHAPES[3:]], targets, strict=True):
            add(data_type, shape, target)
        add(data_type, (len(extremes(data_type)), 1), (len(extremes(data_type)), 2))
    types = in_turn()
    for pair in BROADCASTS:
        wide = np.broadcast_shapes(*pair)
        for shape in dict.fromkeys(pair):
            add(next(types), shape, wide)
    for shape in SHAPES[1:]:
        add(next(types), shape, (2, *shape))
        add(next(types), (1,) * len(shape), shape)
    add("float32", (), (2, 1, 2, 1, 2, 1, 2, 1))
    return cases


def cast(value: float, data_type: str) -> Any:
    """A number in a data type: integers round half to even and saturate, NaN is 0 there."""
    if data_type in FLOAT_TYPES:
        with np.errstate(all="ignore"):
            return np.array(value, np.float64).astype(data_type)
    limits = np.iinfo(data_type)
    if isinstance(value, float):
        value = 0 if math.isnan(value) else limits.max if value == math.inf else max(value, limits.min)
    return np.array(round(min(max(value, int(limits.min)), int(limits.max))), data_type)


MODES = {"constant": "constant", "edge": "edge", "reflection": "reflect"}
FLOATS = [1, -1, 2.5, 0.1, 1e10, -1e10, 1e300, math.nan, math.inf, -math.inf, -0.0, 65519, 65520, 1e-300, 2**70]
INTEGERS = [-1, 2.5, 3.5, -0.5, 127.5, 300, -300, 1e300, math.nan, math.inf, -math.inf]
BIG_INTEGERS = [2**31 - 1, 2**53 + 1, 2**63 - 1, 2**64 - 1, 2**70, -(2**63), -(2**53) - 1]
VALUES = dict.fromkeys(FLOAT_TYPES, FLOATS) | dict.fromkeys(INTEGER_TYPES, INTEGERS)
VALUES |= dict.fromkeys(("int64", "uint64"), INTEGERS + BIG_INTEGERS)


def pad_case(name: str, array: np.ndarray, begin: Sequence[int], end: Sequence[int], **options: Any) -> dict[str, Any]:
    """One case, by numpy's pad."""
    mode = options.get("mode", "constant")
    more = {"constant_values": cast(options.get("value", 0), array.dtype.name)} if mode == "constant" else {}
    expected = np.pad(array, list(zip(begin, end, strict=True)), MODES[mode], **more) if array.ndim else array
    return case(
        name, {"input": array}, expected, options={"beginning_padding": begin, "ending_padding": end, **options}
    )


def pad_cases() -> Cases:
    cases = []
    types = in_turn()
    shapes = [*SHAPES, (4,), (3, 4), (2, 3, 2), (2, 2, 2, 3), (2, 1, 2, 1, 3)]
    for mode, shape in itertools.product(MODES, shapes):
        rng = generator("pad", mode, shape)
        most = [size if mode == "reflection" else 3 for size in shape]
        before, after = rng.integers(0, most).tolist(), rng.integers(0, most).tolist()
        none = [0] * len(shape)
        choices = [(before, after), (none, none), (before, none), (none, after)]
        for begin, end in choices[: 4 if len(shape) in (1, 2) else 2]:
            name = f"{mode}, {list(shape)} by {begin} and {end}"
            cases.append(pad_case(name, mixed(next(types), shape, mode), begin, end, mode=mode))
    for data_type in ALL_TYPES:
        for mode in MODES:
            name = f"{data_type}, {mode}"
            cases.append(pad_case(name, mixed(data_type, (2, 3), mode), [1, 2], [1, 0], mode=mode))
        cases.append(pad_case(f"{data_type}, all defaults", mixed(data_type, (3,)), [1], [2]))
        array = mixed(data_type, (1,))
        cases += [pad_case(f"{data_type}, value {value}", array, [1], [0], value=value) for value in VALUES[data_type]]
    for mode in ("edge", "reflection"):
        name = f"{mode}, as much as can be"
        cases.append(pad_case(name, mixed("float32", (4, 3), mode), [3, 2], [3, 2], mode=mode))
        name = f"{mode}, the value does not matter"
        cases.append(pad_case(name, mixed("float32", (3,), mode), [2], [1], mode=mode, value=7))
    cases.append(pad_case("edge, more than the axis has", mixed("int32", (2,)), [5], [7], mode="edge"))
    return cases


def reshape_cases() -> Cases:
    cases = []
    shapes = [(), (1,), (1, 1), (1, 1, 1, 1, 1), (6,), (2, 3), (3, 2, 1), (1, 2, 1, 3), (2, 1, 1, 3, 1)]
    types = in_turn()

    def add(data_type: str, shape: tuple[int, ...], new_shape: tuple[int, ...]) -> None:
        said = f" to {list(new_shape)}"
        cases.append(moved_case(data_type, shape, said, lambda x: x.reshape(new_shape), new_shape=new_shape))

    for shape in shapes:
        for new_shape in shapes:
            if math.prod(shape) == math.prod(new_shape):
                add(next(types), shape, new_shape)
    for data_type in ALL_TYPES:
        add(data_type, (2, 3, 4), (4, 6))
        add(data_type, (len(extremes(data_type)),), (1, len(extremes(data_type)), 1))
    add("float32", (24,), (1, 2, 1, 3, 1, 2, 1, 2))
    return cases


def reverse_cases() -> Cases:
    cases = []

    def add(data_type: str, shape: tuple[int, ...], axes: Sequence[int] | None) -> None:
        flipped = list(range(len(shape)) if axes is None else axes)
        said = ", all axes" if axes is None else f", axes {list(axes)}"
        cases.append(moved_case(data_type, shape, said, lambda x: torch.flip(x, flipped), axes=axes))

    types = in_turn()
    for shape in SHAPES:
        add(next(types), shape, None)
        for count in range(len(shape) + 1):
            for axes in list(itertools.combinations(range(len(shape)), count))[:5]:
                add(next(types), shape, axes)
    for data_type, shape in everywhere():
        add(data_type, (*shape, 3), None)
    for data_type in ALL_TYPES:
        add(data_type, extremes(data_type).shape, [0])
    add("float32", (2, 3, 2), [2, 0])
    add("int64", (2, 2, 3), [2, 1, 0])
    return cases


def slice_cases() -> Cases:
    cases = []
    types = in_turn()

    def add(
        data_type: str,
        shape: tuple[int, ...],
        starts: Sequence[int],
        sizes: Sequence[int],
        strides: Sequence[int] | None = None,
    ) -> None:
        steps = strides or [1] * len(shape)
        window = tuple(slice(a, a + n, s) for a, n, s in zip(starts, sizes, steps, strict=True))
        said = f" from {list(starts)}, {list(sizes)}" + ("" if strides is None else f" by steps of {list(strides)}")
        options = {"starts": starts, "sizes": sizes, "strides": strides}
        cases.append(moved_case(data_type, shape, said, lambda x: x[window], **options))

    for shape in [(), (7,), (3, 5), (2, 3, 4), (2, 1, 3, 5), (2, 2, 1, 3, 2), (1, 2, 2, 1, 2, 3)]:
        add(next(types), shape, [0] * len(shape), shape)
        if not shape:
            add(next(types), shape, [], [], [])
            continue
        add(next(types), shape, [size - 1 for size in shape], [1] * len(shape))
        for index in range(5):
            rng = generator("slice", shape, index)
            starts = [int(rng.integers(0, size)) for size in shape]
            sizes = [int(rng.integers(1, size - start + 1)) for start, size in zip(starts, shape, strict=True)]
            strides = [int(rng.integers(1, 4)) for _ in shape]
            add(next(types), shape, starts, sizes, strides if index % 2 else None)
    for data_type in ALL_TYPES:
        add(data_type, extremes(data_type).shape, [1], [len(extremes(data_type)) - 1])
        add(data_type, (4, 5), [1, 0], [3, 5], [2, 2])
    for size, stride in [(1, 1), (1, 9), (5, 2), (6, 2), (6, 3), (6, 5), (6, 6), (6, 2**31 - 1), (5, 2**32 - 1)]:
        add("float32", (7,), [1], [size], [stride])
    return cases


def split_cases() -> Cases:
    cases = []
    types = in_turn()

    def add(data_type: str, shape: tuple[int, ...], splits: int | list[int], axis: int | None = None) -> None:
        array = mixed(data_type, shape)
        size = shape[axis or 0]
        pieces = [size // splits] * splits if isinstance(splits, int) else splits
        expected = [back(piece, array) for piece in torch.split(bits(array), pieces, axis or 0)]
        options = {"splits": splits} | ({} if axis is None else {"axis": axis})
        said = "" if axis is None else f" along axis {axis}"
        cases.append(
            case(f"{data_type}, {list(shape)} into {splits}{said}", {"input": array}, expected, options=options)
        )

    for shape in [(6,), (4, 3), (2, 1, 4), (2, 3, 1, 4), (2, 1, 2, 3, 2)]:
        for axis, size in enumerate(shape):
            add(next(types), shape, size, axis)
            add(next(types), shape, 1, axis)
            add(next(types), shape, [size], axis)
            if size > 2:
                add(next(types), shape, [1, size - 1], axis)
    for data_type in ALL_TYPES:
        add(data_type, (6, 2), 3)
        add(data_type, (6,), [1, 3, 2])
        add(data_type, (2, 4), 2, 1)
    return cases


def tile_cases() -> Cases:
    cases = []
    types = in_turn()

    def add(data_type: str, shape: tuple[int, ...], repetitions: Sequence[int]) -> None:
        def repeat(x: torch.Tensor) -> torch.Tensor:
            return x.repeat(*repetitions) if repetitions else x

        cases.append(moved_case(data_type, shape, f" by {list(repetitions)}", repeat, repetitions=repetitions))

    for shape in [*SHAPES, (1,), (1, 1), (2, 2, 2)]:
        add(next(types), shape, [1] * len(shape))
        for axis in range(len(shape)):
            add(next(types), shape, [3 if axis == other else 1 for other in range(len(shape))])
        if len(shape) > 1:
            add(next(types), shape, [2, *[1] * (len(shape) - 2), 2])
    for data_type in ALL_TYPES:
        add(data_type, (2, 2), [2, 3])
        add(data_type, extremes(data_type).shape, [2])
    add("float32", (1, 2, 1, 2), [2, 3, 2, 2])
    add("float16", (1,), [40])
    return cases


def transpose_cases() -> Cases:
    cases = []
    types = in_turn()

    def add(data_type: str, shape: tuple[int, ...], permutation: Sequence[int] | None) -> None:
        order = tuple(reversed(range(len(shape)))) if permutation is None else permutation
        said = ", reversed" if permutation is None else f", {list(permutation)}"
        cases.append(moved_case(data_type, shape, said, lambda x: x.permute(order), permutation=permutation))

    for shape in [(), (5,), (2, 3), (2, 3, 4), (2, 3, 1, 2), (1, 2, 2, 3, 2), (2, 1, 2, 1, 2, 3)]:
        add(next(types), shape, None)
        permutations = list(itertools.permutations(range(len(shape))))
        for permutation in permutations if len(permutations) <= 24 else permutations[:: len(permutations) // 9]:
            add(next(types), shape, permutation)
    for data_type in ALL_TYPES:
        add(data_type, (3, 4), None)
        add(data_type, (2, 3, 3), (0, 2, 1))
        add(data_type, (1, len(extremes(data_type))), (1, 0))
    return cases


def triangular_cases() -> Cases:
    cases = []
    types = in_turn()

    def add(data_type: str, shape: tuple[int, ...], **options: Any) -> None:
        function = torch.triu if options.get("upper", True) else torch.tril
        far = max(-9, min(9, options.get("diagonal", 0)))
        cases.append(moved_case(data_type, shape, f", {options}", lambda x: function(x, far), **options))

    matrices = [(3, 3), (2, 4), (4, 2), (1, 3), (3, 1), (1, 1)]
    for shape, upper, diagonal in itertools.product(matrices, (True, False), (-2, -1, 0, 1, 2)):
        add(next(types), shape, upper=upper, diagonal=diagonal)
    batches = [(2, 3, 3), (2, 1, 2, 3), (2, 1, 2, 3, 2)]
    for shape, upper, diagonal in itertools.product(batches, (True, False), (-1, 0, 1)):
        add(next(types), shape, upper=upper, diagonal=diagonal)
    for data_type in ALL_TYPES:
        add(data_type, (3, 3))
        add(data_type, (2, 3), upper=False)
        add(data_type, (3, 2), diagonal=-1)
    for upper, diagonal in itertools.product((True, False), (-(2**31), -4, 4, 2**31 - 1)):
        add("float32", (3, 4), upper=upper, diagonal=diagonal)
    return cases


def main() -> None:
    """Write the files of the category."""
    operators = {
        "concat": concat_cases,
        "expand": expand_cases,
        "reshape": reshape_cases,
        "reverse": reverse_cases,
        "slice": slice_cases,
        "split": split_cases,
        "tile": tile_cases,
        "transpose": transpose_cases,
        "triangular": triangular_cases,
    }
    for operator, cases in operators.items():
        write(__file__, operator, ORACLE, unique(cases()))
    write(__file__, "pad", ORACLE_OF_PAD, unique(pad_cases()))


if __name__ == "__main__":
    main()
