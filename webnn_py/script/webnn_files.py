"""``save_webnn`` and ``load_webnn``: drawings of an ``MLGraphBuilder`` as files, by ``webnn_py.webnn_files``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from webnn_py.operators.operand import MLOperand
from webnn_py.script.builder import MLGraphBuilder, drawing_of


def save_webnn(graph_outputs: Mapping[str, MLOperand], path: str | os.PathLike[str]) -> None:
    """Write a builder's graph as a ``.webnn`` file, with its longer constants beside it in a ``.safetensors`` file.

    The drawing must not be built yet: ``build()`` takes it from the builder.

    Args:
        graph_outputs: the operands to compute, by name, as :meth:`~webnn_py.MLGraphBuilder.build` takes them.
        path: the file; the weights get its name, ending in ``.safetensors``. Both are overwritten.

    Raises:
        TypeError: the outputs are refused, as by ``build()``.
        InvalidStateError: the builder has built, or the context is lost.
        NotSupportedError: the drawing has named dimensions, or data types of four bits.
        ValueError: a name of an input or output has characters that names in the text have not, an input and an output
            have one name, an option is infinite, or a constant is a constant buffer. Nothing is written then.
        OSError: a file cannot be written.
    """
    from webnn_py.webnn_files.writing import write_files  # noqa: PLC0415 - imported when it is used

    write_files(drawing_of("save_webnn", graph_outputs), Path(path))


def load_webnn(
    builder: MLGraphBuilder, path: str | os.PathLike[str], *, weights: str | os.PathLike[str] | None = None
) -> dict[str, MLOperand]:
    """Draw the graph of a ``.webnn`` file, and return the operands of its outputs by name.

    The file may be a stranger's: nothing is read but it and the file of weights.

    Args:
        builder: what draws it; its inputs have the names that they have in the file.
        path: the file.
        weights: the file of weights, safetensors; ``path`` with that ending where there is one, when absent.

    Raises:
        WebnnFileError: the file is not of the language, names something that is not there, or its weights are missing
            or damaged; the text says where. It is a ``ValueError``.
        TypeError: the builder refuses an operand or an argument.
        InvalidStateError: the builder has built, or the context is lost.
        OSError: a file cannot be read.
    """
    from webnn_py.webnn_files.drawing import draw  # noqa: PLC0415 - imported when it is used
    from webnn_py.webnn_files.text import WebnnFileError, read_text  # noqa: PLC0415 - imported when it is used
    from webnn_py.webnn_files.weights import TensorFile  # noqa: PLC0415 - imported when it is used

    file = Path(path)
    try:
        graph = read_text(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise WebnnFileError(f"{file.name} is no text in UTF-8: {error.reason}") from None
    beside = file.with_suffix(".safetensors") if weights is None else Path(weights)
    with ExitStack() as stack:
        opened = None
        if weights is not None or beside.exists():
            opened = TensorFile(stack.enter_context(beside.open("rb")))
        return draw(graph, builder, opened)
