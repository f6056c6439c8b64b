"""A model's file, read; needs the extra ``onnx``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from webnn_py.command.failures import BadInputError, CommandFailedError, needed
from webnn_py.command.problems import in_one_line
from webnn_py.command.progress import bar
from webnn_py.core.message_text import words_of
from webnn_py.regular_files import open_regular

if TYPE_CHECKING:
    from webnn_py import MLGraphBuilder, MLOperand
    from webnn_py.onnx_models import OnnxModel
    from webnn_py.onnx_models.simplification.passes import SimplifiedModel


def load_model(path: Path, *, read_weights: bool = False, narrow: Sequence[str] = ()) -> OnnxModel:
    """Load a model, and, if it is to be converted and no more, its weights; float64, which WebNN lacks, is narrowed.

    Args:
        path: the file.
        read_weights: whether the weights are read, too.
        narrow: further types to narrow: "int64".

    Raises:
        BadInputError: there is no such file, it cannot be read, or it is no model.
        CommandFailedError: the model costs too much, or the extra is not installed.
    """
    needed("onnx", "reading ONNX models")
    from webnn_py.onnx_models import OnnxModel  # noqa: PLC0415 - an extra

    with model_errors(path):
        model = OnnxModel.load(path, narrow_float64=True, narrow_int64="int64" in narrow)
        if read_weights:
            model.read_weights()
    return model


@contextmanager
def model_errors(path: Path) -> Iterator[None]:
    """Make the errors of a model, or of a folder of one, the command's own.

    Raises:
        BadInputError: a file cannot be read, or is no model.
        CommandFailedError: the model cannot be imported.
    """
    from webnn_py.onnx_models import InvalidModelError, UnsupportedModelError  # noqa: PLC0415 - an extra

    try:
        yield
    except UnsupportedModelError as error:
        raise CommandFailedError(f"{path} cannot be run here: {in_one_line(error)}") from error
    except InvalidModelError as error:
        raise BadInputError(f"{path}: {error}" if str(path) not in str(error) else str(error)) from error
    except OSError as error:
        file = path if error.filename is None else Path(os.fsdecode(error.filename))
        needs = "" if file == path else f"{path} needs "
        raise BadInputError(f"{needs}{unreadable(file, error)}") from error


def narrowed_types(model: OnnxModel, asked: Sequence[str]) -> list[str]:
    """Return the types that are narrowed: the requested ones, and float64 if the model has it."""
    from onnx import TensorProto  # noqa: PLC0415 - an extra

    graph, double = model._proto.graph, TensorProto.DOUBLE
    has_float64 = (
        any(item.type.tensor_type.elem_type == double for item in (*graph.input, *graph.output))
        or any(tensor.data_type == double for tensor in graph.initializer)
        or any(
            (attribute.name == "to" and attribute.i == double) or attribute.t.data_type == double
            for node in graph.node
            for attribute in node.attribute
        )
    )
    return [*dict.fromkeys([*(["float64"] if has_float64 else []), *asked])]


def simplified(
    model: OnnxModel, path: Path, shapes: Mapping[str, Sequence[int | str]], values: Mapping[str, Any]
) -> SimplifiedModel:
    """Return a simpler model of the same results as one that has not been converted.

    Raises:
        BadInputError: shapes or values do not fit it.
    """
    from webnn_py.onnx_models.reading.model_file import ReadModel  # noqa: PLC0415 - an extra
    from webnn_py.onnx_models.simplification.passes import simplify  # noqa: PLC0415 - an extra

    with model_errors(path):
        return simplify(ReadModel(model._proto, model._size, model._is_flat), shapes, values)


async def imported(
    model: OnnxModel,
    builder: MLGraphBuilder,
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, Any],
    outputs: Sequence[str] | None = None,
) -> dict[str, MLOperand]:
    """Convert a model while a bar shows how far that is; raises what ``convert_in_steps()`` does.

    Args:
        model: the model.
        builder: what its graph is built with.
        shapes: of its inputs.
        values: those of the inputs that are frozen.
        outputs: the outputs that are wanted; all by default.
    """
    with bar("importing", "nodes") as advance:
        return await model.convert_in_steps(builder, shapes, dict(values), outputs=outputs, progress=advance)


def unreadable(path: Path, error: OSError) -> str:
    """Return why a file cannot be read or written."""
    return f"{path}: {error.strerror or words_of(error)}"


@contextmanager
def opened(path: Path, what: str) -> Iterator[BinaryIO]:
    """Open a file to read; whatever reading it raises means that it is damaged.

    Args:
        path: the file.
        what: the kind of file that it should be, for the message: "an array".

    Raises:
        BadInputError: it cannot be read, or is damaged.
    """
    try:
        with open_regular(path) as file:
            yield file
    except BadInputError:
        raise
    except Exception as error:  # libraries have a dozen for what is damaged
        if isinstance(error, OSError) and error.errno is not None:
            raise BadInputError(unreadable(path, error)) from error
        raise BadInputError(f"{path} cannot be read as {what}: {words_of(error)}") from error
