"""A model's inputs as it declares them, and the sizes of their open dimensions, found out from all that is known."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import attrs
import numpy as np
from numpy.lib.npyio import NpzFile

from webnn_py.command.failures import BadInputError
from webnn_py.command.loading import opened
from webnn_py.core.descriptors import DATA_TYPES
from webnn_py.core.message_text import shown

if TYPE_CHECKING:
    from webnn_py.onnx_models import OnnxModel

Array = np.ndarray[Any, Any]

MOST_SHOWN: Final = 3
"""The most inputs that are named in a line."""

UNNAMED: Final = "?"
"""A dimension that is open and has no name."""


@attrs.frozen
class DeclaredInput:
    """An input of a model.

    Attributes:
        name: its name.
        type_name: the element type, by numpy's name; ``bool`` for booleans, which WebNN has as ``uint8``.
        shape: the dimensions; a string is symbolic, "?" one without a name. None when not even the rank is known.
    """

    name: str
    type_name: str
    shape: tuple[int | str, ...] | None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Numpy's data type.

        Raises:
            BadInputError: neither numpy nor WebNN has it.
        """
        if self.type_name == "string":
            raise BadInputError(f"input {self.name!r} is string; WebNN has no tensors of strings, so this cannot run")
        if self.type_name != "bool" and self.type_name not in {*DATA_TYPES, "float64", "int16", "uint16"}:
            raise BadInputError(f"input {self.name!r} is {self.type_name}, which cannot be given here")
        return np.dtype(self.type_name)

    def __str__(self) -> str:
        return worded_type(self.type_name, self.shape)


def worded_type(type_name: str, shape: Sequence[int | str] | None) -> str:
    """Return a type and a shape as the command writes them: ``float32 [1, 3, height, width]``."""
    return f"{type_name} {'of any shape' if shape is None else worded_shape(shape)}"


def worded_shape(shape: Sequence[int | str]) -> str:
    """Return a shape as the command writes it: ``[1, 3, height, width]``."""
    return f"[{', '.join(map(str, shape))}]"


def declared_inputs(model: OnnxModel, overridden: Iterable[str] = ()) -> dict[str, DeclaredInput]:
    """Return the inputs of a model by name, and with them those of these names that have a value of their own."""
    from webnn_py.onnx_models.reading.element_types import type_name  # noqa: PLC0415 - an extra

    types = {item.name: item.type.tensor_type.elem_type for item in model._proto.graph.input}
    return {
        name: DeclaredInput(
            name,
            # Of what is no tensor, such as a sequence, the model's own name stays.
            info.data_type if info.shape is None and not types[name] else type_name(types[name]),
            info.shape,
        )
        for name, info in {**model.inputs, **{name: model.overridable[name] for name in overridden}}.items()
    }


def asked_outputs(model: OnnxModel, names: Sequence[str]) -> list[str]:
    """Return the outputs that ``--output`` names; all of them where it is not given.

    Raises:
        BadInputError: the model has no such output.
    """
    for name in names:
        if name not in model.outputs:
            raise BadInputError(f"--output names {shown(name)}; the model's outputs are {', '.join(model.outputs)}")
    return list(dict.fromkeys(names)) or list(model.outputs)


def named(option: str, texts: Iterable[str], allowed: Iterable[str], what: str) -> dict[str, str]:
    """Return options of the form ``NAME=TEXT`` by name.

    Raises:
        BadInputError: one has another form, or a name that is not allowed or comes twice.
    """
    found: dict[str, str] = {}
    allowed = list(allowed)
    for text in texts:
        # A name may have a "=" itself.
        name = next((name for name in allowed if text.startswith(f"{name}=")), text.partition("=")[0])
        if name not in allowed:
            raise BadInputError(f"{option} names {shown(name)}; {what} {', '.join(allowed) or 'none'}")
        if text == name:
            raise BadInputError(f"{option} {shown(text)} must have the form NAME=…")
        if name in found:
            raise BadInputError(f"{option} has {shown(name)} twice")
        found[name] = text[len(name) + 1 :]
    return found


def _frozen(declared: DeclaredInput, text: str) -> Array:
    if text.endswith(".npy"):
        return checked(declared, loaded(Path(text), declared.name), f"--value {declared.name}={text}")
    try:
        numbers = [parsed_number(item) for item in text.split(",")]
    except ValueError:
        raise BadInputError(
            f"--value {declared.name}={text}: it must be numbers with commas between, or a .npy file"
        ) from None
    rank = 1 if declared.shape is None else len(declared.shape)
    sizes = [size for size in declared.shape or () if isinstance(size, int)]
    if len(numbers) == 1 and declared.shape is not None and len(sizes) == rank:
        return checked(declared, np.full(sizes, numbers[0]), f"--value {declared.name}={text}")
    if rank > 1 and len(numbers) > 1:
        raise BadInputError(f"--value {declared.name}={text}: {declared.name!r} is {declared}; give it as a .npy file")
    shape = (1,) * (rank - 1) + (len(numbers),)
    return checked(declared, np.array(numbers).reshape(shape), f"--value {declared.name}={text}")


