"""Dynamic shapes: graphs whose dimensions have names, and which are compiled for each set of sizes.

``open_ml(extensions=[DynamicShapes()])``: an input may have a :class:`Dimension` in its shape, whose name then stands
for its size in the arguments of operators. The graph keeps its recipe, operators with these arguments. A dispatch of
new sizes replays them with numbers, by the operators' own shape rules, compiles, and keeps the graph; those that were
used the longest ago go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.descriptors import MAX_DIMENSION, MLOperandDescriptor, check_dimensions
from webnn_py.core.device.backend import Capabilities
from webnn_py.core.device.device import GraphHandle
from webnn_py.core.errors import NotSupportedError, UnknownError
from webnn_py.core.extension import Compile, Extension, LeafT, Variant, compile_step
from webnn_py.core.graph import Constant, ContentKey, Graph, Input, Node, Output, Value
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.core.in_flight import done
from webnn_py.core.message_text import device_text, in_brackets, listed, shown
from webnn_py.core.operators.declaration import Operator, of_operands
from webnn_py.core.operators.rules import Refused
from webnn_py.core.timelines.promise import MLPromise

NAMING: Final = {"beginning_padding", "ending_padding", "new_shape", "output_sizes", "repetitions"} | {
    *("sizes", "splits", "starts", "steps")
}
"""The parameters of operators in which names, and functions of sizes, stand for numbers."""

Sizes = Mapping[str, int]


@attrs.frozen
class Dimension:
    """A dimension of inputs that has a name; equal names are equal sizes.

    Attributes:
        name: not empty.
        example: the size for which ``build()`` checks and compiles.
        min_size: the least size that a dispatch may have.
        max_size: the greatest.

    Raises:
        TypeError: the name is no text, or not 1 ≤ min_size ≤ example ≤ max_size < 2³¹.
    """

    name: str
    example: int
    min_size: int = 1
    max_size: int = MAX_DIMENSION

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"Dimension(): name is {shown(self.name)}; it must be a text that is not empty")
        sizes = self.min_size, self.example, self.max_size
        if not all(type(size) is int for size in sizes) or not 1 <= sizes[0] <= sizes[1] <= sizes[2] <= MAX_DIMENSION:
            raise TypeError(
                f"Dimension() {shown(self.name)}: min_size, example, max_size are {listed(sizes)}; they must be "
                f"integers from 1 to {MAX_DIMENSION}, in this order"
            )


class _Size(int):
    """A size of the examples that depends on a named dimension: numbers computed from it are none for other sizes."""

    __slots__ = ()


def _computed(name: str) -> Callable[..., Any]:
    compute: Callable[..., Any] = getattr(int, name)

    def method(*numbers: int) -> Any:
        result = compute(*numbers)
        return _Size(result) if type(result) is int else result

    return method


for _name in "add sub mul floordiv mod pow radd rsub rmul rfloordiv rmod neg abs".split():  # noqa: SIM905 - one line
    setattr(_Size, f"__{_name}__", _computed(f"__{_name}__"))


def _depends(descriptor: MLOperandDescriptor) -> bool:
    return any(type(size) is _Size for size in descriptor.shape)


def _marked(descriptor: MLOperandDescriptor, which: Iterable[object]) -> MLOperandDescriptor:
    """Return a descriptor whose sizes, or those that are so marked, say that they are examples."""
    marked = MLOperandDescriptor(descriptor.data_type, descriptor.shape)
    shape = tuple(_Size(size) if one else int(size) for size, one in zip(descriptor.shape, which, strict=True))
    object.__setattr__(marked, "shape", shape)  # whose converter would make plain numbers of them
    return marked


@attrs.frozen
class Figures:
    """Counts of a graph with named dimensions.

    Attributes:
        kept: the compiled graphs that are kept beside the one for the examples.
        made: how many were made for new sizes.
        seconds: the time that the last new sizes took on the device timeline; None before the first are compiled.
    """

    kept: int
    made: int
    seconds: float | None


# --- the recipe --------------------------------------------------------------------------------------------------


@attrs.define
class _NamedDimensions:
    """The named dimensions of one builder, and where their names are.

    Attributes:
        dimensions: by name.
        axes: for each input with named dimensions, the name of each axis; None for a number.
        named: for each operator with names among its arguments, these arguments.
        shape: the names of the axes of the input that is being made.
        call: the operator that is being added, and its arguments with names.
    """

    dimensions: dict[str, Dimension] = attrs.field(factory=dict)
    axes: dict[Input, tuple[str | None, ...]] = attrs.field(factory=dict)
    named: dict[Node, dict[str, object]] = attrs.field(factory=dict)
    shape: tuple[str | None, ...] = ()
    call: tuple[Operator[..., Any] | None, dict[str, object]] = (None, {})

    def examples(self) -> dict[str, int]:
        return {name: dimension.example for name, dimension in self.dimensions.items()}

    def take_shape(self, shape: object) -> object:
        """Return the shape of an input in numbers, and remember the names."""
        self.shape = ()
        if not isinstance(shape, list | tuple):
            return shape
        for item in shape:
            if isinstance(item, Dimension) and self.dimensions.setdefault(item.name, item) != item:
                known = self.dimensions[item.name]
                raise TypeError(
                    f"input(): shape has {item}; equal names are one dimension, and another input has {known}"
                )
        names = [item.name if isinstance(item, Dimension) else item for item in shape]
        self.shape = tuple(item if isinstance(item, str) else None for item in names)
        return _in_numbers("input(): shape", names, self.examples())


@attrs.frozen(eq=False)
class _Recipe:
    """A graph whose operators can be replayed."""

    graph: Graph
    drawing: _NamedDimensions
    capabilities: Capabilities

    def examples(self) -> dict[str, int]:
        """Return the sizes of the examples, of the dimensions of the graph's inputs alone."""
        axes = (self.drawing.axes.get(value, ()) for value in self.graph.inputs.values())
        return {name: self.drawing.dimensions[name].example for each in axes for name in each if name is not None}

    def sizes_of(self, shapes: Mapping[str, Sequence[int]], method: str) -> dict[str, int]:
        """Return the sizes of the dimensions that inputs of these shapes have.

        Raises:
            TypeError: the inputs are others, or one is not of the sizes that it must have.
        """
        if shapes.keys() != self.graph.inputs.keys():
            raise TypeError(
                f"{method}(): inputs are {listed([*shapes])}; the graph's are {listed([*self.graph.inputs])}"
            )
        sizes: dict[str, int] = {}
        for name, value in self.graph.inputs.items():
            shape, known = shapes[name], value.descriptor.shape
            where = f"{method}(): inputs[{shown(name)}] is {listed(shape)}"
            if len(shape) != len(known):
                raise TypeError(f"{where}; its rank must be {len(known)}")
            axes = self.drawing.axes.get(value, (None,) * len(known))
            for axis, (dimension, size) in enumerate(zip(axes, shape, strict=True)):
                least, most = self._bounds(dimension, known[axis], sizes)
                if not least <= size <= most:
                    which = f"dimension {axis}" if dimension is None else f"dimension {axis}, {shown(dimension)},"
                    must = f"{least}" if least == most else f"from {least} to {most}"
                    raise TypeError(f"{where}; {which} must be {must}")
                if dimension is not None:
                    sizes[dimension] = size
        return sizes

    def _bounds(self, name: str | None, fixed: int, sizes: Sizes) -> tuple[int, int]:
        if name is None or name in sizes:
            size = fixed if name is None else sizes[name]
            return size, size
        return self.drawing.dimensions[name].min_size, self.drawing.dimensions[name].max_size

    def replayed(self, sizes: Sizes, method: str) -> Graph:
        """Return the graph of some sizes.

        Raises:
            TypeError: an operator refuses them.
        """
        values: dict[Value, Value] = {}
        inputs = dict(self.graph.inputs)
        for name, value in self.graph.inputs.items():
            if (axes := self.drawing.axes.get(value)) is not None:
                pairs = zip(axes, value.descriptor.shape, strict=True)
                shape = tuple(int(size) if axis is None else sizes[axis] for axis, size in pairs)
                values[value] = inputs[name] = Input(MLOperandDescriptor(value.descriptor.data_type, shape), value.name)
        nodes = [self._replay(node, values, sizes, method) for node in self.graph.nodes]
        return Graph(
            inputs, {name: values.get(value, value) for name, value in self.graph.outputs.items()}, tuple(nodes)
        )

    def _replay(self, node: Node, values: dict[Value, Value], sizes: Sizes, method: str) -> Node:
        raw = self.drawing.named.get(node, {})
        if not raw and not any(value in values for value in node.inputs):
            return node
        builder = RewriteBuilder(node.label, node.drawn)
        operands = of_operands(node.operands, lambda value: builder.operand(values.get(value, value)))
        where = f"{node.operator.name}(){in_brackets(node.label)}"
        try:
            named = {name: _in_numbers(name, item, sizes) for name, item in raw.items()}
            drawn = builder.append(node.operator, **{**operands, **node.options, **named})
            results = [builder.value(item) for item in (drawn if isinstance(drawn, list) else [drawn])]
            self._check_dimensions(results)
        except (Refused, TypeError) as error:
            where = f"{method}(): the graph is none where {_worded(sizes)}: {where}"
            raise TypeError(f"{where}: {error}") from None
        values.update(zip(node.results, results, strict=True))
        first = results[0]
        assert isinstance(first, Output)  # noqa: S101 - what an operator gives
        return first.node

    def _check_dimensions(self, results: Iterable[Value]) -> None:
        most = {"max_rank": self.capabilities.max_rank, "max_byte_length": self.capabilities.max_byte_length}
        for problem in (check_dimensions(result.descriptor, **most) for result in results):
            if problem is not None:
                raise Refused(problem)


