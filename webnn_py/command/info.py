"""``webnn-py info``: what a model is, and what of it runs here."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from webnn_py.browser_profiles import NAMES, PortabilityReport, find
from webnn_py.command.declared import (
    Array,
    AskedInputs,
    DeclaredInput,
    as_options,
    asked_outputs,
    declared_inputs,
    worded_type,
)
from webnn_py.command.failures import BadInputError, CommandFailedError
from webnn_py.command.graph_files import check_graph_file, write_graph
from webnn_py.command.layout import counted, in_bytes, table
from webnn_py.command.loading import load_model, parts_of
from webnn_py.command.printing import print_json, print_lines
from webnn_py.command.problems import ProblemGroup, groups_of
from webnn_py.command.progress import bar
from webnn_py.runtime import Environment
from webnn_py.script.builder import MLGraphBuilder, drawing_of
from webnn_py.script.ml import open_ml
from webnn_py.wording import shortened, visible

if TYPE_CHECKING:
    from webnn_py.graph_pictures.picture import GraphPicture
    from webnn_py.onnx_models import OnnxModel, TensorInfo
    from webnn_py.onnx_models.contents import ModelContents

LONGEST_LINE: Final = 160
"""Of what the file says of itself, and of operators' names; JSON has all."""

NARROWER: Final = {"float64": "float32", "int64": "int32"}
"""What ``--narrow`` makes of a type."""

MOST_GROUPS: Final = 12
"""So many kinds of problems are told; JSON has all."""


@attrs.frozen(eq=False)
class ModelReport:
    """What is found out about a model.

    Attributes:
        path: the model's.
        file_bytes: how long the file is, with those of its data.
        contents: what it contains.
        inputs: its inputs.
        outputs: its outputs.
        device: where it was tried.
        shapes: of the inputs when it was tried.
        guessed: what of them was guessed, since nobody said it, as the option ``--shape`` says it.
        missing: what cannot be imported.
        intermediate_bytes: what values that are computed take when it runs, about; None if that cannot be told.
        narrow: the types that narrower ones stood for when it was tried.
        portability: what of it would fail in the browsers that were asked for; None if none was, or nothing runs.
    """

    path: Path
    file_bytes: int
    contents: ModelContents
    inputs: Mapping[str, DeclaredInput]
    outputs: Mapping[str, TensorInfo]
    device: str
    shapes: Mapping[str, tuple[int, ...]]
    guessed: list[str]
    missing: list[ProblemGroup]
    intermediate_bytes: int | None
    narrow: list[str]
    portability: PortabilityReport | None

    @property
    def runs(self) -> bool:
        """Whether everything can be imported."""
        return not self.missing


def info(options: argparse.Namespace) -> int:
    """Tell what a model is.

    Raises:
        BadInputError: there is no such model, or shapes or values do not fit it.
        CommandFailedError: it costs too much to be looked at, the extra is not installed, or the graph that is to be
            drawn cannot be.
    """
    check_graph_file(options.graph)
    model = load_model(options.model, narrow=options.narrow)
    from webnn_py.onnx_models import InvalidModelError  # noqa: PLC0415 - an extra
    from webnn_py.onnx_models.contents import contents_of  # noqa: PLC0415 - an extra
    from webnn_py.onnx_models.simplification import simplify  # noqa: PLC0415 - an extra

    asked = AskedInputs.of(model, options)
    guessed = asked.shapes.guess(asked.fed)
    fixed = asked.shapes.all_fixed(asked.fed, "")
    contents = contents_of(model._proto)
    try:
        simplified = simplify(parts_of(model), fixed, asked.frozen)
    except InvalidModelError as error:
        raise BadInputError(f"{options.model}: {error}") from error
    portability = _portability(options.browser)
    device, missing, picture = trio.run(_tried, model, fixed, asked.frozen, options, portability)
    if picture is not None:
        write_graph(options.graph, picture)
    report = ModelReport(
        options.model,
        model._size,
        contents,
        declared_inputs(model),
        model.outputs,
        device,
        fixed,
        guessed,
        missing,
        simplified.intermediate_bytes,
        options.narrow,
        portability if options.browser and not missing else None,
    )
    if options.json:
        print_json(_as_json(report))
    else:
        print_lines(_as_text(report))
    if options.graph is not None and picture is None:
        raise CommandFailedError(
            f"--graph {options.graph}: nothing is drawn, since not all of the model can be imported"
        )
    return 0


def _portability(names: list[str]) -> PortabilityReport:
    """The report that browsers' names ask for, still empty."""
    return PortabilityReport(find(name) for name in NAMES if name in names or "all" in names)


