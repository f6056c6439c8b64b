"""The models of sessions: an ONNX model, or a graph that a user has built."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np
import trio

from webnn_py.checking import NonFinite, check_finite
from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.descriptors import converted, sequence_of, size_or_axis, string
from webnn_py.core.device.backend import HostArray
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.message_text import in_brackets, listed, nearest, shown
from webnn_py.core.operators.operand import MLOperand
from webnn_py.extras import install_command
from webnn_py.runtime.contexts import OpenContext, received
from webnn_py.runtime.graph_cache import graph_key, loaded_or_built, saved_graphs_of
from webnn_py.runtime.records import TensorDescriptor

if TYPE_CHECKING:
    from webnn_py.onnx_models import OnnxModel

Progress = Callable[[int, int], None]
"""Called with the number of nodes that are converted, and of all."""


@final
class BuiltGraph:
    """A user's graph: it stays the user's, and is not destroyed."""

    sizes: Mapping[str, int] = {}

    def __init__(self, graph: MLGraph) -> None:
        self._graph = graph
        self.inputs = {name: TensorDescriptor(d.data_type, d.shape) for name, d in graph.input_descriptors.items()}
        self.outputs = {name: TensorDescriptor(d.data_type, d.shape) for name, d in graph.output_descriptors.items()}

    async def graph(
        self, opened: OpenContext, shapes: Mapping[str, tuple[int, ...]], progress: Progress | None
    ) -> MLGraph:
        """Return the graph itself.

        Raises:
            TypeError: it is another context's.
            InvalidStateError: it is destroyed.
        """
        await trio.lowlevel.checkpoint()
        if self._graph.context is not opened.context:
            other = f"another context{in_brackets(self._graph.context.label)}"
            raise TypeError(
                f"create_session(): {self._graph!r} belongs to {other} than the environment's; build it on "
                "env.device.context, or make the Environment with context="
            )
        self._graph.check_usable("create_session")
        return self._graph

    async def check_finite(
        self, opened: OpenContext, shapes: Mapping[str, tuple[int, ...]], feeds: Mapping[str, HostArray]
    ) -> NonFinite | None:
        """Refuse.

        Raises:
            NotSupportedError: always.
        """
        await trio.lowlevel.checkpoint()
        raise NotSupportedError(
            "check_finite(): the session runs a graph that was built by the user, which has no nodes any more; call "
            "webnn_py.checking.check_finite(outputs, feeds) before build()"
        )

    def release(self, graph: MLGraph) -> None:
        """Do nothing: the graph is the user's."""


class DrawnModel(ABC):
    """A model whose graphs are drawn by a builder, compiled, and kept in the environment's graph cache.

    Attributes:
        inputs: its inputs by name; dimensions that are strings are bound by the feeds.
        outputs: its outputs by name.
        sizes: the sizes of symbolic dimensions that are known; none by default.
    """

    inputs: Mapping[str, TensorDescriptor]
    outputs: Mapping[str, TensorDescriptor]
    sizes: Mapping[str, int] = {}

    @abstractmethod
    async def _drawn(
        self, builder: MLGraphBuilder, shapes: Mapping[str, tuple[int, ...]], progress: Progress | None
    ) -> dict[str, MLOperand]:
        """Draw the outputs for shapes of the inputs that the model leaves open."""

    @abstractmethod
    def _key(self, shapes: Mapping[str, tuple[int, ...]], experimental: Collection[str]) -> str:
        """Return the key of a graph in graph caches; runs in a worker thread."""

    async def graph(
        self, opened: OpenContext, shapes: Mapping[str, tuple[int, ...]], progress: Progress | None
    ) -> MLGraph:
        """Load the graph from the environment's graph cache, or draw, compile and save it.

        Raises:
            UnsupportedModelError: WebNN, or the importer, cannot do something that the model asks for.
            NotSupportedError, ValueError: shapes or values do not fit the model.
            OperationError: the device cannot compile it.
            InvalidStateError: the context is lost.
        """
        saved = saved_graphs_of(opened)
        if saved is None:
            return await self._built(opened, shapes, progress)
        key = await trio.to_thread.run_sync(self._key, shapes, opened.context.experimental)
        build = partial(self._built, opened, shapes, progress, keep_source=saved.needs_source(opened.context))
        return await loaded_or_built(saved, opened.context, key, build)

    async def _built(
        self,
        opened: OpenContext,
        shapes: Mapping[str, tuple[int, ...]],
        progress: Progress | None,
        *,
        keep_source: bool = False,
    ) -> MLGraph:
        builder = MLGraphBuilder(opened.context)
        try:
            outputs = await self._drawn(builder, shapes, progress)
            return await received(builder.build(outputs, keep_source=keep_source))
        finally:
            builder.destroy()

    async def check_finite(
        self, opened: OpenContext, shapes: Mapping[str, tuple[int, ...]], feeds: Mapping[str, HostArray]
    ) -> NonFinite | None:
        """Draw the graph again, and compute its nodes one after the other.

        Raises:
            UnsupportedModelError, NotSupportedError, ValueError: as :meth:`graph`.
            InvalidStateError: the context is lost.
            UnknownError: the device failed.
        """
        builder = MLGraphBuilder(opened.context)
        try:
            return await check_finite(await self._drawn(builder, shapes, None), feeds)
        finally:
            builder.destroy()

    def release(self, graph: MLGraph) -> None:
        """Destroy it."""
        graph.destroy()


