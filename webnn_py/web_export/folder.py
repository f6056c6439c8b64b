"""The folder: the module, its declarations, the weights and the page."""

import html
from pathlib import Path
from string import Template
from typing import Final

from webnn_py.core.graph import Graph
from webnn_py.html_page import asset
from webnn_py.web_export.module import module_of
from webnn_py.written_files import written_whole

_PACKAGE: Final = "webnn_py.web_export"

FILES: Final = ("weights.bin", "model.js", "model.d.ts", "page.js", "index.html")
"""The files that are written, in this order."""


def write_folder(graph: Graph, folder: Path, title: str) -> int:
    """Write a graph's folder, made if necessary; other files in it stay as they are.

    Returns:
        The bytes of all files.

    Raises:
        ValueError: a constant's contents are a device's, or there are too many bytes of them; nothing is written.
        OSError: a file cannot be written.
    """
    title = title.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate has no UTF-8
    module = module_of(graph, title)
    texts = {
        "model.js": f"{asset(_PACKAGE, 'head.js')}{module.source}{asset(_PACKAGE, 'running.js')}",
        "model.d.ts": f"{asset(_PACKAGE, 'head.d.ts')}{module.declarations}",
        "page.js": asset(_PACKAGE, "page.js"),
        "index.html": Template(asset(_PACKAGE, "index.html")).substitute(title=html.escape(title)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    with written_whole(*(folder / name for name in FILES)) as fresh:
        for name, path in zip(FILES, fresh, strict=True):
            if name in texts:
                path.write_text(texts[name], encoding="utf-8", newline="\n")
            else:
                with path.open("wb") as file:
                    module.weights.write(file)
    return sum((folder / name).stat().st_size for name in FILES)
