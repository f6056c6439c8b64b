"""``webnn-py run``: run a model on files, and print its outputs and times."""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np
import trio

from webnn_py.checking import ValueRange, check_finite
from webnn_py.command import pictures
from webnn_py.command.comparison import (
    OutputDifference,
    difference,
    onnxruntime_version,
    run_onnxruntime,
)
from webnn_py.command.declared import Array, AskedInputs, as_webnn, asked_outputs, worded_shape
from webnn_py.command.device_options import device_options
from webnn_py.command.failures import FAILED, BadInputError
from webnn_py.command.feeds import GivenInput, make_feeds
from webnn_py.command.layout import NARROWER, in_bytes, in_time, number
from webnn_py.command.loading import imported, load_model, model_errors, narrowed_types
from webnn_py.command.printing import print_json, print_lines
from webnn_py.command.progress import bar
from webnn_py.command.results import ScoredClass, Times, mean_of, read_labels, top_classes
from webnn_py.command.written_files import check_ending, written_whole
from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.ml import open_ml
from webnn_py.core.device.backend import TimesKernels
from webnn_py.core.message_text import shown
from webnn_py.profiling import profile as profile_of
from webnn_py.runtime import Environment
from webnn_py.text_tables import table
from webnn_py.tracing.trace_file import traced_to

if TYPE_CHECKING:
    from webnn_py import ML, GraphProfile, NonFinite
    from webnn_py.onnx_models import OnnxModel


FEW: Final = 4
"""The most numbers of a frozen input that are shown."""

PROFILED: Final = 10
"""The fewest runs of a profile."""


@attrs.frozen(eq=False)
class Finished:
    """A finished run.

    Attributes:
        options: of the command line.
        device: where it really ran.
        narrow: the types that narrower ones stood for.
        inputs: what the inputs were given, with those that were frozen.
        outputs: what came out.
        times: how long the parts took.
        profile: where the time goes; None if it was not asked for.
        first_non_finite: where the first NaN or infinity comes from; None if there is none, or it was not asked for.
        classes: the top classes of outputs that have a score for each label.
        differences: from onnxruntime's outputs; None if they were not asked for.
    """

    options: argparse.Namespace
    device: str
    narrow: list[str]
    inputs: Mapping[str, GivenInput]
    outputs: Mapping[str, Array]
    times: Times
    profile: GraphProfile | None
    first_non_finite: NonFinite | None
    classes: Mapping[str, list[list[ScoredClass]]] = attrs.field(factory=dict)
    differences: list[OutputDifference] | None = None


def run(options: argparse.Namespace) -> int:
    """Run a model; the status is 1 when it is further from another runtime than is tolerated, or makes a NaN.

    Raises:
        BadInputError: what was given does not fit the model.
        CommandFailedError: the model cannot be run, or something that was asked for is not installed.
    """
    _check_options(options)
    labels = None if options.labels is None else read_labels(options.labels)
    check_ending("--save-outputs", options.save_outputs, [".npz"])
    since = perf_counter()
    with bar(f"loading {options.model.name}", "file") as advance:
        model = load_model(options.model, read_weights=True, narrow=options.narrow)
        advance(1, 1)
    load = perf_counter() - since
    asked = AskedInputs.from_options(model, options, may_override=True)
    given = make_feeds(asked.fed, asked.shapes, options)
    finished = trio.run(_measured, model, given, asked.frozen, options, load)
    if labels is not None:
        finished = attrs.evolve(finished, classes=top_classes(finished.outputs, labels))
    if options.compare:
        finished = attrs.evolve(finished, differences=_differences(finished))
    if options.save_outputs is not None:
        _save(options.save_outputs, finished.outputs)
    if options.json:
        print_json(_as_json(finished))
    else:
        print_lines(_as_text(finished))
    return FAILED if _is_over(finished) or finished.first_non_finite is not None else 0


def _is_over(finished: Finished) -> bool:
    """Return whether a run is further from another runtime than is tolerated, and print where."""
    tolerance = finished.options.tolerance
    over = [item for item in finished.differences or () if tolerance is not None and item.is_over(tolerance)]
    if over:
        worst = "; ".join(f"output {shown(item.name)}, {_how_far(item)}" for item in over)
        print_lines([f"webnn-py run: over --tolerance {tolerance:g}: {worst}"], sys.stderr)
    return bool(over)