def parsed_number(text: str) -> float:
    """Return a number; a whole one exactly, however large.

    Raises:
        ValueError: it is none.
    """
    words = {"true": 1, "false": 0}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return int(text)
    except ValueError:
        return float(text)


def loaded(path: Path, name: str) -> Array:
    """Return the array of a .npy file, or that of this name of an .npz file.

    Raises:
        BadInputError: it cannot be read, or has no such array.
    """
    # Given a path, numpy leaves a file that it cannot read open.
    with opened(path, "an array and may be cut, or another kind of file") as file:
        found = np.load(file, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        if name not in found.files:
            raise BadInputError(f"{path} has no array {shown(name)}; it has {', '.join(found.files) or 'none'}")
        array: Array = found[name]
        return array


def array_names(path: Path) -> list[str]:
    """Return the names of the arrays of an .npz file.

    Raises:
        BadInputError: it cannot be read.
    """
    with opened(path, "arrays and may be cut, or another kind of file") as file:
        return NpzFile(file, allow_pickle=False).files


def checked(declared: DeclaredInput, value: Array, what: str) -> Array:
    """Return an array of the input's type.

    Raises:
        BadInputError: its numbers are not of that type.
    """
    if value.dtype == declared.dtype:
        return np.ascontiguousarray(value).reshape(value.shape)
    if value.dtype.kind not in "biuf":
        raise BadInputError(f"{what} is {value.dtype}; input {declared.name!r} is {declared}")
    reason = f"{what} is {value.dtype} and has numbers that are not {declared.type_name}, as input {declared.name!r} is"
    return _converted(value, declared.dtype, reason)


def as_webnn(name: str, array: Array, data_type: str) -> Array:
    """Return an input's array in the data type of its graph: ``uint8`` for booleans, a narrower one if requested.

    Raises:
        BadInputError: it has whole numbers that a narrower type lacks.
    """
    if array.dtype == np.bool_:
        return array.view(np.uint8)
    if array.dtype == data_type:
        return array
    reason = f"input {name!r} has numbers that are not {data_type}, as --narrow {array.dtype} makes it"
    return _converted(array, np.dtype(data_type), reason)


def _converted(array: Array, dtype: np.dtype[Any], reason: str) -> Array:
    """Return an array in another data type, floats rounded; integers that are not in it are refused for a reason."""
    with np.errstate(all="ignore"):
        converted = array.astype(dtype)
    if dtype.kind != "f" and not np.array_equal(converted, array):
        raise BadInputError(reason)
    return converted


@final
class Shapes:
    """Known sizes of the inputs' shapes; a name of a dimension has one size wherever it is used.

    Args:
        inputs: the model's inputs.
        texts: the option ``--shape``: shapes of inputs, or sizes of dimensions.

    Raises:
        BadInputError: one does not fit.
    """

    def __init__(self, inputs: Mapping[str, DeclaredInput], texts: Iterable[str]) -> None:
        self._inputs = inputs
        self._sizes: dict[str, tuple[int, str]] = {}
        self._known: dict[str, tuple[int, ...]] = {}
        dimensions = {size for item in inputs.values() for size in item.shape or () if isinstance(size, str)}
        self._dimensions = dimensions - {UNNAMED, *inputs}
        allowed = [*inputs, *sorted(self._dimensions)]
        for name, text in named("--shape", texts, allowed, "the model's inputs and dimensions are").items():
            sizes = _sizes(name, text)
            if name in inputs:
                self.bind(name, sizes, f"--shape {name}={text}")
            elif len(sizes) == 1:
                self._set(name, sizes[0], f"--shape {name}={text}")
            else:
                raise BadInputError(f"--shape {name}={text}: {name!r} is a dimension; it must be one number")

    def bind(self, name: str, shape: Sequence[int], what: str) -> None:
        """Fix the shape of an input, and with it the sizes of its dimensions.

        Raises:
            BadInputError: it is not one that the model declares, or not that which is known already.
        """
        declared = self._inputs[name]
        sizes = tuple(shape) if declared.shape is None else declared.shape
        if len(shape) != len(sizes) or any(
            size != own for size, own in zip(sizes, shape, strict=True) if isinstance(size, int)
        ):
            raise BadInputError(f"{what} is of shape {worded_shape(shape)}; input {name!r} is {declared}")
        if self._known.setdefault(name, tuple(shape)) != tuple(shape):
            raise BadInputError(
                f"{what} is of shape {worded_shape(shape)}; input {name!r} is of shape "
                f"{worded_shape(self._known[name])} already"
            )
        for size, own in zip(sizes, shape, strict=True):
            if isinstance(size, str) and size != UNNAMED:
                self._set(size, own, what)

    def _set(self, dimension: str, size: int, what: str) -> None:
        known, by = self._sizes.setdefault(dimension, (size, what))
        if known != size:
            raise BadInputError(f"{what} makes the dimension {dimension!r} {size}; {by} makes it {known}")

    def of(self, name: str) -> tuple[int | str, ...] | None:
        """Return the known shape of an input; dimensions that are still open are strings."""
        if name in self._known:
            return self._known[name]
        declared = self._inputs[name].shape
        if declared is None:
            return None
        return tuple(self._sizes.get(size, (size,))[0] if isinstance(size, str) else size for size in declared)

    def fixed(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of an input, if all of it is known."""
        shape = self.of(name)
        sizes = tuple(size for size in shape or () if isinstance(size, int))
        return sizes if shape is not None and len(sizes) == len(shape) else None

    def guessed(self, names: Iterable[str]) -> tuple[dict[str, tuple[int, ...]], list[str]]:
        """Return shapes of inputs with usual sizes for what is open, and the values of ``--shape`` that give these."""
        by_dimension: dict[str, int] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        whole: list[str] = []
        for name in names:
            shape = self.of(name)
            sizes = [1] if shape is None else []
            for size, usual in zip(shape or (), _usual(shape or ()), strict=True):
                if isinstance(size, int):
                    sizes.append(size)
                else:
                    sizes.append(usual if size == UNNAMED else by_dimension.setdefault(size, usual))
            shapes[name] = tuple(sizes)
            if shape is None or any(isinstance(size, str) and size not in self._dimensions for size in shape):
                whole.append(f"{name}={','.join(map(str, sizes))}")
        named_sizes = [f"{name}={size}" for name, size in by_dimension.items() if name in self._dimensions]
        return shapes, [*named_sizes, *whole]

    def all_fixed(self, names: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of inputs.

        Raises:
            BadInputError: some are open, or of a type that cannot be given.
        """
        shapes = {name: self.fixed(name) for name in names}
        missing = [name for name, shape in shapes.items() if shape is None]
        if missing:
            for name in shapes:
                _ = self._inputs[name].dtype  # of a type that cannot run, shapes do not help
            needed = "; ".join(f"input {name!r} is {self._inputs[name]}" for name in missing[:MOST_SHOWN])
            needed += f"; and {len(missing) - MOST_SHOWN} more" if len(missing) > MOST_SHOWN else ""
            raise BadInputError(f"give the open shapes ({needed}), for example {as_options(self.guessed(shapes)[1])}")
        return {name: shape for name, shape in shapes.items() if shape is not None}


def _sizes(name: str, text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(item) for item in text.replace("x", ",").split(",") if item) if text else ()
    except ValueError:
        sizes = (0,)
    if min(sizes, default=1) < 1:
        raise BadInputError(f"--shape {name}={text}: it must be whole numbers from 1 with commas between")
    return sizes


@attrs.frozen(eq=False)
class AskedInputs:
    """The inputs of a model with what the options ``--value`` and ``--shape`` say of them.

    Attributes:
        fed: the inputs that are not frozen.
        frozen: the values of those that are.
        shapes: what is known of all their shapes.
    """

    fed: Mapping[str, DeclaredInput]
    frozen: Mapping[str, Array]
    shapes: Shapes

    @classmethod
    def from_options(cls, model: OnnxModel, options: argparse.Namespace, *, may_override: bool = False) -> AskedInputs:
        """Look at both.

        Args:
            model: the model.
            options: of the command line.
            may_override: whether inputs with a value of their own may be given another one.

        Raises:
            BadInputError: an option does not fit the model.
        """
        texts = [*options.input, *options.value, *options.shape] if may_override else []
        overridden = [name for name in model.overridable if any(text.startswith(f"{name}=") for text in texts)]
        inputs = declared_inputs(model, overridden)
        values = named("--value", options.value, inputs, "the model's inputs are")
        frozen = {name: _frozen(inputs[name], text) for name, text in values.items()}
        shapes = Shapes(inputs, options.shape)
        for name, value in frozen.items():
            shapes.bind(name, value.shape, f"--value {name}")
        return cls({name: item for name, item in inputs.items() if name not in frozen}, frozen, shapes)


def as_options(shapes: Iterable[str]) -> str:
    """Return values of ``--shape`` as a user types them."""
    return " ".join(f"--shape {shlex.quote(text)}" for text in shapes)


def _usual(shape: Sequence[int | str]) -> tuple[int, ...]:
    """Return sizes that a user may begin with: a batch of one, pictures of 224 × 224, lengths of 16."""
    if len(shape) == 4 and (shape[1] in {1, 3} or shape[3] in {1, 3} or isinstance(shape[1], str)):
        return (1, 224, 224, 3) if shape[3] in {1, 3} else (1, 3, 224, 224)
    last = len(shape) - 1
    # Exporters leave the batch without a name wherever it stands; what is last is the length.
    return tuple(1 if axis == 0 or (size == UNNAMED and axis < last) else 16 for axis, size in enumerate(shape))