@final
class OnnxSource(DrawnModel):
    """An ONNX model, with values for some of its inputs, and sizes for some of its dimensions.

    Attributes:
        inputs: its inputs by name, frozen ones left out.
        outputs: its outputs by name.
        sizes: the sizes of symbolic dimensions that are known.
    """

    def __init__(
        self,
        model: OnnxModel,
        free_dimensions: Mapping[str, int],
        input_values: Mapping[str, np.ndarray[Any, Any]],
        output_names: Iterable[str] | None,
    ) -> None:
        infos = {**model.inputs, **model.overridable}
        declared = {name: TensorDescriptor(info.data_type, info.shape) for name, info in infos.items()}
        unknown = input_values.keys() - declared.keys()
        if unknown:
            raise _unknown("input_values has", unknown, "the inputs are", model.inputs)
        self._model = model
        self._values = {name: np.asarray(value) for name, value in input_values.items()}
        self.sizes = _sizes(declared, free_dimensions, self._values)
        self.inputs = {name: _sized(declared[name], self.sizes) for name in model.inputs if name not in self._values}
        wanted = list(model.outputs if output_names is None else output_names)
        if not wanted or not set(wanted) <= model.outputs.keys():
            unknown = set(wanted) - model.outputs.keys()
            raise _unknown("output_names is", unknown, "the outputs are", model.outputs)
        self.outputs = {
            name: _sized(TensorDescriptor(info.data_type, info.shape), self.sizes)
            for name, info in model.outputs.items()
            if name in wanted
        }

    def _key(self, shapes: Mapping[str, tuple[int, ...]], experimental: Collection[str]) -> str:
        return graph_key(self._model, self._shapes(shapes), self._values, tuple(self.outputs), experimental)

    def _shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all inputs, for those of the open ones."""
        return {**{name: item.fixed_shape for name, item in self.inputs.items() if item.is_fixed}, **shapes}

    async def _drawn(
        self, builder: MLGraphBuilder, shapes: Mapping[str, tuple[int, ...]], progress: Progress | None
    ) -> dict[str, MLOperand]:
        from webnn_py.onnx_models import UnsupportedModelError  # noqa: PLC0415 - an extra

        try:
            return await self._model.convert_in_steps(
                builder, self._shapes(shapes), self._values, outputs=self.outputs, progress=progress
            )
        except UnsupportedModelError as error:  # in words of create_session()
            problems = [
                attrs.evolve(problem, way_out=problem.way_out.replace("by outputs", "by output_names"))
                for problem in error.problems
            ]
            raise UnsupportedModelError(problems) from None


Model = BuiltGraph | DrawnModel
"""A model, ready for a session."""


async def load_model(
    model: object,
    free_dimensions: Mapping[str, int] | None,
    input_values: Mapping[str, Any] | None,
    output_names: Iterable[str] | None,
) -> Model:
    """Make a session's model of what the user gave; files are read in a worker thread.

    Raises:
        TypeError: that is no model, or the options do not fit it.
        ValueError: the file is no ONNX model.
        OSError: it cannot be read.
        ImportError: it is ONNX, and the extra ``onnx`` is not installed.
    """
    sizes = _checked_sizes({} if free_dimensions is None else free_dimensions)
    values = {} if input_values is None else input_values
    if not isinstance(values, Mapping):
        raise TypeError(f"create_session(): input_values is {shown(values)}; it must be a mapping of names to arrays")
    if output_names is not None:
        output_names = converted("create_session(): output_names", _names, output_names)
    if isinstance(model, MLGraph):
        if sizes or values or output_names is not None:
            raise TypeError(
                "create_session(): free_dimensions, input_values and output_names are for ONNX models, not for a graph"
            )
        await trio.lowlevel.checkpoint()
        return BuiltGraph(model)
    loaded = await trio.to_thread.run_sync(_onnx_model, model)
    return OnnxSource(loaded, sizes, values, output_names)


def _onnx_model(model: object) -> OnnxModel:
    """An ONNX model, which is loaded from a file or bytes; runs in a worker thread, as importing takes its time too."""
    try:
        from webnn_py.onnx_models import OnnxModel  # noqa: PLC0415 - an extra, imported when a model needs it
    except ImportError as error:
        raise ImportError(f"create_session(): ONNX models need more: {install_command('onnx')} ({error})") from error
    if isinstance(model, (str, os.PathLike, bytes)):
        model = OnnxModel.load(model)
    elif not isinstance(model, OnnxModel):
        raise TypeError(
            f"create_session(): model is {type(model).__name__}; it must be the path or the bytes of an ONNX model, an "
            "OnnxModel or an MLGraph"
        )
    model.read_weights()
    return model


def _names(value: object) -> tuple[str, ...]:
    return sequence_of(value, string, "names of outputs")


def _checked_sizes(free_dimensions: Mapping[str, int]) -> dict[str, int]:
    if not isinstance(free_dimensions, Mapping):
        raise TypeError(
            f"create_session(): free_dimensions is {shown(free_dimensions)}; it must be a mapping of names to sizes"
        )
    sizes = {}
    for name, size in free_dimensions.items():
        what = f"create_session(): free_dimensions[{shown(name)}]"
        sizes[name] = converted(what, size_or_axis, size)
        if not sizes[name]:
            raise TypeError(f"{what} is 0; it must be at least 1")
    return sizes


def _sizes(
    declared: Mapping[str, TensorDescriptor], given: Mapping[str, int], values: Mapping[str, np.ndarray[Any, Any]]
) -> dict[str, int]:
    """Return the sizes that names of dimensions stand for: those given, and those of inputs that have a value."""
    names = {size for item in declared.values() for size in item.shape or () if isinstance(size, str)} - {"?"}
    unknown = given.keys() - names
    if unknown:
        raise _unknown("free_dimensions has", unknown, "the model's inputs have", sorted(names))
    sizes = dict(given)
    for name, value in values.items():
        shape = declared[name].shape
        for size, own in zip(shape or (), value.shape, strict=False):
            if isinstance(size, str) and size != "?" and sizes.setdefault(size, own) != own:
                raise TypeError(
                    f"create_session(): input_values[{shown(name)}] is of shape {list(value.shape)}; {size!r} is "
                    f"{sizes[size]}"
                )
    return sizes


def _sized(item: TensorDescriptor, sizes: Mapping[str, int]) -> TensorDescriptor:
    """Return a descriptor with known sizes in the place of their names."""
    if item.shape is None:
        return item
    shape = tuple(sizes.get(size, size) if isinstance(size, str) else size for size in item.shape)
    return TensorDescriptor(item.data_type, shape)


def _unknown(option: str, unknown: Iterable[object], there: str, known: Iterable[str]) -> TypeError:
    """Return the refusal of an option that has names which the model lacks, or none at all."""
    names = sorted(unknown, key=str)
    guess = nearest(names[0], known) if names else ""
    return TypeError(f"create_session(): {option} {listed(names)}; {there} {list(known) or 'none'}{guess}")
