"""The interfaces of the API as a script calls them: each member makes the same call in Python.

Each function takes converted arguments in the order of the IDL and returns what a script gets: nothing, an object,
a list of objects, plain data, or a promise. They raise what Python's API raises.
"""

import itertools
import weakref
from collections.abc import Callable, Mapping
from typing import Any, cast

import attrs
import numpy as np

from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.context import MLContext
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.api.ml import ML
from webnn_py.core.descriptors import FOUR_BITS, MLOperandDataType
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.operators.declaration import Operator, spec_name_of
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.registry import BY_SPEC_NAME, OPERATORS
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.devices.lending import Arrival
from webnn_py.devices.wgpu.interop import begin_copy, create_exported_elsewhere, deliver, end_copy
from webnn_py.extensions.subgraph import build_subgraph, subgraph
from webnn_py.javascript.compatibility import OPTION_NAMES, Compatibility
from webnn_py.javascript.values import BufferSource
from webnn_py.saved_graphs import SavedGraphs
from webnn_py.tracing.source import Source, called_from

_TOP_LIMITS = {
    name: spec_name_of(name)
    for name in ("preferred_input_layout", "max_tensor_byte_length", "input", "constant", "output")
}

Names = dict[str, str]
"""A script's names of inputs by those that Python's builder knows them by, or the other way round."""


@attrs.frozen
class Converted:
    """A promise, and the function that converts its value for scripts."""

    promise: MLPromise[Any]
    convert: Callable[[Any], Any]


