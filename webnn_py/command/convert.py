"""``webnn-py convert``: a simpler model of the same results, in another file."""

from __future__ import annotations

import argparse
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webnn_py.command.comparison import opened_session
from webnn_py.command.declared import AskedInputs
from webnn_py.command.failures import BadInputError, CommandFailedError
from webnn_py.command.layout import in_bytes
from webnn_py.command.loading import load_model, simplified
from webnn_py.command.printing import print_json, print_lines
from webnn_py.command.to_javascript import to_javascript
from webnn_py.command.written_files import check_writable, written_whole
from webnn_py.core.message_text import words_of
from webnn_py.text_tables import counted

if TYPE_CHECKING:
    from onnx import ModelProto

LARGEST_FILE: Final = 2**31 - 2**24
"""Bytes of weights; a file of Protocol Buffers has at most 2 GiB, so larger models have a second file next to it."""


def convert(options: argparse.Namespace) -> int:
    """Freeze inputs, fix shapes, compute what is known, and drop what is not needed.

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
    from webnn_py.onnx_models.reading.contents import contents_of  # noqa: PLC0415 - an extra

    asked = AskedInputs.from_options(model, options)
    known = {name: shape for name in asked.fed if (shape := asked.shapes.of(name)) is not None}
    simpler = simplified(model, options.model, known, asked.frozen).proto
    before, after = contents_of(model._proto).nodes, contents_of(simpler).nodes
    notes: list[str] = []
    written = _write(simpler, out, lambda fresh: notes.extend(_checked(fresh, options.model)))
    if options.json:
        numbers = {"nodes_before": before, "nodes": after, "bytes_before": model._size}
        print_json({"model": str(options.model), "out": str(out), **numbers, "bytes": written, "notes": notes})
    else:
        print_lines(
            [f"{out}: {counted(after, 'node')} of {before:,}, {in_bytes(written)} of {in_bytes(model._size)}", *notes]
        )
    return 0


def _checked(fresh: Path, source: Path) -> list[str]:
    """Check whether onnx and, where it is installed, onnxruntime accept a model that was written.

    Args:
        fresh: its path, next to its data.
        source: the model that it was made of.

    Returns:
        In words, what they do not accept in the source either.

    Raises:
        CommandFailedError: they accept the source, and not what was made of it.
    """
    notes = []
    for name, refusal in (("onnx", checker_refusal), ("onnxruntime", load_refusal)):
        why = refusal(fresh)
        if why is None:
            continue
        if refusal(source) is None:
            raise CommandFailedError(
                f"nothing is written: {name} does not accept the result: {why}; are the shapes and values those that "
                f"the model is made for? `webnn-py info {shlex.quote(str(source))}` finds sizes that fit"
            )
        notes.append(f"  {name} accepts neither it nor {source}: {why}")
    return notes


def checker_refusal(path: Path) -> str | None:
    """Return why onnx's checker refuses a model; None if it accepts it."""
    from onnx import checker  # noqa: PLC0415 - an extra

    try:
        checker.check_model(str(path))
    except Exception as error:  # noqa: BLE001 - it has its own, and Protocol Buffers' for files of 2 GiB and more
        return words_of(error)
    return None


def load_refusal(path: Path) -> str | None:
    """Return why onnxruntime cannot load a model; None if it can, or is not installed."""
    try:
        runtime = import_module("onnxruntime")
    except ImportError:
        return None
    try:
        opened_session(runtime, path)
    except Exception as error:  # noqa: BLE001 - it has a dozen classes of its own, in a private module
        return words_of(error)
    return None


def _write(proto: ModelProto, out: Path, check: Callable[[Path], None]) -> int:
    """Write a model, whole or not at all, and return how long its file is, with that of its data.

    Args:
        proto: the model.
        out: where to.
        check: looks at the files before they take their places, and may raise.
    """
    from webnn_py.onnx_models.reading.contents import contents_of  # noqa: PLC0415 - an extra
    from webnn_py.onnx_models.reading.external_data import write_external_data  # noqa: PLC0415 - an extra

    if contents_of(proto).parameter_bytes <= LARGEST_FILE:
        with written_whole(out) as (fresh,):
            fresh.write_bytes(proto.SerializeToString())
            check(fresh)
        return out.stat().st_size
    data = out.with_name(f"{out.name}.data")
    with written_whole(data, out) as (fresh_data, fresh):
        write_external_data(proto, fresh_data, data.name)
        fresh.write_bytes(proto.SerializeToString())
        with _together({out.name: fresh, data.name: fresh_data}) as folder:
            check(folder / out.name)
    return out.stat().st_size + data.stat().st_size


@contextmanager
def _together(files: Mapping[str, Path]) -> Iterator[Path]:
    """Move files for a while to a folder in which they have the names by which they refer to each other."""
    folder = Path(tempfile.mkdtemp(prefix=".webnn_py_", dir=next(iter(files.values())).parent))
    try:
        for name, path in files.items():
            path.rename(folder / name)  # onnx's checker refuses links
        yield folder
    finally:
        for name, path in files.items():
            if (folder / name).exists():
                (folder / name).rename(path)
        shutil.rmtree(folder, ignore_errors=True)
