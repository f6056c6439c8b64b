"""The proposal "dynamic shapes": named dimensions of a builder's inputs, and the shapes of one dispatch.

See docs/proposals/dynamic_shapes.md. Nothing here is used unless ``open_ml(experimental={"dynamic-shapes"})`` asks for
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast

import attrs
import numpy as np

from webnn_py.descriptors import (
    FOUR_BITS,
    LOW_PRECISION,
    MAX_DIMENSION,
    MLOperandDataType,
    MLOperandDescriptor,
    converted,
    dimension,
    dimensions,
    operand_descriptor,
    sequence_of,
    size_or_axis,
)
from webnn_py.device.backend import Backend
from webnn_py.device.steps.dynamic_graphs import CompilesDynamic
from webnn_py.errors import NotSupportedError
from webnn_py.graph import Constant, Graph, Value
from webnn_py.message_text import listed, plain, shown
from webnn_py.named_sizes.decisions import Tracing, UnknownSizeError
from webnn_py.named_sizes.expressions import SymbolicSize, named_size
from webnn_py.named_sizes.values import values_of
from webnn_py.operators.declaration import Arguments, Operator
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import Refused
from webnn_py.script.buffer import MLBuffer
from webnn_py.script.shape_values import MOST, Integers, evaluated, fits, integers
from webnn_py.sized_graphs import DynamicGraph, at_largest, at_sizes, without_data

SIZED_ARGUMENTS: Final = frozenset(
    {
        "beginning_padding",
        "ending_padding",
        "new_shape",
        "output_sizes",
        "repetitions",
        "sizes",
        "splits",
        "starts",
        "steps",
    }
)
"""The operators' arguments in which a dimension's name may stand for its size."""

FIRST_LARGEST: Final = 128
"""For a name without bounds: the size at which a drawing is checked, and the largest that is built for at first."""

MOST_SHAPES: Final = 256
"""The most sets of input shapes that are cached for each graph."""


def _name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"MLDynamicDimension(): name is {shown(value)}; it must be a string that is not empty")
    return plain(value)


def _size(value: object) -> int:
    return converted("MLDynamicDimension(): a size", size_or_axis, value)


@attrs.frozen
class MLDynamicDimension:
    """A dimension of a graph input whose size comes with each dispatch; of the proposal "dynamic shapes".

    Attributes:
        name: dimensions of one name have one size in each dispatch.
        max_size: the largest size, by which the graph is checked and its memory laid out.
        min_size: the smallest.
    """

    __module__ = "webnn_py"  # where it is public

    name: str = attrs.field(converter=_name)
    max_size: int = attrs.field(converter=_size)
    min_size: int = attrs.field(default=1, converter=_size)

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.min_size <= self.max_size <= MAX_DIMENSION:
            raise TypeError(
                f"MLDynamicDimension({shown(self.name)}): sizes are from {self.min_size} to {self.max_size}; "
                f"they must be from 1 to {MAX_DIMENSION}"
            )


class DimensionNames:
    """The names of one builder's dimensions, and what its drawing decides about their sizes.

    Args:
        values: the builder's.
        has_unbounded: whether a name may come without a largest size, as in the explainer.
    """

    def __init__(self, values: Mapping[MLOperand, Value], *, has_unbounded: bool) -> None:
        self._values = values
        self.has_unbounded = has_unbounded
        self.unbounded: set[str] = set()
        self._known: dict[MLOperand, Integers] = {}
        self._largest: dict[str, int] = {}
        self._sizes: dict[str, SymbolicSize] = {}
        self._texts: dict[str, SymbolicSize] = {}
        self.drawing = Tracing(self._largest)

    def input_descriptor(
        self, data_type: object, shape: object, proposed: tuple[MLOperandDataType, ...]
    ) -> MLOperandDescriptor:
        """Convert the descriptor of an input, as Web IDL would.

        Args:
            data_type: one of the eight, or of those of other proposals.
            shape: numbers, names, and dimensions.
            proposed: the data types of other proposals.

        Raises:
            TypeError: a member has the wrong type, or a name is not declared or otherwise than before.
        """
        checked = operand_descriptor(data_type, (), proposed).data_type
        noun = "integers, names and MLDynamicDimensions"
        sizes = converted("shape", lambda values: sequence_of(values, self._dimension, noun), shape)
        return MLOperandDescriptor(checked, cast("tuple[int, ...]", sizes))

    def _dimension(self, value: object) -> object:
        if type(value) is MLDynamicDimension:
            return self._declared(value)
        if isinstance(value, str):
            found = self._sizes.get(plain(value))
            if found is None and self.has_unbounded:
                if not value:
                    raise TypeError("is ''; a name must not be empty")
                found = self._declared_unbounded(plain(value))
            if found is None:
                raise TypeError(
                    f"is {shown(value)}, which no input has declared; it must be a number, or a name that has its "
                    "largest size from an MLDynamicDimension"
                )
            return found
        if type(value) is SymbolicSize and self._sizes.get(str(value)) is not value:
            raise TypeError(f"is {value}, which is computed from others; it must be a number or a declared name")
        return dimension(value)

    def _declared(self, given: MLDynamicDimension) -> object:
        known = self._sizes.get(given.name)
        if known is None:
            if given.min_size == given.max_size:
                return given.max_size
            known = self._sizes[given.name] = named_size(given.name, given.min_size, given.max_size)
            self._largest[given.name] = given.max_size
            self._texts[given.name] = known
        elif (known.low, known.high) != (given.min_size, given.max_size):
            raise TypeError(
                f"is {given}, of which another input says from {known.low} to {known.high}; equal names are one size"
            )
        return known

    def _declared_unbounded(self, name: str) -> SymbolicSize:
        found = self._sizes[name] = self._texts[name] = named_size(name, 1, MAX_DIMENSION)
        self._largest[name] = FIRST_LARGEST
        self.unbounded.add(name)
        return found

    @property
    def example_sizes(self) -> dict[str, int]:
        """A size of each name without bounds, with which the operators so far are right, as far as was looked."""
        return {name: self._largest[name] for name in sorted(self.unbounded)}

    def checked(self, descriptor: MLOperandDescriptor) -> MLOperandDescriptor:
        """Return the descriptor by which an operand's number of bytes is checked when it is drawn."""
        return at_sizes(descriptor, self._largest) if self.unbounded else at_largest(descriptor)

    def infer(self, operator: Operator[..., Any], arguments: Arguments) -> list[MLOperandDescriptor]:
        """Run an operator's shape rule; its questions about sizes are answered for the largest.

        Names without bounds have a size that earlier operators were right with. If this one is not, sizes that it
        mentions are tried.

        Raises:
            Refused: the arguments do not fit together, or the output's shape cannot be expressed.
        """
        try:
            return self._inferred(operator, arguments)
        except Refused:
            for name, size in self._other_sizes(arguments):
                before, self._largest[name] = self._largest[name], size
                self.drawing.answers.clear()  # for names without bounds shapes are inferred anew whenever they matter
                with suppress(Refused):
                    return self._inferred(operator, arguments)
                self._largest[name] = before
            self.drawing.answers.clear()
            return self._inferred(operator, arguments)

    def _other_sizes(self, arguments: Arguments) -> Iterator[tuple[str, int]]:
        """Yield sizes for names without bounds, with which an operator may be right: equal to others, or multiples."""
        items = [operand.shape for _, _, operand in arguments.each_operand()] + list(arguments.options().values())
        flat = [size for item in items for size in (item if isinstance(item, (list, tuple)) else [item])]
        sizes = [size for size in flat if type(size) in (int, SymbolicSize)]
        names = {name for size in sizes if type(size) is SymbolicSize for name in size.names} & self.unbounded
        others = dict.fromkeys(value for value in values_of(sizes, self._largest) if value > 0)
        for name in sorted(names):
            now = self._largest[name]
            for size in (*others, *(now * factor for factor in others if factor <= FIRST_LARGEST), 1):
                if size != now:
                    yield name, size

    def _inferred(self, operator: Operator[..., Any], arguments: Arguments) -> list[MLOperandDescriptor]:
        try:
            with self.drawing.active():
                return operator.infer(arguments)
        except UnknownSizeError as error:
            raise Refused(
                f"a size {error}: the shape of its output cannot be expressed with named dimensions; give it operands "
                "of fixed sizes, or build a graph for each size"
            ) from None

    def resolved(
        self, operator: Operator[..., Any], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return an operator's arguments, with sizes instead of dimensions' names.

        Raises:
            TypeError: there is no dimension of a name.
        """
        by_place = zip(operator.parameters, args, strict=False)
        places = tuple(self._resolved(name, value) for name, value in by_place)
        given = {name: self._resolved(name, value) for name, value in kwargs.items()}
        return (*places, *args[len(places) :]), given

    def _resolved(self, name: str, value: object) -> object:
        if name not in SIZED_ARGUMENTS:
            return value
        if isinstance(value, str):
            return self._named(name, value)
        if isinstance(value, (list, tuple)) and any(isinstance(item, str) for item in value):
            return [self._named(name, item) if isinstance(item, str) else item for item in value]
        return value

    def _named(self, argument: str, text: str) -> SymbolicSize:
        found = self._texts.get(plain(text))
        if found is None:
            names = ", ".join(sorted(self._texts)) or "none"
            raise TypeError(f"{argument} has {shown(text)}; it must be a number or a dimension so far: {names}")
        return found

    def has(self, operand: MLOperand) -> bool:
        """Return whether an operand is the builder's own; once it has built, all are."""
        return not self._values or operand in self._values

    def forget_operands(self) -> None:
        """Let go of operands, and so of constants."""
        self._values, self._known = {}, {}

    def know(self, operand: MLOperand, values: Integers) -> None:
        """Take note of the integers of an operand that is computed from shapes."""
        if fits(values, operand.data_type):
            self._known[operand] = values.reshape(operand.shape)

    def know_of(self, result: MLOperand, function: Callable[[Any, Any], Any], a: MLOperand, b: MLOperand) -> None:
        """Take note of what a function computes element by element."""
        left, right = self.known(a), self.known(b)
        if left is not None and right is not None:
            with suppress(UnknownSizeError):
                self.know(result, integers(np.frompyfunc(function, 2, 1)(left, right)))

    def known(self, operand: MLOperand) -> Integers | None:
        """Return the integers of an operand that is computed from shapes and constants; None for any other."""
        found = self._known.get(operand)
        value = self._values.get(operand)
        if found is None and isinstance(value, Constant) and isinstance(value.data, np.ndarray):
            data = value.data
            if data.dtype.kind in "iu" and value.descriptor.element_count <= MOST:
                found = self._known[operand] = integers(data.tolist()).reshape(operand.shape)
        return found

    def follow(self, operator: Operator[..., Any], arguments: Arguments, results: Sequence[MLOperand]) -> None:
        """Compute the integers of an operator's results, if those of its operands are known."""
        found = evaluated(operator, arguments, self.known) if self.has_unbounded else None
        for result, values in zip(results, found or (), strict=False):
            self.know(result, values)

    def enter(self, descriptor: MLOperandDescriptor) -> None:
        """Take note of the sizes of an operand, which may be named from now on."""
        for size in cast("Iterable[object]", descriptor.shape):
            if type(size) is SymbolicSize:
                self._texts.setdefault(str(size), size)


@attrs.frozen
class DispatchShapes:
    """The inputs and outputs of a dispatch, of which all sizes are known, and the sizes of the names."""

    input_descriptors: Mapping[str, MLOperandDescriptor]
    output_descriptors: Mapping[str, MLOperandDescriptor]
    sizes: Mapping[str, int]


class DynamicShapes:
    """The shapes of a graph with named dimensions for each dispatch; results are cached.

    A graph is compiled for largest sizes. Of one with names that have none this is an *edition*: for sizes beyond it
    another takes its place, for the next powers of two. So the constants of such a graph are kept until it is
    destroyed.

    Args:
        dynamic: the graph.
        unbounded: its names without a largest size, with sizes for which it is one.

    Attributes:
        largest: the sizes that the current edition is for.
    """

    def __init__(self, dynamic: DynamicGraph, unbounded: Mapping[str, int]) -> None:
        self._unbounded = None
        self._edition: DynamicGraph | None = dynamic
        largest = {name: size for name, size in unbounded.items() if name in dynamic.names.bounds}
        if largest:
            dynamic = self._unbounded = attrs.evolve(dynamic, covers=lambda _sizes: False)
            self._edition = dynamic.bounded(largest)
        self.largest = self._edition.names.largest
        self._inputs = {name: value.descriptor for name, value in dynamic.graph.inputs.items()}
        self._graph = attrs.evolve(dynamic, graph=without_data(dynamic.graph))
        self._known: dict[tuple[object, ...], DispatchShapes] = {}

    def of_shapes(
        self, given: Mapping[str, tuple[int, ...]], method: str = "compute_shapes", what: str = "input_shapes"
    ) -> DispatchShapes:
        """Return the descriptors of a dispatch with inputs of these shapes; refusals name a method's argument."""
        return self._of(method, what, given)

    def at(self, inputs: Mapping[str, MLBuffer]) -> DispatchShapes:
        """Return the descriptors of a dispatch with these inputs."""
        return self._of("dispatch", "inputs", {name: buffer._descriptor.shape for name, buffer in inputs.items()})

    def forget_constants(self) -> None:
        """Let go of what later editions would be compiled of."""
        self._unbounded = self._edition = None

    def take_edition(self) -> DynamicGraph:
        """Return the edition that is to be compiled, once."""
        edition, self._edition = self._edition, None
        assert edition is not None  # noqa: S101 - after the constructor, and where grow() says so
        return edition

    def grow(self, inputs: Mapping[str, MLBuffer]) -> bool:
        """Return whether a dispatch with these inputs needs another edition, which can be taken then."""
        if self._unbounded is None:
            return False
        sizes, bounds = self.at(inputs).sizes, self.largest
        if all(sizes[name] <= high for name, high in bounds.items()):
            return False
        wider = {name: max(bounds[name], 1 << (size - 1).bit_length()) for name, size in sizes.items()}
        try:
            edition = self._unbounded.bounded(wider)
        except Refused:  # it is a graph for these sizes, and for none so large
            edition = self._unbounded.bounded(sizes)
        self._edition, self.largest = edition, edition.names.largest
        return True

    def _of(self, method: str, what: str, given: Mapping[str, tuple[int, ...]]) -> DispatchShapes:
        if given.keys() != self._inputs.keys():
            names = listed(sorted(given)), listed(sorted(self._inputs))
            raise TypeError(f"{method}(): {what} are {names[0]}; the graph's are {names[1]}")
        key = tuple([given[name] for name in self._inputs])
        found = self._known.get(key)
        if found is None:
            found = self._computed(method, what, given)
            if len(self._known) >= MOST_SHAPES:
                del self._known[next(iter(self._known))]
            self._known[key] = found
        return found

    def _computed(self, method: str, what: str, given: Mapping[str, tuple[int, ...]]) -> DispatchShapes:
        sizes: dict[str, int] = {}
        named_by: dict[str, str] = {}
        for name, descriptor in self._inputs.items():
            subject = f"{method}(): {what}[{shown(name)}]"
            shape = given[name]
            if len(shape) != descriptor.rank:
                raise TypeError(f"{subject} is {listed(shape)}; it must be {listed(descriptor.shape)}")
            dimensions_wanted: tuple[object, ...] = descriptor.shape
            for axis, (size, wanted) in enumerate(zip(shape, dimensions_wanted, strict=True)):
                if type(wanted) is not SymbolicSize:
                    if size != wanted:
                        raise TypeError(f"{subject} is {listed(shape)}; dimension {axis} must be {wanted}")
                    continue
                if not wanted.low <= size <= wanted.high:
                    bounds = f"from {wanted.low} to {wanted.high}"
                    raise TypeError(f"{subject} is {listed(shape)}; dimension {axis}, {wanted}, must be {bounds}")
                text = str(wanted)
                first = named_by.setdefault(text, name)
                if sizes.setdefault(text, size) != size:
                    raise TypeError(
                        f"{subject} is {listed(shape)}, in which {text} is {size}; in {what}[{shown(first)}] it is "
                        f"{sizes[text]}, and equal names are one size"
                    )
        try:
            outputs = self._graph.output_descriptors(sizes)
        except Refused as refused:
            known = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            raise TypeError(f"{method}(): the graph is none where {known}: {refused}") from None
        return DispatchShapes({name: at_sizes(item, sizes) for name, item in self._inputs.items()}, outputs, sizes)


def named_shapes(value: object) -> dict[str, tuple[int, ...]]:
    """Convert the argument of ``MLGraph.compute_shapes()``."""
    if not isinstance(value, Mapping):
        raise TypeError(f"is {shown(value)}; it must be a mapping of names to shapes")
    return {str(name): converted(f"[{shown(name)}]", dimensions, shape) for name, shape in value.items()}


def check_can_compile(backend: Backend, graph: Graph) -> None:
    """Refuse a graph with named dimensions that a device cannot compile.

    Raises:
        NotSupportedError: the graph has data types of other proposals, or the device takes no named dimensions.
    """
    if any(descriptor.data_type in FOUR_BITS for descriptor in graph.descriptors):
        raise NotSupportedError(
            "a graph with named dimensions has no data types of four bits; give it constants of int8 or uint8"
        )
    if any(descriptor.data_type in LOW_PRECISION for descriptor in graph.descriptors):
        raise NotSupportedError(
            "a graph with named dimensions has no low precision; cast() outside of it, or fix sizes"
        )
    if not isinstance(backend, CompilesDynamic):
        raise NotSupportedError(
            f"{backend.info} cannot compile graphs with named dimensions; the devices numpy and wgpu can, and any "
            "device a graph of fixed sizes"
        )
