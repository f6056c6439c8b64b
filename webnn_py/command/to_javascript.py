"""``webnn-py convert --js``: a folder that runs a model in a browser."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from webnn_py.command.declared import Array, AskedInputs
from webnn_py.command.failures import BadInputError, CommandFailedError
from webnn_py.command.layout import NARROWER, in_bytes
from webnn_py.command.loading import imported, load_model, model_errors, narrowed_types, unreadable
from webnn_py.command.printing import print_json, print_lines
from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.ml import open_ml
from webnn_py.web_export import save_js
from webnn_py.web_export.folder import FILES

if TYPE_CHECKING:
    from webnn_py.onnx_models import OnnxModel


def to_javascript(options: argparse.Namespace) -> int:
    """Import a model and write its folder.

    Raises:
        BadInputError: there is no such model, shapes are open, values do not fit it, or one of the files exists.
        CommandFailedError: it cannot be imported or written, it costs too much, or the extra is not installed.
    """
    out: Path = options.out
    there = [name for name in FILES if (out / name).exists()]
    if there and not options.overwrite:
        raise BadInputError(f"{out} has {', '.join(there)}; --overwrite replaces what has these names")
    if (out.exists() and not out.is_dir()) or not out.parent.is_dir():
        raise BadInputError(f"{out} cannot be written: {out.parent} is no folder, or {out.name} is a file")
    model = load_model(options.model)
    asked = AskedInputs.from_options(model, options)
    fixed = asked.shapes.all_fixed(asked.fed)
    narrow = narrowed_types(model, [])
    trio.run(_save, model, fixed, asked.frozen, options)
    written = sum((out / name).stat().st_size for name in FILES)
    if options.json:
        numbers = {"bytes_before": model._size, "bytes": written, "files": list(FILES), "narrow": narrow}
        print_json({"model": str(options.model), "out": str(out), **numbers})
    else:
        print_lines([f"{out}: {', '.join(FILES)}, {in_bytes(written)} of {in_bytes(model._size)}"])
        if narrow:
            print_lines([f"  {', '.join(f'{name} as {NARROWER[name]}' for name in narrow)}"])
    return 0


async def _save(
    model: OnnxModel, shapes: Mapping[str, tuple[int, ...]], frozen: Mapping[str, Array], options: argparse.Namespace
) -> None:
    async with open_ml() as ml:
        builder = MLGraphBuilder(await ml.create_context(backend="numpy"))
        with model_errors(options.model):
            outputs = await imported(model, builder, shapes, frozen)
        try:
            save_js(outputs, options.out, title=options.model.stem)
        except (TypeError, ValueError) as error:  # broken, or with an output that is an input: converting shows it
            raise CommandFailedError(f"{options.model}: {error}") from error
        except OSError as error:
            raise CommandFailedError(unreadable(options.out, error)) from error
        builder.destroy()
