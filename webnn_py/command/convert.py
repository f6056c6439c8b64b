"""``webnn-py convert``: a simpler model of the same results, in another file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webnn_py.command.declared import AskedInputs
from webnn_py.command.failures import BadInputError, CommandFailedError
from webnn_py.command.layout import counted, in_bytes
from webnn_py.command.loading import load_model, parts_of, unreadable
from webnn_py.command.printing import print_json, print_lines
from webnn_py.command.to_javascript import to_javascript
from webnn_py.command.written_files import check_writable, written_together, written_whole

if TYPE_CHECKING:
    from onnx import ModelProto

LARGEST_FILE: Final = 2**31 - 2**24
"""Bytes of weights; a file of Protocol Buffers has at most 2 GiB, so more go into another one beside it."""


def convert(options: argparse.Namespace) -> int:
    """Freeze inputs, fix shapes, compute what is known, drop what nobody needs.

    Raises:
        BadInputError: there is no such model, shapes or values do not fit it, or the file to write exists.
        CommandFailedError: it cannot be written, it costs too much, or the extra is not installed.
    """
    if options.js:
        return to_javascript(options)
    out: Path = options.out
    if out.exists() and not options.overwrite:
        raise BadInputError(f"{out} exists; --overwrite replaces it")
    check_writable(str(out), out)
    model = load_model(options.model)
    from webnn_py.onnx_models import InvalidModelError  # noqa: PLC0415 - an extra
    from webnn_py.onnx_models.contents import contents_of  # noqa: PLC0415 - an extra
    from webnn_py.onnx_models.simplification import simplify  # noqa: PLC0415 - an extra

    asked = AskedInputs.of(model, options)
    known = {name: shape for name in asked.fed if (shape := asked.shapes.of(name)) is not None}
    try:
        simplified = simplify(parts_of(model), known, asked.frozen)
    except InvalidModelError as error:
        raise BadInputError(f"{options.model}: {error}") from error
    try:
        written = _write(simplified.proto, out)
    except OSError as error:
        raise CommandFailedError(unreadable(out, error)) from error
    before, after = contents_of(model._proto).nodes, contents_of(simplified.proto).nodes
    if options.json:
        numbers = {"nodes_before": before, "nodes": after, "bytes_before": model._size}
        print_json({"model": str(options.model), "out": str(out), **numbers, "bytes": written})
    else:
        print_lines([f"{out}: {counted(after, 'node')} of {before:,}, {in_bytes(written)} of {in_bytes(model._size)}"])
    return 0


def _write(proto: ModelProto, out: Path) -> int:
    """Write a model, whole or not at all, and return how long its file is, with that of its data."""
    from webnn_py.onnx_models.contents import contents_of, initializers_of  # noqa: PLC0415 - an extra
    from webnn_py.onnx_models.external_data import write_external_data  # noqa: PLC0415 - an extra

    if contents_of(proto).parameter_bytes <= LARGEST_FILE:
        with written_whole(out) as fresh:
            fresh.write_bytes(proto.SerializeToString())
        return out.stat().st_size
    data = out.with_name(f"{out.name}.data")
    with written_together(data, out) as (fresh_data, fresh):
        write_external_data(initializers_of(proto), fresh_data, data.name)
        fresh.write_bytes(proto.SerializeToString())
    return out.stat().st_size + data.stat().st_size
