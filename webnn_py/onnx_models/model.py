"""``OnnxModel``: an ONNX model, loaded and ready to be converted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from types import MappingProxyType
from typing import Any, Final, Self, final

import attrs
import numpy as np
import onnx
import trio

from webnn_py.onnx_models.conversion_context import StaticValue
from webnn_py.onnx_models.element_types import data_type_name, type_name
from webnn_py.onnx_models.functions import functions_of
from webnn_py.onnx_models.limits import Expenses, ModelLimits
from webnn_py.onnx_models.model_conversion import Live, ModelConversion, live_of
from webnn_py.onnx_models.reading import read_model
from webnn_py.onnx_models.weights import Weights
from webnn_py.operators.operand import MLOperand
from webnn_py.script.builder import MLGraphBuilder

STEP_SECONDS: Final = 0.004
"""So long a conversion in steps goes on before it lets other tasks run."""


@attrs.frozen
class TensorInfo:
    """What a model says of one of its inputs or outputs.

    Attributes:
        data_type: the WebNN data type, ``uint8`` for booleans; of a type that WebNN lacks, the name.
        shape: the dimensions; a string is symbolic, "?" one without a name. None when not even the rank is said.
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
        outputs: likewise of its outputs.
        producer: what wrote the model, and its version; "" where the model does not say.
        opsets: the versions of the sets of operators, by domain; "" is ONNX's own.
        metadata: what else the model says of itself, by name.
    """

    _proto: onnx.ModelProto
    _size: int
    _limits: ModelLimits
    _live: Live
    _weights: Weights
    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    producer: str
    opsets: Mapping[str, int]
    metadata: Mapping[str, str]

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("OnnxModel has no public constructor; use OnnxModel.load()")

    @classmethod
    def load(cls, source: str | os.PathLike[str] | bytes, *, limits: ModelLimits | None = None) -> Self:
        """Load a model, which may come from anybody.

        Args:
            source: the path of a file, with external data in files of its folder; or the bytes of a file that has all
                its data inside: then no file is read.
            limits: what the model may cost while it is loaded and converted; by default, ``ModelLimits()``.

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
        self._live = live_of(graph)
        self._weights = Weights()
        own_value = {item.name for item in graph.initializer}
        self.inputs = _tensor_infos(item for item in graph.input if item.name not in own_value)
        self.outputs = _tensor_infos(graph.output)
        self.producer = f"{read.proto.producer_name} {read.proto.producer_version}".strip()
        self.opsets = MappingProxyType({item.domain: item.version for item in read.proto.opset_import})
        self.metadata = MappingProxyType({item.key: item.value for item in read.proto.metadata_props})
        return self

    def convert(
        self,
        builder: MLGraphBuilder,
        input_shapes: Mapping[str, Sequence[int]] | None = None,
        input_values: Mapping[str, StaticValue] | None = None,
    ) -> dict[str, MLOperand]:
        """Convert the model to operands of a builder.

        Args:
            builder: what to build with; it then has those of the model's inputs that the outputs need.
            input_shapes: the shapes of inputs, by name; needed for those that the model leaves open and uses.
            input_values: inputs to bind to values: they become constants, and no inputs of the graph.

        Returns:
            The model's outputs by name, ready for :meth:`MLGraphBuilder.build`.

        Raises:
            UnsupportedModelError: WebNN, or this importer, cannot do something that the model asks for; or it costs
                more than the limits allow.
            InvalidModelError: the model is malformed in a way that only converting it shows.
            ValueError: the shapes or values do not fit the model's inputs.
        """
        steps = self._begin(builder, input_shapes, input_values).outputs_of(self._proto.graph, self._live)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                outputs: dict[str, MLOperand] = end.value
                return outputs

    async def convert_in_steps(
        self,
        builder: MLGraphBuilder,
        input_shapes: Mapping[str, Sequence[int]] | None = None,
        input_values: Mapping[str, StaticValue] | None = None,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, MLOperand]:
        """Convert the model as :meth:`convert` does, and let other tasks run every few milliseconds.

        It can be cancelled; ``builder`` is then of no use.

        Args:
            builder: as for :meth:`convert`, which also has what is returned and raised.
            input_shapes: likewise.
            input_values: likewise.
            progress: is called at each pause and at the end with the number of nodes that are converted, and of all
                that are known: those of a function, or a branch, when it is come to.
        """
        conversion = self._begin(builder, input_shapes, input_values)
        steps = conversion.outputs_of(self._proto.graph, self._live)
        since = perf_counter()
        while True:
            try:
                next(steps)
            except StopIteration as end:
                outputs: dict[str, MLOperand] = end.value
                break
            if perf_counter() - since > STEP_SECONDS:
                if progress is not None:
                    progress(conversion.done, conversion.total)
                await trio.lowlevel.checkpoint()
                since = perf_counter()
        if progress is not None:
            progress(conversion.done, conversion.total)
        await trio.lowlevel.checkpoint()
        return outputs

    def read_weights(self) -> None:
        """Read the weights, which otherwise the first conversion does; meant for a worker thread.

        Raises:
            InvalidModelError: they cannot be read.
        """
        self._weights.read(self._proto.graph, self._live.names)

    def _begin(
        self,
        builder: MLGraphBuilder,
        input_shapes: Mapping[str, Sequence[int]] | None,
        input_values: Mapping[str, StaticValue] | None,
    ) -> ModelConversion:
        """A conversion that has the inputs, and nothing else yet."""
        shapes, values = dict(input_shapes or {}), dict(input_values or {})
        self._check_names("input_shapes", shapes)
        self._check_names("input_values", values)
        conversion = ModelConversion(
            builder,
            {item.domain: item.version for item in self._proto.opset_import},
            functions_of(self._proto),
            Expenses(self._limits, self._size),
            self._weights,
        )
        for item in self._proto.graph.input:
            name, element_type = item.name, item.type.tensor_type.elem_type
            if name not in self.inputs or name not in self._live.names:
                continue
            if name in values:
                conversion.bind(name, self._checked_value(name, values[name], element_type))
            else:
                conversion.add_input(name, element_type, self._checked_shape(name, shapes.get(name)))
        return conversion

    def _check_names(self, argument: str, given: Mapping[str, object]) -> None:
        unknown = given.keys() - self.inputs.keys()
        if unknown:
            raise ValueError(f"{argument} names {sorted(unknown)}; the model's inputs are {list(self.inputs)}")

    def _checked_shape(self, name: str, given: Sequence[int] | None) -> tuple[int, ...]:
        declared = self.inputs[name].shape
        if given is None:
            fixed = tuple(size for size in declared or () if isinstance(size, int))
            if declared is None or len(fixed) != len(declared):
                raise ValueError(f"input {name!r} is {self.inputs[name]}; give its shape in input_shapes")
            return fixed
        self._check_fits(name, given)
        return tuple(given)

    def _checked_value(self, name: str, given: StaticValue, element_type: int) -> StaticValue:
        value = np.asarray(given)
        if value.dtype.name != type_name(element_type):
            raise ValueError(f"the value of input {name!r} is {value.dtype.name}; it must be {type_name(element_type)}")
        self._check_fits(name, value.shape)
        return value.copy()

    def _check_fits(self, name: str, given: Sequence[int]) -> None:
        declared = self.inputs[name].shape
        if declared is not None and (
            len(given) != len(declared)
            or any(isinstance(size, int) and size != own for own, size in zip(given, declared, strict=True))
        ):
            raise ValueError(f"the shape of input {name!r} is {list(given)}; it must fit {list(declared)}")

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}: {info}" for name, info in self.inputs.items())
        outputs = ", ".join(f"{name}: {info}" for name, info in self.outputs.items())
        return f"<OnnxModel ({inputs}) -> ({outputs})>"


def _tensor_infos(items: Iterable[onnx.ValueInfoProto]) -> Mapping[str, TensorInfo]:
    return MappingProxyType({item.name: _tensor_info(item.type) for item in items})


def _tensor_info(declared: onnx.TypeProto) -> TensorInfo:
    kind = declared.WhichOneof("value")
    if kind != "tensor_type":
        return TensorInfo((kind or "unknown_type").removesuffix("_type"), None)
    tensor = declared.tensor_type
    shape = tuple(_dimension(item) for item in tensor.shape.dim) if tensor.HasField("shape") else None
    return TensorInfo(data_type_name(tensor.elem_type), shape)


def _dimension(dimension: Any) -> int | str:
    if dimension.HasField("dim_value") and dimension.dim_value > 0:
        return int(dimension.dim_value)
    return str(dimension.dim_param) or "?"  # some exporters write -1 or 0 for a dimension that is open