class API:
    """The calls, for one ``ML`` and one compatibility mode.

    Attributes:
        ml: the ``ML``.
    """

    def __init__(
        self, ml: ML, compatibility: Compatibility, backend: str | None, *, saved: SavedGraphs | None = None
    ) -> None:
        self.ml = ml
        self._saved = saved
        self._mode = compatibility
        self._backend = backend
        self._names: weakref.WeakKeyDictionary[MLGraphBuilder, Names] = weakref.WeakKeyDictionary()
        self._graph_names: weakref.WeakKeyDictionary[MLGraph, Names] = weakref.WeakKeyDictionary()
        self._arrival_numbers = itertools.count()
        self._arrivals: weakref.WeakValueDictionary[int, Arrival] = weakref.WeakValueDictionary()
        self._calls: dict[tuple[str, str], Callable[..., Any]] = {
            ("ML", "createContext"): self._create_context,
            ("MLContext", "createTensor"): self._create_tensor,
            ("MLContext", "createConstantTensor"): self._create_constant_tensor,
            ("MLContext", "createExportableTensor"): self._create_exportable_tensor,
            ("MLContext", "exportToGPU"): begin_copy,
            ("MLContext", "readTensor"): self._read_tensor,
            ("MLContext", "writeTensor"): self._write_tensor,
            ("MLContext", "dispatch"): self._dispatch,
            ("MLContext", "opSupportLimits"): self._op_support_limits,
            ("MLContext", "listGraphs"): self._list_graphs,
            ("MLContext", "loadGraph"): self._load_graph,
            ("MLContext", "saveGraph"): self._save_graph,
            ("MLContext", "deleteGraph"): self._delete_graph,
            ("MLContext", "destroy"): MLContext.destroy,
            ("MLGraph", "destroy"): MLGraph.destroy,
            ("MLTensor", "destroy"): MLBuffer.destroy,
            ("MLTensor", "endExport"): self._end_export,
            ("MLTensor", "returnContents"): self._return_contents,
            ("MLGraphBuilder", "constructor"): MLGraphBuilder,
            ("MLGraphBuilder", "input"): self._input,
            ("MLGraphBuilder", "constant"): self._constant,
            ("MLGraphBuilder", "build"): self._build,
            ("MLGraphBuilder", "buildSubgraph"): _build_subgraph,
            ("MLGraphBuilder", "subgraph"): _subgraph,
        }

    def call(self, interface: str, member: str, this: object, arguments: list[Any]) -> Any:
        """Do what a script asked for."""
        function = self._calls.get((interface, member))
        if function is not None:
            return function(*arguments) if member == "constructor" else function(this, *arguments)
        if interface == "MLGraphBuilder" and member in BY_SPEC_NAME:
            return self._operator(cast("MLGraphBuilder", this), BY_SPEC_NAME[member], arguments)
        raise NotSupportedError(f"{interface}.{member}: the IDL has it, and webnn_py does not")

    def call_from(self, place: Source, interface: str, member: str, this: object, arguments: list[Any]) -> Any:
        """Call a method, with the place in the script that called it, for traces."""
        with called_from(place):
            return self.call(interface, member, this, arguments)

    # --- ML and MLContext --------------------------------------------------------------------------------------

    def _create_context(self, _ml: object, options: Mapping[str, Any]) -> MLPromise[MLContext]:
        names = {"powerPreference": "power_preference", "accelerated": "accelerated"}
        given = {names[name]: value for name, value in options.items() if name in names}
        backend = self._backend
        if options.get("computePolicy", "default") != "default":
            given["compute_policy"], backend = options["computePolicy"], None
        return self.ml.create_context(backend=backend, **given)

    def _list_graphs(self, context: MLContext) -> MLPromise[list[str]]:
        return self._graphs.keys(context)

    def _load_graph(self, context: MLContext, key: str) -> MLPromise[MLGraph]:
        return self._graphs.load(context, key)

    def _save_graph(self, context: MLContext, key: str, graph: MLGraph) -> MLPromise[None]:
        if graph.context is not context:
            raise TypeError(f"saveGraph(): {graph!r} belongs to another context")
        return self._graphs.save(key, graph)

    def _delete_graph(self, context: MLContext, key: str) -> None:
        """The explainer's, which returns nothing: what is refused at once is thrown, what fails later is a warning."""
        promise = self._graphs.delete(context, key)
        if promise.state == "rejected":
            raise cast("Exception", promise.outcome)

    @property
    def _graphs(self) -> SavedGraphs:
        assert self._saved is not None  # noqa: S101 - only programs with a folder are given these members
        return self._saved

    def _create_tensor(self, context: MLContext, descriptor: Mapping[str, Any]) -> MLPromise[MLBuffer]:
        return context.create_buffer(
            data_type=descriptor["dataType"],
            shape=descriptor["shape"],
            readable=descriptor["readable"],
            writable=descriptor["writable"],
        )

    def _create_exportable_tensor(
        self, context: MLContext, descriptor: Mapping[str, Any], _device: None, usage: int
    ) -> MLPromise[MLBuffer]:
        """The device is in the script's process, whose bindings know it."""
        return create_exported_elsewhere(
            context,
            data_type=descriptor["dataType"],
            shape=descriptor["shape"],
            readable=descriptor["readable"],
            writable=descriptor["writable"],
            usage=usage,
        )

    def _end_export(self, buffer: MLBuffer) -> int | None:
        """Return the number by which the contents are to come; None for a tensor that is destroyed."""
        arrival = end_copy(buffer)
        if arrival is None:
            return None
        number = next(self._arrival_numbers)
        self._arrivals[number] = arrival
        return number

    def _return_contents(self, _buffer: MLBuffer, number: int, source: BufferSource, failure: str | None) -> None:
        arrival = self._arrivals.get(number)
        if arrival is None:  # nothing waits any more: the context is lost
            return
        if failure is not None:
            arrival.fail(failure)
        else:
            deliver(arrival, source.array())

    def _create_constant_tensor(
        self, context: MLContext, descriptor: Mapping[str, Any], source: BufferSource
    ) -> MLPromise[MLBuffer]:
        data_type, shape = descriptor["dataType"], descriptor["shape"]
        return context.create_constant_buffer(source.array(), data_type=data_type, shape=shape)

    def _read_tensor(self, context: MLContext, buffer: MLBuffer, target: BufferSource | None = None) -> Any:
        """The script's own buffer is filled by its bindings; here another of its kind is checked, and read over."""
        if target is None:
            return context.read_buffer(buffer)
        try:
            out = self._array(target, buffer.data_type)
        except TypeError as error:
            return MLPromise.refused(TypeError(f"readTensor(): {error}"))
        length = buffer.storage.descriptor.byte_length
        if self._mode.larger_output and out.nbytes > length:
            out = out.view(np.uint8)[:length]
        return Converted(context.read_buffer(buffer, out=out), lambda _none: out)

    def _write_tensor(self, context: MLContext, buffer: MLBuffer, source: BufferSource) -> None:
        context.write_buffer(buffer, self._array(source, buffer.data_type))

    def _array(self, source: BufferSource, data_type: str) -> Any:
        unsigned = self._mode.unsigned_view and (source.view, data_type) == ("Uint32Array", "int32")
        return source.array(any_view=unsigned or (self._mode.any_view and not source.is_of(data_type)))

    def _dispatch(
        self, context: MLContext, graph: MLGraph, inputs: Mapping[str, MLBuffer], outputs: Mapping[str, MLBuffer]
    ) -> None:
        names = self._graph_names.get(graph, {})
        context.dispatch(graph, {names.get(name, name): buffer for name, buffer in inputs.items()}, outputs)

    def _op_support_limits(self, context: MLContext) -> dict[str, Any]:
        return self._limits_for_script(context.op_support_limits())

    def _limits_for_script(self, of_python: Mapping[str, Any]) -> dict[str, Any]:
        limits = {}
        for name, value in of_python.items():
            if name in _TOP_LIMITS:
                limits[_TOP_LIMITS[name]] = _limits(value) if isinstance(value, dict) else value
                continue
            operator = OPERATORS[name]
            members = {spec_name_of(member): _limits(row) for member, row in value.items()}
            if self._mode.outputs_limits and "output0" in members:
                members["outputs"] = members["output0"]
            limits[operator.spec_name] = members
        return limits

    # --- MLGraphBuilder ----------------------------------------------------------------------------------------

    def _input(self, builder: MLGraphBuilder, name: str, descriptor: Mapping[str, Any]) -> MLOperand:
        known = self._names.setdefault(builder, {})
        repeated = self._mode.repeated_input_names and name in known
        own = f"{name}\0{len(known)}" if repeated else name
        operand = builder.input(own, data_type=descriptor["dataType"], shape=descriptor["shape"])
        known[own] = name
        return operand

    def _constant(self, builder: MLGraphBuilder, first: Any, second: Any = None) -> MLOperand:
        if isinstance(first, MLBuffer):
            return builder.constant(first)
        if isinstance(first, str):
            return builder.constant(second, data_type=cast("MLOperandDataType", first))
        data_type, shape = first["dataType"], first["shape"]
        return builder.constant(second.array(), data_type=data_type, shape=shape)

    def _build(self, builder: MLGraphBuilder, outputs: Mapping[str, MLOperand]) -> Any:
        promise = builder.build(
            outputs, keep_source=self._saved is not None and self._saved.needs_source(builder.context)
        )
        names = self._names.get(builder, {})
        if any(own != name for own, name in names.items()):
            promise.on_settled(lambda: self._remember(promise, names))
        return promise

    def _remember(self, promise: MLPromise[MLGraph], names: Names) -> None:
        if promise.state == "fulfilled":
            graph = cast("MLGraph", promise.outcome)
            self._graph_names[graph] = {names[own]: own for own in graph.input_descriptors}

    def _operator(self, builder: MLGraphBuilder, operator: Operator[..., Any], arguments: list[Any]) -> Any:
        member = operator.spec_name
        *given, options = arguments
        required = [parameter for parameter in operator.parameters.values() if parameter.required]
        values = {parameter.name: value for parameter, value in zip(required, given, strict=False)}
        if self._mode.scale_of_lower_rank and member.endswith("antizeLinear"):
            _align(builder, values)
        if self._mode.symmetric_padding and member == "pad" and options.get("mode") == "symmetric":
            return _pad_symmetrically(builder, **values, label=options["label"])
        self._refuse_more(member, values, options)
        if "axis" not in values and member == "softmax":
            values["axis"] = 1
        names = {parameter.spec_name: parameter.name for parameter in operator.parameters.values()}
        names["label"] = "label"
        for name, value in options.items():
            keyword = names.get(OPTION_NAMES.get(name, name))
            if keyword is None:
                raise NotSupportedError(f"{member}() [{options['label']}]: the IDL has {name}, and webnn_py does not")
            values[keyword] = value
        return getattr(builder, operator.name)(**values)

    def _refuse_more(self, member: str, values: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """Refuse calls that the text allows and the compatibility mode does not."""
        start = f"{member}() [{options['label']}]"
        if self._mode.scalar_padding_refused and member == "pad" and values["input"].rank == 0:
            raise TypeError(f"{start}: the input is a scalar; it must have a dimension to pad")
        if self._mode.infinite_minimum_refused and member == "clamp" and options.get("minValue") == -np.inf:
            raise TypeError(f"{start}: minValue is -Infinity; it must be finite")
        if member == "softmax" and "axis" not in values and values["input"].rank != 2:
            raise TypeError(f"{start}: without axis the input must have two dimensions")


def _build_subgraph(builder: MLGraphBuilder, outputs: Mapping[str, MLOperand], options: Mapping[str, Any]) -> object:
    return build_subgraph(
        builder, outputs, name=options["name"], inputs=options["inputs"], config=options.get("config")
    )


def _subgraph(
    builder: MLGraphBuilder, definition: Any, operands: Mapping[str, MLOperand], options: Mapping[str, Any]
) -> list[tuple[str, MLOperand]]:
    return list(subgraph(builder, definition, operands, label=options["label"]).items())


def _limits(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"dataTypes": row["data_types"], "rankRange": row["rank_range"]}


def _align(builder: Any, values: dict[str, Any]) -> None:
    """Give ``scale`` and ``zero_point`` the input's rank, by dimensions of 1 in front."""
    rank = values["input"].rank
    for name in ("scale", "zero_point"):
        operand = values[name]
        if operand.rank < rank:
            shape = [1] * (rank - operand.rank) + list(operand.shape)
            if operand.data_type in FOUR_BITS:  # which only constants are, and nothing reshapes
                constant = builder.value_of(operand)
                values[name] = builder.constant(constant.data, data_type=operand.data_type, shape=shape)
            else:
                values[name] = builder.reshape(operand, shape)


def _pad_symmetrically(
    builder: Any, input: MLOperand, beginning_padding: list[int], ending_padding: list[int], label: str
) -> MLOperand:
    """Repeat the elements at the edges in reverse order, the edge included: one gather an axis."""
    result = input
    for axis, (before, after) in enumerate(zip(beginning_padding, ending_padding, strict=True)):
        size = input.shape[axis]
        indices = np.pad(np.arange(size, dtype=np.int32), (before, after), mode="symmetric")
        result = builder.gather(result, builder.constant(indices), axis=axis, label=label)
    return result