async def _measured(
    model: OnnxModel,
    given: Mapping[str, GivenInput],
    frozen: Mapping[str, Array],
    options: argparse.Namespace,
    load: float,
) -> Finished:
    """Run the model once, and then as often as was requested; the outputs are those of the last run."""
    names = asked_outputs(model, options.output)
    async with open_ml() as ml, traced_to(ml, options.trace), _environment(ml, options) as environment:
        device = await environment.open_device()
        builder = MLGraphBuilder(device.context)
        since = perf_counter()
        shapes = {name: item.array.shape for name, item in given.items()}
        with model_errors(options.model):
            operands = await imported(model, builder, shapes, frozen, names)
        import_ = perf_counter() - since
        types = {name: info.data_type for name, info in {**model.inputs, **model.overridable}.items()}
        fed = {name: as_webnn(name, item.array, types[name]) for name, item in given.items()}
        found = None
        if options.check_finite:
            found = await check_finite(operands, fed)
        since = perf_counter()
        with bar("building", "kernels") as advance:
            graph = await builder.build(operands, progress=advance)
        build = perf_counter() - since
        async with await environment.create_session(graph) as session:
            feeds = {name: fed[name] for name in session.input_names}
            runs = []
            with bar("running", "runs") as advance:
                for done in range(options.repeat + 1):
                    advance(done, options.repeat + 1)
                    since = perf_counter()
                    results = await session.run(feeds)
                    runs.append(perf_counter() - since)
            outputs = {name: results[name].data for name in names}
        profile = await profile_of(graph, feeds, repeat=max(options.repeat, PROFILED)) if options.profile else None
        graph.destroy()
    times = Times(load, import_, build, runs[0], tuple(runs[1:]))
    inputs = {**given, **{name: GivenInput(value, _frozen(value)) for name, value in frozen.items()}}
    narrow = narrowed_types(model, options.narrow)
    return Finished(options, str(device.info), narrow, inputs, outputs, times, profile, found)


@asynccontextmanager
async def _environment(ml: ML, options: argparse.Namespace) -> AsyncIterator[Environment]:
    """Open the device of the run: with ``--profile`` numpy, where the default device does not time kernels.

    Raises:
        BadInputError: the device that was asked for does not time kernels.
    """
    async with Environment(ml, **device_options(options)) as environment:
        device = await environment.open_device()
        if not options.profile or isinstance(device.context.device.backend, TimesKernels):
            yield environment
            return
        if device_options(options):
            raise BadInputError(
                f"--profile: {device.info} does not time kernels; give --backend numpy, or wgpu where "
                "`webnn-py devices` lists the feature timestamp-query, or no --backend"
            )
    async with Environment(ml, "numpy") as environment:
        yield environment


def _differences(finished: Finished) -> list[OutputDifference]:
    feeds = {name: item.array for name, item in finished.inputs.items()}
    theirs = run_onnxruntime(finished.options.model, feeds, tuple(finished.outputs))
    return [difference(name, ours, theirs[name]) for name, ours in finished.outputs.items()]


def _check_options(options: argparse.Namespace) -> None:
    """Refuse options without those that they need, which would be ignored."""
    device_options(options)
    if options.compare is None and options.tolerance is not None:
        raise BadInputError("--tolerance needs --compare onnxruntime")
    if options.compare is not None:
        onnxruntime_version()
    suffixes = {Path(text.rpartition("=")[2]).suffix.lower() for text in options.input}
    for name in ("scale", "mean", "std"):
        if getattr(options, name) is not None and suffixes.isdisjoint(pictures.SUFFIXES):
            raise BadInputError(f"--{name} needs an --input that is a picture")


# --- files ----------------------------------------------------------------------------------------------------


def _save(path: Path, outputs: Mapping[str, Array]) -> None:
    """Write a .npz file; unlike ``numpy.savez`` with outputs of any name."""
    with written_whole(path, what="--save-outputs ") as (fresh,), zipfile.ZipFile(fresh, "w") as archive:
        for name, array in outputs.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array).reshape(array.shape))


# --- what is printed ------------------------------------------------------------------------------------------


