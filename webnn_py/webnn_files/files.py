"""``save_webnn`` and ``load_webnn``: graphs of an ``MLGraphBuilder`` as files, and back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.message_text import shown
from webnn_py.core.operators.operand import MLOperand
from webnn_py.devices.composites.drawn_out import spelled_out
from webnn_py.drawn_graphs import drawing_of
from webnn_py.regular_files import open_regular, read_regular
from webnn_py.webnn_files.building import draw
from webnn_py.webnn_files.text import WebnnFileError, read_text
from webnn_py.webnn_files.weights import TensorFile
from webnn_py.webnn_files.writing import write_files


def save_webnn(graph_outputs: Mapping[str, MLOperand], path: str | os.PathLike[str]) -> None:
    """Write a builder's graph as a ``.webnn`` file, with its longer constants in a ``.safetensors`` file.

    The drawing must not be built yet: ``build()`` takes it from the builder.

    Args:
        graph_outputs: the operands to compute, by name, as :meth:`~webnn_py.MLGraphBuilder.build` takes them.
        path: the file; the weights get its name, ending in ``.safetensors``; there is no such file if all constants
            are short. Existing files are overwritten.

    Raises:
        TypeError: the outputs are refused, as by ``build()``, or ``path`` is no path.
        InvalidStateError: the builder has built, or the context is lost.
        NotSupportedError: the drawing has data types of proposals.
        ValueError: a name of an input or output has characters that names in the text lack, an input and an output
            have the same name, an option is infinite, a constant is a constant buffer, the file's name or a label is
            not UTF-8, or the path has no name or is that of the weights. Nothing is written then.
        OSError: a file cannot be written.
    """
    file = _path("save_webnn(): path", path)
    if file.name == "" or file.suffix == ".safetensors":
        raise ValueError(
            f"save_webnn(): path is {shown(str(path))}; it must be that of a .webnn file; weights go to one of its "
            "name that ends in .safetensors"
        )
    write_files(spelled_out(drawing_of("save_webnn", graph_outputs)), file)


def load_webnn(
    builder: MLGraphBuilder, path: str | os.PathLike[str], *, weights: str | os.PathLike[str] | None = None
) -> dict[str, MLOperand]:
    """Draw the graph of a ``.webnn`` file, and return the operands of its outputs by name.

    The file need not be trusted: nothing but it and the file of weights is read.

    Args:
        builder: the builder to draw with; its inputs get the names that they have in the file.
        path: the file.
        weights: the file of weights, safetensors; ``path`` with that ending where there is one, when absent.

    Raises:
        WebnnFileError: the file is not of the language, names something that is not there, or its weights are missing
            or damaged; the text says where. It is a ``ValueError``.
        TypeError: ``builder`` is no builder, a path is none, or the builder refuses an operand or an argument.
        InvalidStateError: the builder has built, or the context is lost.
        OSError: a file cannot be read.
    """
    if not isinstance(builder, MLGraphBuilder):
        raise TypeError(f"load_webnn(): builder is {shown(builder)}; it must be an MLGraphBuilder")
    file = _path("load_webnn(): path", path)
    try:
        graph = read_text(read_regular(file).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise WebnnFileError(f"{file.name} is no text in UTF-8: {error.reason}") from None
    stored = file.with_suffix(".safetensors") if weights is None else _path("load_webnn(): weights", weights)
    with ExitStack() as stack:
        opened = None
        if weights is not None or (graph.has_stored_tensors and stored.exists()):
            opened = TensorFile(stack.enter_context(open_regular(stored)))
        return draw(graph, builder, opened)


def _path(name: str, value: str | os.PathLike[str]) -> Path:
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} is {shown(value)}; it must be a path")
    return Path(value)
