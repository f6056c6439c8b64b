"""``save_js``: graphs of an ``MLGraphBuilder`` as JavaScript for browsers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from webnn_py.core.operators.operand import MLOperand
from webnn_py.devices.composites.drawn_out import spelled_out
from webnn_py.drawn_graphs import drawing_of
from webnn_py.web_export.folder import write_folder


def save_js(
    graph_outputs: Mapping[str, MLOperand], folder: str | os.PathLike[str], *, title: str | None = None
) -> None:
    """Write a builder's graph to a folder, as JavaScript that builds and runs it with ``navigator.ml``.

    ``model.js`` is the module, ``model.d.ts`` has its types for TypeScript, ``weights.bin`` has the constants, and
    ``index.html`` with ``page.js`` is a page that runs it. The drawing must not be built yet: ``build()`` takes it
    from the builder.

    Args:
        graph_outputs: the operands to compute, by name, as :meth:`~webnn_py.MLGraphBuilder.build` takes them.
        folder: where these files go; it is made if there is none, and files of these names are overwritten.
        title: the page's; the folder's name when absent.

    Raises:
        TypeError: the outputs are refused, as by ``build()``.
        InvalidStateError: the builder has built, or the context is lost.
        ValueError: a constant is a constant buffer, whose contents only its device has; or the weights take more than
            2 GiB, which browsers do not load as one file. Nothing is written then.
        OSError: a file cannot be written.
    """
    path = Path(folder)
    graph = spelled_out(drawing_of("save_js", graph_outputs))
    write_folder(graph, path, path.absolute().name if title is None else title)
