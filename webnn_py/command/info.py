"""``webnn-py info``: what a model is, and what of it runs here."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from webnn_py import pictures
from webnn_py.command.declared import AskedInputs, as_options, asked_outputs, declared_inputs, worded_type
from webnn_py.command.device_options import device_options
from webnn_py.command.failures import CommandFailedError
from webnn_py.command.layout import NARROWER, in_bytes
from webnn_py.command.loading import imported, load_model, narrowed_types, simplified
from webnn_py.command.printing import print_json, print_lines
from webnn_py.command.problems import as_json, lines_of
from webnn_py.command.written_files import check_ending, written_whole
from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.ml import open_ml
from webnn_py.core.message_text import shortened, shown, visible
from webnn_py.devices.composites.drawn_out import spelled_out
from webnn_py.drawn_graphs import drawing_of
from webnn_py.extensions.browser_limits import find
from webnn_py.extensions.portability import PortabilityReport
from webnn_py.pictures import GraphPicture
from webnn_py.runtime import Environment
from webnn_py.text_tables import counted, table

if TYPE_CHECKING:
    from webnn_py.onnx_models import OnnxModel, UnsupportedModelError
    from webnn_py.onnx_models.reading.contents import ModelContents
    from webnn_py.onnx_models.simplification.passes import SimplifiedModel

LONGEST_LINE: Final = 160
"""The most characters of a line of the file's metadata; JSON has all."""

FORMS: Final[Mapping[str, Callable[[GraphPicture, str], str]]] = {
    ".svg": lambda picture, _title: picture.to_svg(),
    ".html": GraphPicture.to_html,
    ".mmd": lambda picture, _title: picture.to_mermaid(),
    ".dot": lambda picture, _title: picture.to_dot(),
    ".txt": lambda picture, _title: picture.describe(passes=True),
}
"""The form that is written, by the file's suffix."""


@attrs.frozen(eq=False)
class Tried:
    """The outcome of importing a model.

    Attributes:
        device: where.
        shapes: those of its inputs.
        guessed: the values of ``--shape`` that give the sizes that were guessed.
        refusal: what cannot be imported; None if everything can.
        picture: what the device makes of it; None if that was not asked for, or something cannot be imported.
    """

    device: str
    shapes: Mapping[str, tuple[int, ...]]
    guessed: Sequence[str]
    refusal: UnsupportedModelError | None
    picture: GraphPicture | None = None


@attrs.frozen(eq=False)
class ModelReport:
    """The findings about a model.

    Attributes:
        options: of the command line.
        model: the model, of which nothing was converted.
        contents: what it contains.
        tried: the outcome of importing it.
        simplified: the model, simplified at the sizes at which it was tried, with the memory that its values take.
        portability: what of it would fail in the browsers that were asked for; None if none was, or nothing runs.
    """

    options: argparse.Namespace
    model: OnnxModel
    contents: ModelContents
    tried: Tried
    simplified: SimplifiedModel
    portability: PortabilityReport | None

    @property
    def graph(self) -> Path | None:
        """The file that the graph was written to, if it was."""
        return None if self.tried.picture is None else self.options.graph

    @property
    def narrow(self) -> list[str]:
        """The types that narrower ones stood for when it was tried."""
        return narrowed_types(self.model, self.options.narrow)


def info(options: argparse.Namespace) -> int:
    """Describe a model.

    Raises:
        BadInputError: there is no such model, or shapes or values do not fit it.
        CommandFailedError: it costs too much to be looked at, the extra is not installed, or the graph that is to be
            drawn cannot be.
    """
    check_ending("--graph", options.graph, FORMS)
    model = load_model(options.model, narrow=options.narrow)
    from webnn_py.onnx_models.reading.contents import contents_of  # noqa: PLC0415 - an extra

    asked = AskedInputs.from_options(model, options)
    contents = contents_of(model._proto)
    portability = PortabilityReport(map(find, dict.fromkeys(options.browser)))
    tried = trio.run(_tried, load_model(options.model, narrow=options.narrow), asked, options, portability)
    simpler = simplified(model, options.model, tried.shapes, asked.frozen)
    if tried.picture is not None:
        text = FORMS[options.graph.suffix.lower()](tried.picture, f"{options.model.name} on {tried.device}")
        with written_whole(options.graph, what="--graph ") as (fresh,):
            fresh.write_text(text, encoding="utf-8")
    verdicts = portability if options.browser and tried.refusal is None else None
    report = ModelReport(options, model, contents, tried, simpler, verdicts)
    if options.json:
        print_json(_as_json(report))
    else:
        print_lines(_as_text(report))
    if options.graph is not None and tried.picture is None:
        raise CommandFailedError(
            f"--graph {options.graph}: nothing is drawn, since not all of the model can be imported"
        )
    return 0