async def _tried(
    model: OnnxModel,
    shapes: Mapping[str, tuple[int, ...]],
    frozen: Mapping[str, Array],
    options: argparse.Namespace,
    portability: PortabilityReport,
) -> tuple[str, list[ProblemGroup], GraphPicture | None]:
    """Import the model, and say where, what is missing, and, if it is asked for, what the device makes of it."""
    from webnn_py.onnx_models import UnsupportedModelError  # noqa: PLC0415 - an extra

    names = asked_outputs(model, options.output)
    async with open_ml() as ml, Environment(ml, options.backend) as environment:
        device = await environment.open_device()
        builder = MLGraphBuilder(device.context)
        missing: list[ProblemGroup] = []
        picture = None
        try:
            with bar("importing", "nodes") as advance:
                outputs = await model.convert_in_steps(
                    builder, dict(shapes), dict(frozen), outputs=names, progress=advance
                )
        except UnsupportedModelError as error:
            missing = groups_of(error)
        except ValueError as error:  # the model is broken, which only converting it shows
            missing = [ProblemGroup("", 1, ("the model",), str(error), "")]
        if portability.profiles and not missing:
            portability.add_graph(drawing_of("info", outputs))
        if options.graph is not None and not missing:
            graph = await builder.build(outputs)
            picture = graph.picture()
            graph.destroy()
        builder.destroy()
        return str(device.info), missing, picture


# --- what is printed ------------------------------------------------------------------------------------------


def _as_text(report: ModelReport) -> Iterator[str]:
    contents = report.contents
    yield f"model       {report.path}, {in_bytes(report.file_bytes)}"
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in contents.opsets.items())
    yield f"opsets      {opsets} (file format {contents.ir_version})"
    if contents.producer:
        yield f"made by     {_in_line(contents.producer)}"
    for key, value in contents.metadata.items():
        yield f"metadata    {_in_line(f'{key}: {value}')}"
    yield f"parameters  {contents.parameters:,} ({in_bytes(contents.parameter_bytes)})"
    yield "inputs"
    yield from table([(name, str(item)) for name, item in report.inputs.items()], "  ")
    yield "outputs"
    yield from table([(name, worded_type(item.data_type, item.shape)) for name, item in report.outputs.items()], "  ")
    yield f"operators   {counted(contents.nodes, 'node')}"
    yield from _wrapped(f"{name} {count}" for name, count in contents.operators.items())
    if report.intermediate_bytes is not None:
        total = contents.parameter_bytes + report.intermediate_bytes
        yield (
            f"memory      about {in_bytes(total)}: parameters {in_bytes(contents.parameter_bytes)}, "
            f"values at most {in_bytes(report.intermediate_bytes)}"
        )
    yield from _whether_it_runs(report)
    if report.portability is not None:
        yield "in browsers"
        yield from (f"  {line}" for line in report.portability.lines())


def _whether_it_runs(report: ModelReport) -> Iterator[str]:
    narrowed = "".join(f", {name} as {NARROWER[name]}" for name in dict.fromkeys(report.narrow))
    yield f"runs here   {'yes' if report.runs else 'no'}{narrowed}, on {report.device}"
    if report.guessed:
        yield f"  tried with guessed sizes; change them with {as_options(report.guessed)}"
    for group in report.missing[:MOST_GROUPS]:
        names = ", ".join(group.subjects)
        more = f", and {group.count - len(group.subjects)} more" if group.count > len(group.subjects) else ""
        kind = f"{group.operator} × {group.count}: " if group.operator else ""
        way_out = f" ({_in_line(group.way_out)})" if group.way_out else ""
        yield f"  {kind}{_in_line(group.reason)}{way_out}"
        yield f"      {_in_line(names, 2 * LONGEST_LINE)}{more}"
    if len(report.missing) > MOST_GROUPS:
        yield f"  and {len(report.missing) - MOST_GROUPS} other problems; --json has all"


def _wrapped(words: Iterator[str]) -> Iterator[str]:
    """Words with commas between, in lines of about a hundred characters."""
    line = ""
    for word in words:
        if line and len(line) + len(word) > 100:
            yield f"  {line},"
            line = ""
        line = f"{line}, {word}" if line else word
    if line:
        yield f"  {line}"


def _in_line(text: str, longest: int = LONGEST_LINE) -> str:
    return visible(shortened(" ".join(text.split()), longest))


def _as_json(report: ModelReport) -> dict[str, Any]:
    contents = report.contents
    return {
        "model": str(report.path),
        "bytes": report.file_bytes,
        **attrs.asdict(contents),
        "opsets": {domain or "ai.onnx": version for domain, version in contents.opsets.items()},
        "nodes": contents.nodes,
        "inputs": {name: {"data_type": item.type_name, "shape": item.shape} for name, item in report.inputs.items()},
        "outputs": {name: {"data_type": item.data_type, "shape": item.shape} for name, item in report.outputs.items()},
        "memory_bytes": {"parameters": contents.parameter_bytes, "values": report.intermediate_bytes},
        "device": report.device,
        "shapes": dict(report.shapes),
        "guessed": report.guessed,
        "narrow": report.narrow,
        "runs": report.runs,
        "missing": [attrs.asdict(group) for group in report.missing],
        **({} if report.portability is None else {"browsers": report.portability.as_json()}),
    }
