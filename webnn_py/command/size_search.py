"""Sizes for open dimensions at which a model can be imported, found by trying."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np
import trio

from webnn_py.command.declared import Array, AskedInputs, OpenSize, as_options
from webnn_py.command.failures import BadInputError
from webnn_py.command.progress import bar
from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.ml import open_ml
from webnn_py.core.errors import leaves
from webnn_py.runtime import Environment

if TYPE_CHECKING:
    from onnx import ModelProto

    from webnn_py import MLOperand
    from webnn_py.onnx_models import OnnxModel, Problem, UnsupportedModelError

MOST_TRIES: Final = 100
MOST_SECONDS: Final = 20.0
"""The limits of the search, whichever ends it first; one try is always made."""

MOST_ALIKE: Final = 12
"""After so many tries in a row with the same reasons, sizes are not the reason."""

LENGTHS: Final = (32, 64, 1, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)

FRAMES: Final = ((48, 320), (32, 320), (64, 64), (32, 32), (256, 256), (320, 320), (128, 128), (416, 416), (640, 640))
"""Heights and widths of pictures and of lines of text, other than the usual 224 × 224."""

MOST_SEEN: Final = 16
LARGEST_SEEN: Final = 2**18
"""The most numbers of the model itself that are tried, and the largest."""

FEW_ELEMENTS: Final = 8
"""Constants of more elements are no shapes."""

_OF_NO_SIZE: Final = ("not supported", "which WebNN lacks", "must be bool or one of")
"""Parts of reasons that no size changes."""

_FROZEN: Final = re.compile(r"^freeze inputs? (.*), by input_values$")


@attrs.frozen(eq=False)
class FoundSizes:
    """Sizes found by trying, or the reason why there are none.

    Attributes:
        shapes: the shapes of all inputs that are not frozen.
        frozen: the values of those that are.
        shape_options: the options ``--shape`` that express what was found, without their name.
        values: the same for ``--value``: inputs that were frozen so that shapes and conditions are known.
        builder: what it was drawn with.
        outputs: the operands that were drawn; None when it failed.
        error: why the last try failed; None when it did not.
        tries: how many there were.
        largest: the largest size that was tried.
    """

    shapes: Mapping[str, tuple[int, ...]]
    frozen: Mapping[str, Array]
    shape_options: Sequence[str]
    values: Sequence[str]
    builder: MLGraphBuilder
    outputs: Mapping[str, MLOperand] | None
    error: UnsupportedModelError | None
    tries: int = 1
    largest: int = 0

    @property
    def problems(self) -> Sequence[Problem]:
        """The nodes that cannot be imported."""
        return () if self.error is None else self.error.problems

    @property
    def options(self) -> str:
        """All that was found, as it is typed."""
        return " ".join([*as_options("--shape", self.shape_options), *as_options("--value", self.values)])

    @property
    def fits(self) -> bool:
        """Return whether no choice of sizes would solve the problems that are left."""
        return all(any(part in problem.reason for part in _OF_NO_SIZE) for problem in self.problems)


async def find_sizes(
    model: OnnxModel, asked: AskedInputs, names: Sequence[str], new_builder: Callable[[], MLGraphBuilder]
) -> FoundSizes:
    """Import a model at the sizes that are known, and at others for what is open until that succeeds.

    Args:
        model: the model.
        asked: what is known of its inputs.
        names: of the outputs that are wanted.
        new_builder: makes a builder for each try.

    Returns:
        What succeeded; or, when nothing did, the usual sizes and why they failed.

    Raises:
        ValueError: the model is broken, which only converting it shows.
    """
    slots, seen = asked.shapes.open_sizes(asked.fed), seen_sizes(model._proto)
    since, tries, largest, alike = perf_counter(), 0, 0, 0
    first: FoundSizes | None = None
    choices: list[dict[str, int]] = [{}]
    before: dict[int, list[str]] = {}
    for choice, sizes in _in_turn(choices, assignments(slots, seen)):
        tries, largest = tries + 1, max([largest, *sizes.values()])
        found = await _tried(model, asked, names, new_builder(), (choices[choice], sizes))
        if found.fits:
            return attrs.evolve(found, tries=tries, largest=largest)
        if first is None:
            first = found
            choices += _values_for(found.problems, asked, model._proto)
        reasons = [str(problem) for problem in found.problems]
        alike = alike + 1 if reasons == before.get(choice) else 0
        before[choice] = reasons
        is_over = tries >= MOST_TRIES or perf_counter() - since > MOST_SECONDS
        if is_over or alike >= MOST_ALIKE * len(choices):
            break
    assert first is not None  # noqa: S101 - one try is always made
    return attrs.evolve(first, tries=tries, largest=largest)


def _in_turn(
    choices: Sequence[Mapping[str, int]], assigned: Iterable[Mapping[OpenSize, int]]
) -> Iterator[tuple[int, Mapping[OpenSize, int]]]:
    """Yield each assignment of sizes with each choice of values; with the first, of none, if there are no others.

    Args:
        choices: values for inputs; more may be added after the first pair.
        assigned: sizes for what is open.
    """
    for index, sizes in enumerate(assigned):
        if index == 0 or len(choices) == 1:
            yield 0, sizes
        yield from ((choice, sizes) for choice in range(1, len(choices)))


async def _tried(
    model: OnnxModel,
    asked: AskedInputs,
    names: Sequence[str],
    builder: MLGraphBuilder,
    choice: tuple[Mapping[str, int], Mapping[OpenSize, int]],
) -> FoundSizes:
    """Import the model once, with values for some inputs, and sizes for what is open."""
    from webnn_py.onnx_models import UnsupportedModelError  # noqa: PLC0415 - an extra

    values, sizes = choice
    fed = [name for name in asked.fed if name not in values]
    frozen = {
        name: np.full(asked.shapes.fixed(name) or (), value, asked.fed[name].dtype) for name, value in values.items()
    }
    shapes, frozen = asked.shapes.shapes_with(fed, sizes), {**asked.frozen, **frozen}
    outputs, refused = None, None
    try:
        with bar("importing", "nodes") as advance:
            outputs = await model.convert_in_steps(builder, shapes, frozen, outputs=names, progress=advance)
    except UnsupportedModelError as error:
        refused = error
    value_options = [f"{name}={value}" for name, value in values.items()]
    return FoundSizes(shapes, frozen, asked.shapes.shape_options(fed, sizes), value_options, builder, outputs, refused)


def search(model: OnnxModel, asked: AskedInputs, names: Sequence[str], device: Mapping[str, Any]) -> FoundSizes:
    """Do what :func:`find_sizes` does on a context of its own, with the options ``device``.

    Raises:
        BadInputError: the model is broken.
    """

    async def found() -> FoundSizes:
        async with open_ml() as ml, Environment(ml, **device) as environment:
            context = (await environment.open_device()).context
            return await find_sizes(model, asked, names, lambda: MLGraphBuilder(context))

    try:
        return trio.run(found)
    except* ValueError as errors:
        raise BadInputError(str(next(leaves(errors)))) from errors


# --- what is tried ----------------------------------------------------------------------------------------------


def assignments(slots: Sequence[OpenSize], seen: Sequence[int]) -> Iterator[dict[OpenSize, int]]:
    """Yield sizes for all open dimensions: the usual ones first, then lengths and frames, then one dimension at a time.

    Args:
        slots: the open dimensions.
        seen: sizes that the model itself has.
    """
    given: set[tuple[int, ...]] = set()
    for sizes in _assignments(slots, [*dict.fromkeys((*LENGTHS, *seen))], seen):
        key = tuple(sizes[slot] for slot in slots)
        if key not in given:
            given.add(key)
            yield sizes


def _assignments(
    slots: Sequence[OpenSize], lengths: Sequence[int], seen: Sequence[int]
) -> Iterator[dict[OpenSize, int]]:
    usual = {slot: slot.usual for slot in slots}
    yield usual
    # Exporters leave the batch without a name wherever it stands; what is last is the length.
    single = usual | {slot: 1 for slot in slots if slot.role == "length" and not slot.is_last and not slot.option}
    yield single
    frames = [*FRAMES, *((size, size) for size in seen)]
    has_frames = any(slot.role in {"height", "width"} for slot in slots)
    for height, width in frames if has_frames else ():
        yield usual | {
            slot: height if slot.role == "height" else width for slot in slots if slot.role in {"height", "width"}
        }
    for length in lengths:
        yield single | {slot: length for slot in slots if slot.role == "length" and single[slot] != 1}
        yield usual | {slot: length for slot in slots if slot.role == "length"}
    for slot in slots:
        for length in lengths:
            yield single | {slot: length}


def seen_sizes(proto: ModelProto) -> list[int]:
    """Return sizes that values and small constants of a model have, the most frequent ones first."""
    from onnx import TensorProto, numpy_helper  # noqa: PLC0415 - an extra

    counts: dict[int, int] = {}
    graph = proto.graph
    for item in (*graph.input, *graph.output, *graph.value_info):
        for dimension in item.type.tensor_type.shape.dim:
            counts[dimension.dim_value] = counts.get(dimension.dim_value, 0) + 1
    constants = [
        item.t for node in graph.node if node.op_type == "Constant" for item in node.attribute if item.name == "value"
    ]
    for tensor in (*graph.initializer, *constants):
        if tensor.data_type == TensorProto.INT64 and int(np.prod(tensor.dims)) <= FEW_ELEMENTS:
            for size in numpy_helper.to_array(tensor).flat:
                counts[int(size)] = counts.get(int(size), 0) + 1
    sizes = [size for size in counts if 1 < size <= LARGEST_SEEN]
    return sorted(sizes, key=lambda size: -counts[size])[:MOST_SEEN]


def _values_for(problems: Iterable[Problem], asked: AskedInputs, proto: ModelProto) -> Iterator[dict[str, int]]:
    """Yield values for the inputs that problems ask to be frozen, where these are single whole numbers or booleans."""
    names = {
        name
        for problem in problems
        for match in _FROZEN.findall(problem.way_out)
        for name in asked.fed
        if repr(name) in match
    }
    if len(names) != 1:
        return
    (name,) = names
    shape = asked.shapes.fixed(name)
    if shape is None or int(np.prod(shape)) != 1 or asked.fed[name].dtype.kind not in "biu":
        return
    for number in dict.fromkeys((*compared_numbers(proto, name), 1, 0)):
        yield {name: number}


def compared_numbers(proto: ModelProto, name: str) -> list[int]:
    """Return the whole numbers that a model compares an input with."""
    from onnx import numpy_helper  # noqa: PLC0415 - an extra

    graph = proto.graph
    tensors = {item.name: item for item in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            tensors |= [(node.output[0], item.t) for item in node.attribute if item.name == "value"]
    numbers = []
    for node in graph.node:
        if node.op_type in {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"} and name in node.input:
            numbers += [
                int(numpy_helper.to_array(tensors[other]).item())
                for other in node.input
                if other in tensors and int(np.prod(tensors[other].dims)) == 1
            ]
    return numbers