async def _tried(
    model: OnnxModel, asked: AskedInputs, options: argparse.Namespace, portability: PortabilityReport
) -> Tried:
    """Import the model at the sizes that are known, and usual ones for what is open."""
    from webnn_py.onnx_models import Problem, UnsupportedModelError  # noqa: PLC0415 - an extra

    shapes, guessed = asked.shapes.guessed(asked.fed)
    refusal, picture = None, None
    async with open_ml() as ml, Environment(ml, **device_options(options)) as environment:
        device = await environment.open_device()
        builder = MLGraphBuilder(device.context)
        try:
            outputs = await imported(model, builder, shapes, asked.frozen, asked_outputs(model, options.output))
        except UnsupportedModelError as error:
            refusal = error
        except ValueError as error:  # the model is broken, which only converting it shows
            refusal = UnsupportedModelError([Problem("the model", str(error))])
        else:
            if portability.profiles:
                portability.add_graph(spelled_out(drawing_of("info", outputs)))
            if options.graph is not None:
                graph = await builder.build(outputs, keep_source=True)
                picture = pictures.picture(graph)
                graph.destroy()
        return Tried(str(device.info), shapes, guessed, refusal, picture)


# --- what is printed ------------------------------------------------------------------------------------------


def _as_text(report: ModelReport) -> Iterator[str]:
    contents = report.contents
    yield f"model       {report.options.model}, {in_bytes(report.model._size)}"
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in contents.opsets.items())
    yield f"opsets      {opsets} (file format {contents.ir_version})"
    if contents.producer:
        yield f"made by     {_in_line(contents.producer)}"
    for key, value in contents.metadata.items():
        yield f"metadata    {_in_line(f'{key}: {value}')}"
    yield f"parameters  {contents.parameters:,} ({in_bytes(contents.parameter_bytes)})"
    yield "inputs"
    yield from table([(name, str(item)) for name, item in declared_inputs(report.model).items()], "  ")
    yield "outputs"
    yield from table(
        [(name, worded_type(item.data_type, item.shape)) for name, item in report.model.outputs.items()], "  "
    )
    yield f"operators   {counted(contents.nodes, 'node')}"
    yield from _wrapped(f"{name} {count}" for name, count in contents.operators.items())
    values = report.simplified.intermediate_bytes
    if values is None:
        yield (
            f"memory      parameters {in_bytes(contents.parameter_bytes)}; the memory of values is unknown, since "
            f"the shape of {shown(report.simplified.unsized)} is not known before the model runs"
        )
    else:
        yield (
            f"memory      about {in_bytes(contents.parameter_bytes + values)}: parameters "
            f"{in_bytes(contents.parameter_bytes)}, values at most {in_bytes(values)}"
        )
    yield from _whether_it_runs(report)
    if report.graph is not None:
        yield f"graph       written to {visible(str(report.graph))}, {in_bytes(report.graph.stat().st_size)}"
    if report.portability is not None:
        yield "in browsers"
        yield from (f"  {line}" for line in report.portability.lines())


def _whether_it_runs(report: ModelReport) -> Iterator[str]:
    narrowed = "".join(f", {name} as {NARROWER[name]}" for name in report.narrow)
    refusal, guessed = report.tried.refusal, as_options(report.tried.guessed)
    yield f"runs here   {'yes' if refusal is None else 'no'}{narrowed}, on {report.tried.device}"
    if guessed and refusal is not None:
        yield f"  tried with guessed sizes, {guessed}; give those that the model is made for"
    elif guessed:
        yield f"  tried with guessed sizes; change them with {guessed}"
    if refusal is not None:
        yield from (f"  {line}" for line in lines_of(refusal))


def _wrapped(words: Iterator[str]) -> Iterator[str]:
    """Yield words, separated by commas, in lines of about a hundred characters."""
    line = ""
    for word in words:
        if line and len(line) + len(word) > 100:
            yield f"  {line},"
            line = ""
        line = f"{line}, {word}" if line else word
    if line:
        yield f"  {line}"


def _in_line(text: str) -> str:
    return visible(shortened(" ".join(text.split()), LONGEST_LINE))


def _as_json(report: ModelReport) -> dict[str, Any]:
    contents, tried = report.contents, report.tried
    return {
        "model": str(report.options.model),
        "bytes": report.model._size,
        **attrs.asdict(contents),
        "opsets": {domain or "ai.onnx": version for domain, version in contents.opsets.items()},
        "nodes": contents.nodes,
        "inputs": {
            name: {"data_type": item.type_name, "shape": item.shape}
            for name, item in declared_inputs(report.model).items()
        },
        "outputs": {
            name: {"data_type": item.data_type, "shape": item.shape} for name, item in report.model.outputs.items()
        },
        "memory_bytes": {
            "parameters": contents.parameter_bytes,
            "values": report.simplified.intermediate_bytes,
            "unsized": report.simplified.unsized,
        },
        "device": tried.device,
        "shapes": dict(tried.shapes),
        "guessed": list(tried.guessed),
        "narrow": report.narrow,
        "runs": tried.refusal is None,
        "missing": [] if tried.refusal is None else [as_json(group) for group in tried.refusal.groups],
        **({} if report.graph is None else {"graph": str(report.graph)}),
        **({} if report.portability is None else {"browsers": report.portability.as_json()}),
    }