def _as_text(finished: Finished) -> Iterator[str]:
    times = finished.times
    yield f"model   {finished.options.model}"
    yield f"device  {finished.device}"
    if finished.narrow:
        yield f"types   {', '.join(f'{name} as {NARROWER[name]}' for name in finished.narrow)}"
    yield "inputs"
    rows = (
        (name, str(item.array.dtype), f"{worded_shape(item.array.shape)} {in_bytes(item.array.nbytes)}", item.source)
        for name, item in finished.inputs.items()
    )
    yield from table(rows, "  ")
    yield (
        f"times   load {in_time(times.load)}, import {in_time(times.import_)}, build {in_time(times.build)}, "
        f"first run {in_time(times.first_run)}"
    )
    if len(times.runs) == 1:
        yield f"run     {in_time(times.runs[0])}"
    else:
        percentiles = ", ".join(f"{name} {in_time(seconds)}" for name, seconds in times.percentiles().items())
        yield f"run     {percentiles} ({len(times.runs)} runs)"
    yield "outputs"
    yield from _outputs_as_text(finished)
    if finished.differences is not None:
        yield f"compared with onnxruntime {onnxruntime_version()}"
        yield from table(map(_difference_as_row, finished.differences), "  ")
    if finished.first_non_finite is not None:
        yield from str(finished.first_non_finite).splitlines()
    elif finished.options.check_finite:
        yield "no node makes a NaN or an infinity"
    if finished.profile is not None:
        yield "profile"
        yield from str(finished.profile).splitlines()[1:]
    if finished.options.trace is not None:
        yield f"trace   {finished.options.trace}"


def _frozen(value: Array) -> str:
    return f"frozen: {', '.join(map(str, value.flat))}" if value.size <= FEW else "frozen"


def _outputs_as_text(finished: Finished) -> Iterator[str]:
    rows = []
    for name, array in finished.outputs.items():
        item = ValueRange.from_array(name, array)
        rare = [f"{count} {what}" for count, what in ((item.nans, "NaN"), (item.infinities, "infinite")) if count]
        numbers = f"min {number(item.minimum)}, mean {number(mean_of(array))}, max {number(item.maximum)}"
        rows.append((name, item.data_type, worded_shape(item.shape), ", ".join([numbers, *rare])))
    for line, name in zip(table(rows, "  "), finished.outputs, strict=True):
        yield line
        classes = finished.classes.get(name, [])
        for index, row in enumerate(classes):
            if len(classes) > 1:
                yield f"    row {index}"
            yield from table(((number(item.score), item.label) for item in row), "    ")


def _how_far(item: OutputDifference) -> str:
    rare = f"{item.mismatches} NaN or infinite in one only" if item.mismatches else ""
    far = f"{number(item.relative)} of its largest value" if item.relative or not rare else ""
    return ", ".join(filter(None, [far, rare]))


def _difference_as_row(item: OutputDifference) -> tuple[str, str]:
    where = "" if not item.largest else f", {number(item.relative)} of its largest value, at {list(item.place)}"
    rare = f"; {item.mismatches} NaN or infinite in one only" if item.mismatches else ""
    return item.name, f"largest difference {number(item.largest)}{where}{rare}"


def _as_json(finished: Finished) -> dict[str, Any]:
    differences, first = finished.differences, finished.first_non_finite
    return {
        "model": str(finished.options.model),
        "device": finished.device,
        "narrow": finished.narrow,
        "inputs": {
            name: {"data_type": str(item.array.dtype), "shape": item.array.shape, "source": item.source}
            for name, item in finished.inputs.items()
        },
        "times": finished.times.as_milliseconds(),
        "outputs": {
            name: _without_name(attrs.asdict(ValueRange.from_array(name, array)))
            | {"mean": mean_of(array)}
            | ({"classes": _plain(finished.classes[name])} if name in finished.classes else {})
            for name, array in finished.outputs.items()
        },
        "differences": None
        if differences is None
        else {item.name: _without_name(attrs.asdict(item)) for item in differences},
        **({"first_non_finite": first and first.as_dict()} if finished.options.check_finite else {}),
        **({} if finished.profile is None else {"profile": finished.profile.as_dict()}),
    }


def _plain(rows: list[list[ScoredClass]]) -> list[list[dict[str, Any]]]:
    return [
        [{**attrs.asdict(item), "score": item.score if np.isfinite(item.score) else None} for item in row]
        for row in rows
    ]


def _without_name(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "name"}
