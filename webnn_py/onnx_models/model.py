"""``OnnxModel``: an ONNX model, loaded and ready to be converted."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from time import perf_counter
from types import MappingProxyType
from typing import Any, Final, NoReturn, Self, final

import attrs
import numpy as np
import trio
from onnx import ModelProto, TypeProto, ValueInfoProto

from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.message_text import visible
from webnn_py.core.operators.operand import MLOperand
from webnn_py.onnx_models.conversion.context import StaticValue
from webnn_py.onnx_models.conversion.model_conversion import ModelConversion, Replacing
from webnn_py.onnx_models.conversion.scopes import Steps
from webnn_py.onnx_models.limits import Expenses, ModelLimits
from webnn_py.onnx_models.reading.contents import ModelMetadata
from webnn_py.onnx_models.reading.element_types import (
    NARROW_FLOAT64,
    NARROW_INT64,
    data_type_name,
    has_numbers,
    type_name,
)
from webnn_py.onnx_models.reading.functions import functions_of, opsets_of
from webnn_py.onnx_models.reading.model_file import read_model
from webnn_py.onnx_models.reading.node_order import Live, live
from webnn_py.onnx_models.reading.weights import Weights

LARGEST_COUNT: Final = 2**31
"""Of elements, in all but the empty dimensions of an input without elements."""

STEP_SECONDS: Final = 0.004
"""So long a conversion in steps goes on before it lets other tasks run."""


@attrs.frozen
class TensorInfo:
    """An input or output of a model, as the model declares it.

    Attributes:
        data_type: the WebNN data type, ``uint8`` for booleans; of a type that WebNN lacks, the name.
        shape: the dimensions; a string is symbolic, "?" one without a name, or that the model declares as 0 or less.
            None where not even the rank is declared.
    """

    data_type: str
    shape: tuple[int | str, ...] | None

    def __str__(self) -> str:
        return f"{self.data_type} {'of any shape' if self.shape is None else list(self.shape)}"


@final
class OnnxModel:
    """An ONNX model; made by :meth:`load`.

    Attributes:
        inputs: what the model says of its inputs, by name. Those with a value of their own (initializers) are not
            among them.
        overridable: those inputs: each has its own value, unless a conversion is given another one or a shape.
        outputs: its outputs, as the model declares them.
        metadata: what else the model says of itself.
        narrow_float64: whether operands of float64, which WebNN lacks, are float32, as the inputs and outputs then say.
        narrow_int64: the same for int64 and uint64, which some devices lack, as int32 and uint32.
    """

    _proto: ModelProto
    _size: int
    _limits: ModelLimits
    _is_flat: bool
    _live: Live
    _weights: Weights
    _narrowing: Mapping[str, str]
    _digest: bytes | None
    inputs: Mapping[str, TensorInfo]
    overridable: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    metadata: ModelMetadata
    narrow_float64: bool
    narrow_int64: bool

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("OnnxModel has no public constructor; use OnnxModel.load()")

    def __reduce__(self) -> NoReturn:
        raise TypeError("OnnxModel can be neither copied nor pickled; load it in each process")

    @classmethod
    def load(
        cls,
        source: str | os.PathLike[str] | bytes,
        *,
        limits: ModelLimits | None = None,
        narrow_float64: bool = False,
        narrow_int64: bool = False,
    ) -> Self:
        """Load a model, which may come from anybody.

        Args:
            source: the path of a file, with external data in files of its folder; or the bytes of a file that has all
                its data inside: then no file is read.
            limits: what the model may cost while it is loaded and converted; by default, ``ModelLimits()``.
            narrow_float64: let operands of float64, which WebNN lacks, be float32. Otherwise a model that has them is
                refused. What is computed while building stays float64; of what is narrowed then, finite values stay
                finite.
            narrow_int64: let operands of int64 and uint64, which some devices lack, be int32 and uint32. Constants
                beyond these become the nearest number; what the graph computes wraps around.

        Raises:
            InvalidModelError: that is no ONNX model, or a malformed one.
            UnsupportedModelError: the model costs more than the limits allow.
            OSError: a file cannot be read.
        """
        limits = ModelLimits() if limits is None else limits
        read = read_model(source, limits)
        self = cls.__new__(cls)
        self._proto, self._size, self._limits = read.proto, read.size, limits
        graph = read.proto.graph
        self._is_flat = read.is_flat
        self._live = live(graph.node, [item.name for item in graph.output], are_flat=read.is_flat)
        self._weights = Weights(read.raw_data)
        self._digest = None
        own_value = {item.name for item in graph.initializer}
        self._narrowing = {**(NARROW_FLOAT64 if narrow_float64 else {}), **(NARROW_INT64 if narrow_int64 else {})}
        infos = _tensor_infos(graph.input, self._narrowing)
        self.inputs = MappingProxyType({name: info for name, info in infos.items() if name not in own_value})
        self.overridable = MappingProxyType({name: info for name, info in infos.items() if name in own_value})
        self.outputs = _tensor_infos(graph.output, self._narrowing)
        self.metadata = ModelMetadata.from_proto(read.proto)
        self.narrow_float64, self.narrow_int64 = narrow_float64, narrow_int64
        return self

    def convert(
        self,
        builder: MLGraphBuilder,
        input_shapes: Mapping[str, Sequence[int]] | None = None,
        input_values: Mapping[str, StaticValue] | None = None,
        *,
        input_operands: Mapping[str, MLOperand] | None = None,
        outputs: Iterable[str] | None = None,
    ) -> dict[str, MLOperand]:
        """Convert the model to operands of a builder.

        Args:
            builder: what to build with; it then has those of the model's inputs that the outputs need.
            input_shapes: the shapes of inputs, by name; needed for those that the model leaves open and uses. An
                overridable input that is named becomes an input of the graph; one with a dimension of 0, which has no
                elements, does not.
            input_values: inputs to bind to values: they become constants, and no inputs of the graph. Overridable ones
                have this value in place of their own.
            input_operands: operands of the builder that take the place of inputs, so that a model can be a part of a
                graph: what an operator or another model has computed.
            outputs: the names of those outputs that are wanted; all by default. What only others need is left out.

        Returns:
            Those outputs by name, ready for :meth:`~webnn_py.MLGraphBuilder.build`.

        Raises:
            UnsupportedModelError: WebNN, or this importer, cannot do something that the model asks for; or it costs
                more than the limits allow. If a shape is missing, of inputs of data types that WebNN lacks, as strings.
            InvalidModelError: the model is malformed in a way that only converting it shows.
            ValueError: the shapes or values do not fit the model's inputs, or there is no such output.
        """
        _, steps = self._begin(builder, input_shapes, input_values, input_operands, outputs, {})
        converted = _gone_on(steps, math.inf)
        assert converted is not None  # noqa: S101 - for type checkers: it has ended
        return converted

    async def convert_in_steps(  # noqa: PLR0913 - those of convert(), and progress
        self,
        builder: MLGraphBuilder,
        input_shapes: Mapping[str, Sequence[int]] | None = None,
        input_values: Mapping[str, StaticValue] | None = None,
        *,
        input_operands: Mapping[str, MLOperand] | None = None,
        outputs: Iterable[str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, MLOperand]:
        """Convert the model as :meth:`convert` does, and let other tasks run every few milliseconds.

        It can be cancelled; ``builder`` is then of no use.

        Args:
            builder: as for :meth:`convert`, which also has what is returned and raised.
            input_shapes: as for :meth:`convert`.
            input_values: as for :meth:`convert`.
            input_operands: as for :meth:`convert`.
            outputs: as for :meth:`convert`.
            progress: is called at each pause and at the end with the number of nodes that are converted, and of all
                that are known: those of a function, or a branch, when it is come to.
        """
        return await self._convert_in_steps(
            builder, input_shapes, input_values, input_operands, outputs, progress=progress, replacing={}
        )

    async def _convert_in_steps(  # noqa: PLR0913 - those of convert_in_steps(), and what is replaced
        self,
        builder: MLGraphBuilder,
        input_shapes: Mapping[str, Sequence[int]] | None,
        input_values: Mapping[str, StaticValue] | None,
        input_operands: Mapping[str, MLOperand] | None,
        outputs: Iterable[str] | None,
        *,
        progress: Callable[[int, int], None] | None,
        replacing: Mapping[str, Replacing],
    ) -> dict[str, MLOperand]:
        """Convert the model as :meth:`convert_in_steps` does, with other operands in the place of some results."""
        conversion, steps = self._begin(builder, input_shapes, input_values, input_operands, outputs, replacing)
        while (converted := _gone_on(steps, STEP_SECONDS)) is None:
            if progress is not None:
                progress(conversion.done, conversion.total)
            await trio.lowlevel.checkpoint()
        if progress is not None:
            progress(conversion.done, conversion.total)
        await trio.lowlevel.checkpoint()
        return converted

    def read_weights(self) -> None:
        """Read the weights, which otherwise the first conversion does; meant for a worker thread.

        Raises:
            InvalidModelError: they cannot be read.
        """
        self._weights.read(self._proto.graph, self._live.names)

    def digest(self) -> bytes:
        """Return a digest of what conversions make of the model: nodes, weights, opsets, inputs, outputs, narrowing.

        The first call reads the weights, and takes about a second for a gigabyte; meant for a worker thread. It is the
        same in another process.

        Raises:
            InvalidModelError: the weights cannot be read.
        """
        if self._digest is None:
            graph = self._proto.graph
            messages = (
                *(self._proto.opset_import, self._proto.functions, graph.node, graph.input, graph.output),
                *(graph.value_info, graph.sparse_initializer),
            )
            kinds = [[message.SerializeToString(deterministic=True) for message in of_kind] for of_kind in messages]
            kinds += [
                list(self._weights.identities(graph, self._live.names)),
                [repr(sorted(self._narrowing.items())).encode()],
            ]
            made = blake2b(repr([[len(part) for part in kind] for kind in kinds]).encode(), digest_size=32)
            for part in chain.from_iterable(kinds):
                made.update(part)
            self._digest = made.digest()
        return self._digest

    def _begin(  # noqa: PLR0913, PLR0917 - those of convert_in_steps(), checked
        self,
        builder: MLGraphBuilder,
        input_shapes: Mapping[str, Sequence[int]] | None,
        input_values: Mapping[str, StaticValue] | None,
        input_operands: Mapping[str, MLOperand] | None,
        outputs: Iterable[str] | None,
        replacing: Mapping[str, Replacing],
    ) -> tuple[ModelConversion, Steps[dict[str, MLOperand]]]:
        """Return a conversion that has the inputs, and nothing else yet; and its steps."""
        shapes, values, operands = dict(input_shapes or {}), dict(input_values or {}), dict(input_operands or {})
        for argument, given in (("input_shapes", shapes), ("input_values", values), ("input_operands", operands)):
            self._check_names(argument, given)
        twice = sorted(operands.keys() & (shapes.keys() | values.keys()))
        if twice:
            raise ValueError(f"input_operands names {twice}, which input_shapes or input_values names as well")
        names, needed = list(self.outputs), self._live
        if outputs is not None:
            names = self._checked_outputs(outputs)
            needed = live(self._proto.graph.node, names, are_flat=self._is_flat)
        conversion = ModelConversion(
            builder,
            opsets_of(self._proto.opset_import),
            functions_of(self._proto),
            Expenses(self._limits, self._size),
            self._weights,
            is_flat=self._is_flat,
            narrowing=self._narrowing,
            replacing=replacing,
        )
        used = {
            item.name: item.type.tensor_type.elem_type
            for item in self._proto.graph.input
            if item.name in needed.names and any(item.name in of for of in (self.inputs, shapes, values, operands))
        }
        if any(self._is_open(name) for name in used.keys() - values.keys() - shapes.keys() - operands.keys()):
            conversion.check_types({name: kind for name, kind in used.items() if name not in values})
        for name, element_type in used.items():
            if name in operands:
                self._check_fits(name, operands[name].shape)
                conversion.bind_operand(name, element_type, operands[name])
                continue
            if name in values:
                conversion.bind(name, self._checked_value(name, values[name], element_type))
                continue
            shape = self._checked_shape(name, shapes.get(name))
            if 0 in shape and has_numbers(element_type):
                conversion.bind(name, self._without_elements(name, shape, element_type))
            else:
                conversion.add_input(name, element_type, shape)
        return conversion, conversion.outputs_of(self._proto.graph, names, needed)

    def _checked_outputs(self, outputs: Iterable[str]) -> list[str]:
        names = list(dict.fromkeys(outputs))
        unknown = [name for name in names if name not in self.outputs]
        if unknown or not names:
            raise ValueError(f"outputs names {unknown or 'none'}; the model's outputs are {list(self.outputs)}")
        return names

    def _check_names(self, argument: str, given: Mapping[str, object]) -> None:
        known = {**self.inputs, **self.overridable}
        if not given.keys() <= known.keys():
            unknown = sorted(given.keys() - known.keys())
            others = f", and {len(self.overridable)} with values of their own" if self.overridable else ""
            raise ValueError(f"{argument} names {unknown}; the model's inputs are {list(self.inputs)}{others}")

    def _info(self, name: str) -> TensorInfo:
        return self.inputs.get(name) or self.overridable[name]

    def _without_elements(self, name: str, shape: Sequence[int], element_type: int) -> StaticValue:
        """Return the value of an input whose shape has a 0."""
        if min(shape) < 0 or math.prod(filter(None, shape)) > LARGEST_COUNT:
            raise ValueError(
                f"the shape of input {name!r} is {list(shape)}; it must be at least 0 everywhere, and all but the "
                f"zeros together at most {LARGEST_COUNT:,}"
            )
        return np.zeros(shape, type_name(element_type))

    def _is_open(self, name: str) -> bool:
        """Return whether the model does not say the whole shape of an input."""
        shape = self._info(name).shape
        return shape is None or not all(isinstance(size, int) for size in shape)

    def _checked_shape(self, name: str, given: Sequence[int] | None) -> tuple[int, ...]:
        declared = self._info(name).shape
        if given is None:
            if declared is None or self._is_open(name):
                way_out = f"give its shape in input_shapes{self._on_zeros(name)}"
                raise ValueError(f"input {name!r} is {self._info(name)}; {way_out}")
            return tuple(size for size in declared if isinstance(size, int))
        self._check_fits(name, given)
        return tuple(given)

    def _on_zeros(self, name: str) -> str:
        """Return the hint that an input may have no elements; nothing where none of its dimensions is declared as 0."""
        declared = next(item.type.tensor_type.shape.dim for item in self._proto.graph.input if item.name == name)
        if not any(item.HasField("dim_value") and item.dim_value == 0 for item in declared):
            return ""
        sizes = [item.dim_value if item.HasField("dim_value") else item.dim_param or "?" for item in declared]
        return f", with 0 where it has no elements: the model declares {sizes}, where some exporters mean 0 as open"

    def _checked_value(self, name: str, given: StaticValue, element_type: int) -> StaticValue:
        value = np.asarray(given)
        if value.dtype.name == self._narrowing.get(type_name(element_type)):
            value = value.astype(type_name(element_type))
        if value.dtype.name != type_name(element_type):
            raise ValueError(f"the value of input {name!r} is {value.dtype.name}; it must be {type_name(element_type)}")
        self._check_fits(name, value.shape)
        return value.copy()

    def _check_fits(self, name: str, given: Sequence[int]) -> None:
        declared = self._info(name).shape
        if declared is not None and (
            len(given) != len(declared)
            or any(isinstance(size, int) and size != own for own, size in zip(given, declared, strict=True))
        ):
            raise ValueError(f"the shape of input {name!r} is {list(given)}; it must fit {list(declared)}")

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}: {info}" for name, info in self.inputs.items())
        outputs = ", ".join(f"{name}: {info}" for name, info in self.outputs.items())
        return visible(f"<OnnxModel ({inputs}) -> ({outputs})>")


def _gone_on(steps: Steps[dict[str, MLOperand]], seconds: float) -> dict[str, MLOperand] | None:
    """Continue a conversion for some seconds; return the outputs once it has ended."""
    until = perf_counter() + seconds
    with np.errstate(all="ignore"):  # a number that is too large or too small for a data type is infinite or 0 there
        while True:
            try:
                next(steps)
            except StopIteration as end:
                converted: dict[str, MLOperand] = end.value
                return converted
            if perf_counter() > until:
                return None


def _tensor_infos(items: Iterable[ValueInfoProto], narrowing: Mapping[str, str]) -> Mapping[str, TensorInfo]:
    return MappingProxyType({item.name: _tensor_info(item.type, narrowing) for item in items})


def _tensor_info(declared: TypeProto, narrowing: Mapping[str, str]) -> TensorInfo:
    kind = declared.WhichOneof("value")
    if kind != "tensor_type":
        return TensorInfo((kind or "unknown_type").removesuffix("_type"), None)
    tensor = declared.tensor_type
    shape = tuple(_dimension(item) for item in tensor.shape.dim) if tensor.HasField("shape") else None
    return TensorInfo(data_type_name(tensor.elem_type, narrowing), shape)


def _dimension(dimension: Any) -> int | str:
    if dimension.HasField("dim_value") and dimension.dim_value > 0:
        return int(dimension.dim_value)
    return str(dimension.dim_param) or "?"  # some exporters write -1 or 0 for a dimension that is open