def _worded(sizes: Sizes) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def _has(item: object, test: Callable[[object], bool]) -> bool:
    return any(_has(each, test) for each in item) if isinstance(item, list | tuple) else test(item)


def _is_named(item: object) -> bool:
    return isinstance(item, str | Dimension) or callable(item)


def _in_numbers(where: str, item: object, sizes: Sizes) -> object:
    """Return an argument with sizes in the place of names and functions.

    Raises:
        TypeError: a name is unknown, or a function fails.
    """
    if isinstance(item, list | tuple):
        return [_in_numbers(f"{where}[{index}]", each, sizes) for index, each in enumerate(item)]
    if isinstance(item, Dimension):
        item = item.name
    if isinstance(item, str):
        if item not in sizes:
            raise TypeError(f"{where} is {shown(item)}; it must be a number, or one of the names {listed([*sizes])}")
        return sizes[item]
    if callable(item):
        try:
            return item(dict(sizes))
        except Exception as error:
            raise TypeError(f"{where} is a function that fails where {_worded(sizes)}: {error!r}") from error
    return item


# --- compiled graphs ---------------------------------------------------------------------------------------------


class _Variants:
    """The compiled graphs of a graph with named dimensions, which are released with it."""

    def __init__(self, recipe: _Recipe, most: int) -> None:
        self.recipe = recipe
        self.kept: OrderedDict[tuple[int, ...], Variant] = OrderedDict()
        self.made = 0
        self.seconds: float | None = None
        self._most = most

    def handles(self) -> list[GraphHandle]:
        """Return those of all that are kept."""
        return [variant.handle for variant in self.kept.values()]

    def variant(self, graph: MLGraph, sizes: Sizes) -> Variant:
        """Return the compiled graph of some sizes, which may still have to be compiled on the device timeline."""
        key = tuple(sizes.values())
        variant = self.kept.get(key)
        if variant is None:
            source = self.recipe.replayed(sizes, "dispatch")
            inputs, outputs = (
                {name: each.descriptor for name, each in end.items()} for end in (source.inputs, source.outputs)
            )
            variant = self.kept[key] = Variant(GraphHandle(graph.label), inputs, outputs)
            self.made += 1
            step = partial(compile_step(graph, source), source)
            _made: MLPromise[None] = graph.context.enqueue("build", partial(self._compile, variant, step, sizes))
            if len(self.kept) > self._most:
                _, oldest = self.kept.popitem(last=False)
                release = partial(graph.context.device.release_graph, oldest.handle)
                graph.context.enqueue("release", release, abortable=False)
        self.kept.move_to_end(key)
        return variant

    async def _compile(self, variant: Variant, step: Callable[..., Any], sizes: Sizes) -> None:
        begin = perf_counter()
        try:
            await done(step(variant.handle, None))
        except Exception as error:  # noqa: BLE001 - reads of what it should have computed report it
            why = f"the graph for {_worded(sizes)} cannot be compiled: {device_text(error)}"
            variant.handle.failure = UnknownError(why)
            if self.kept.get(tuple(sizes.values())) is variant:  # it is tried again by the next dispatch
                del self.kept[tuple(sizes.values())]
        self.seconds = perf_counter() - begin


