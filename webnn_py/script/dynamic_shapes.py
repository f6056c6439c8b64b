"""The proposal "dynamic shapes": named dimensions of a builder's inputs, and the shapes of one dispatch.

See docs/proposals/dynamic_shapes.md. Nothing here is used unless ``open_ml(experimental={"dynamic-shapes"})`` asks for
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import attrs

from webnn_py.descriptors import (
    FOUR_BITS,
    MAX_DIMENSION,
    MLOperandDescriptor,
    converted,
    dimension,
    dimensions,
    operand_data_type,
    sequence_of,
    size_or_axis,
)
from webnn_py.device.backend import Backend
from webnn_py.device.steps.dynamic_graphs import CompilesDynamic
from webnn_py.errors import NotSupportedError
from webnn_py.graph import Graph
from webnn_py.message_text import listed, plain, shown
from webnn_py.named_sizes.decisions import Tracing, UnknownSizeError
from webnn_py.named_sizes.expressions import SymbolicSize, named_size
from webnn_py.operators.declaration import Arguments, Operator
from webnn_py.operators.rules import Refused
from webnn_py.script.buffer import MLBuffer
from webnn_py.sized_graphs import DynamicGraph, at_sizes, without_data

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
    """The names of one builder's dimensions, and what its drawing decides about their sizes."""

    def __init__(self) -> None:
        self._largest: dict[str, int] = {}
        self._sizes: dict[str, SymbolicSize] = {}
        self._texts: dict[str, SymbolicSize] = {}
        self.drawing = Tracing(self._largest)

    def input_descriptor(self, data_type: object, shape: object) -> MLOperandDescriptor:
        """Convert the descriptor of an input, as Web IDL would.

        Raises:
            TypeError: a member has the wrong type, or a name is not declared or otherwise than before.
        """
        checked = converted("data_type", operand_data_type, data_type)
        noun = "integers, names and MLDynamicDimensions"
        sizes = converted("shape", lambda values: sequence_of(values, self._dimension, noun), shape)
        return MLOperandDescriptor(checked, cast("tuple[int, ...]", sizes))

    def _dimension(self, value: object) -> object:
        if type(value) is MLDynamicDimension:
            return self._declared(value)
        if isinstance(value, str):
            found = self._sizes.get(plain(value))
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

    def infer(self, operator: Operator[..., Any], arguments: Arguments) -> list[MLOperandDescriptor]:
        """Run an operator's shape rule; its questions about sizes are answered for the largest.

        Raises:
            Refused: the arguments do not fit together, or the output's shape cannot be expressed.
        """
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

    def enter(self, descriptor: MLOperandDescriptor) -> None:
        """Take note of the sizes of an operand, which may be named from now on."""
        for size in cast("Iterable[object]", descriptor.shape):
            if type(size) is SymbolicSize:
                self._texts.setdefault(str(size), size)


@attrs.frozen
class DispatchShapes:
    """The inputs and outputs of a dispatch, of which all sizes are known."""

    input_descriptors: Mapping[str, MLOperandDescriptor]
    output_descriptors: Mapping[str, MLOperandDescriptor]


class DynamicShapes:
    """The shapes of a graph with named dimensions for each dispatch; results are cached."""

    def __init__(self, dynamic: DynamicGraph) -> None:
        self._inputs = {name: value.descriptor for name, value in dynamic.graph.inputs.items()}
        self._graph = attrs.evolve(dynamic, graph=without_data(dynamic.graph))
        self._known: dict[tuple[object, ...], DispatchShapes] = {}

    def of_shapes(self, given: Mapping[str, tuple[int, ...]]) -> DispatchShapes:
        """Return the descriptors of a dispatch with inputs of these shapes."""
        return self._of("compute_shapes", "input_shapes", given)

    def at(self, inputs: Mapping[str, MLBuffer]) -> DispatchShapes:
        """Return the descriptors of a dispatch with these inputs."""
        return self._of("dispatch", "inputs", {name: buffer._descriptor.shape for name, buffer in inputs.items()})

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
        return DispatchShapes({name: at_sizes(item, sizes) for name, item in self._inputs.items()}, outputs)


def named_shapes(value: object) -> dict[str, tuple[int, ...]]:
    """Convert the argument of ``MLGraph.compute_shapes()``."""
    if not isinstance(value, Mapping):
        raise TypeError(f"is {shown(value)}; it must be a mapping of names to shapes")
    return {str(name): converted(f"[{shown(name)}]", dimensions, shape) for name, shape in value.items()}


def check_can_compile(backend: Backend, graph: Graph) -> None:
    """Refuse a graph with named dimensions that a device cannot compile.

    Raises:
        NotSupportedError: the graph has data types of four bits, or the device takes no named dimensions.
    """
    if any(descriptor.data_type in FOUR_BITS for descriptor in graph.descriptors):
        raise NotSupportedError(
            "a graph with named dimensions has no data types of four bits; give it constants of int8 or uint8"
        )
    if not isinstance(backend, CompilesDynamic):
        raise NotSupportedError(
            f"{backend.info} cannot compile graphs with named dimensions; the devices numpy and wgpu can, and any "
            "device a graph of fixed sizes"
        )
