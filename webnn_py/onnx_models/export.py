"""``save`` and ``to_model``: drawings of an ``MLGraphBuilder`` as ONNX models, by ``webnn_py.onnx_export``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final

from onnx import ModelProto

from webnn_py.core.operators.operand import MLOperand
from webnn_py.devices.composites.drawn_out import spelled_out
from webnn_py.drawn_graphs import drawing_of
from webnn_py.onnx_export import model_of
from webnn_py.onnx_models.reading.external_data import write_external_data
from webnn_py.written_files import written_whole

LARGEST_FILE: Final = 2**31 - 1
"""Bytes that a protocol buffer may have."""


def save(
    graph_outputs: Mapping[str, MLOperand],
    target: str | os.PathLike[str] | BinaryIO,
    *,
    external_data: bool = False,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write what a builder has drawn to a file, as an ONNX model that computes the same.

    The drawing must not be built yet: ``build()`` takes it from the builder.

    Args:
        graph_outputs: the operands to compute, by name, as :meth:`~webnn_py.MLGraphBuilder.build` takes them.
        target: the path of the file, which is overwritten; or a file that is open for writing bytes.
        external_data: whether constants are written to a second file, of the model's name with ``.data`` appended;
            those of a model of more than 2 GB, which one file cannot be, always do.
        metadata: what else to say of the model, by name; ``OnnxModel.metadata.properties`` reads it.

    Raises:
        TypeError: the outputs are refused, as by ``build()``.
        InvalidStateError: the builder has built, or the context is lost.
        ValueError: a constant is a constant buffer, whose contents only its device has; or a file that is open cannot
            take the model, as there can be no second file.
        OSError: the file cannot be written.
    """
    model = to_model(graph_outputs, metadata=metadata)
    # Protobuf cannot even measure a model whose weights alone are too long.
    weights = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    is_large = weights > LARGEST_FILE or model.ByteSize() > LARGEST_FILE
    is_path = isinstance(target, (str, os.PathLike))
    if not is_path and (external_data or is_large):
        why = "external_data needs" if external_data else f"the model is larger than {LARGEST_FILE:,} bytes and needs"
        raise ValueError(f"save(): {why} a file beside the model's; give a path instead of an open file")
    if isinstance(target, (str, os.PathLike)):
        path = Path(target)
        has_data = is_large or external_data
        beside = path.with_name(f"{path.name}.data")
        with written_whole(*([beside] if has_data else []), path) as fresh:
            if has_data:
                write_external_data(model, fresh[0], beside.name)
            fresh[-1].write_bytes(model.SerializeToString())
    else:
        target.write(model.SerializeToString())


def to_model(graph_outputs: Mapping[str, MLOperand], *, metadata: Mapping[str, str] | None = None) -> ModelProto:
    """Return what a builder has drawn as an ONNX model in memory; see :func:`save` for arguments and errors."""
    return model_of(spelled_out(drawing_of("save", graph_outputs)), metadata=metadata)