# --- the extension, and its functions ----------------------------------------------------------------------------


class DynamicShapes(Extension):
    """The extension.

    Args:
        variants: how many compiled graphs each graph keeps beside the one for the examples.

    Raises:
        TypeError: it is no integer of 1 or more.
    """

    name = "dynamic-shapes"
    sees_all = True

    def __init__(self, variants: int = 8) -> None:
        if type(variants) is not int or variants < 1:
            raise TypeError(f"DynamicShapes(): variants is {shown(variants)}; it must be an integer of at least 1")
        self._most = variants
        self._drawings: WeakKeyDictionary[MLGraphBuilder, _NamedDimensions] = WeakKeyDictionary()
        self._recipes: WeakKeyDictionary[Graph, _Recipe] = WeakKeyDictionary()

    def arguments(
        self, builder: MLGraphBuilder, called: Operator[..., Any] | str, given: dict[str, Any]
    ) -> dict[str, Any]:
        """Put the sizes of the examples in the place of names, and refuse numbers that were computed from them."""
        drawing = self._drawings.setdefault(builder, _NamedDimensions())
        method = called if isinstance(called, str) else called.name
        if called == "input":
            given = {**given, "shape": drawing.take_shape(given["shape"])}
        elif called == "constant":
            if _has(given["shape"], _is_named):
                raise TypeError(f"constant(): shape is {shown(given['shape'])}; constants have no named dimensions")
        elif isinstance(called, Operator):
            raw = {name: item for name, item in given.items() if name in NAMING and _has(item, _is_named)}
            drawing.call = called, raw
            examples = drawing.examples()
            given = {**given, **{name: _in_numbers(f"{method}(): {name}", raw[name], examples) for name in raw}}
        for name, item in given.items():
            if _has(item, lambda each: type(each) is _Size):
                raise TypeError(
                    f"{method}(): {name} is {shown(item)}, computed from a shape of the examples, which other sizes "
                    'have not; give a name, as "n", or a function of the sizes, as lambda sizes: sizes["n"] - 3'
                )
        return given

    def leaf(self, builder: MLGraphBuilder, value: LeafT) -> LeafT:
        """Remember the names of an input's dimensions, and let variants share constants."""
        made: Any = value
        drawing = self._drawings.setdefault(builder, _NamedDimensions())
        if isinstance(value, Constant):
            if value.key is None and isinstance(value.data, np.ndarray):
                made = Constant(value.descriptor, value.data, ContentKey(value.data))  # all variants have it once
        elif any(drawing.shape):
            made = Input(_marked(value.descriptor, drawing.shape), value.name)
            drawing.axes[made], drawing.shape = drawing.shape, ()
        return cast("LeafT", made)

    def node(self, builder: MLGraphBuilder, node: Node) -> Node:
        """Remember the names among an operator's arguments."""
        drawing = self._drawings.setdefault(builder, _NamedDimensions())
        (operator, raw), drawing.call = drawing.call, (None, {})
        for body in node.options.values():
            if isinstance(body, Graph) and (
                not drawing.axes.keys().isdisjoint(body.inputs.values())
                or not drawing.named.keys().isdisjoint(body.nodes)
            ):
                raise NotSupportedError(
                    f"{node.operator.name}(){in_brackets(node.label)}: its body has named dimensions"
                )
        raw = raw if operator is node.operator else {}
        if raw or any(_depends(value.descriptor) for value in node.inputs):
            marked = tuple(_marked(each, [True] * each.rank) for each in node.outputs)
            node = Node(node.operator, node.operands, node.options, marked, node.label, node.drawn)
        if raw:
            drawing.named[node] = raw
        return node

    def graph(self, builder: MLGraphBuilder, method: str, graph: Graph) -> Graph:
        """Return the graph of the examples; what has no named dimensions stays as it is."""
        drawing = self._drawings.get(builder)
        if drawing is None or not (
            any(value in drawing.axes for value in graph.inputs.values())
            or any(node in drawing.named for node in graph.nodes)
        ):
            return graph
        recipe = _Recipe(graph, drawing, builder.context.device.backend.capabilities)
        replayed = recipe.replayed(recipe.examples(), method)
        self._recipes[replayed] = recipe
        return replayed

    def compile(self, graph: MLGraph, source: Graph, step: Compile) -> Compile:
        """Keep the recipe of a graph with named dimensions."""
        if (recipe := self._recipes.pop(source, None)) is not None:
            graph.attached.append(_Variants(recipe, self._most))
        return step

    def dispatch(self, graph: MLGraph, inputs: Mapping[str, MLOperandDescriptor]) -> Variant | None:
        """Return the graph for the sizes of the inputs, made where they are new."""
        variants = _variants_of(graph)
        if variants is None:
            return None
        sizes = variants.recipe.sizes_of({name: each.shape for name, each in inputs.items()}, "dispatch")
        return None if sizes == variants.recipe.examples() else variants.variant(graph, sizes)


def _variants_of(graph: MLGraph) -> _Variants | None:
    return next((each for each in graph.attached if isinstance(each, _Variants)), None)


def figures(graph: MLGraph) -> Figures:
    """Return how many compiled graphs a graph with named dimensions has, and the time of the last; zero for others."""
    variants = _variants_of(graph)
    return Figures(0, 0, None) if variants is None else Figures(len(variants.kept), variants.made, variants.seconds)


def compute_shapes(graph: MLGraph, input_shapes: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a graph's outputs for shapes of its inputs, without a dispatch.

    Raises:
        TypeError: a dispatch would refuse these shapes.
        InvalidStateError: the graph is destroyed, or the context is lost.
        NotSupportedError: the graph has no named dimensions.
    """
    graph.check_usable("compute_shapes")
    variants = _variants_of(graph)
    if variants is None:
        raise NotSupportedError("compute_shapes(): the graph has no named dimensions; see graph.output_descriptors")
    recipe = variants.recipe
    replayed = recipe.replayed(recipe.sizes_of(input_shapes, "compute_shapes"), "compute_shapes")
    return {name: value.descriptor.shape for name, value in replayed.outputs.items()}
