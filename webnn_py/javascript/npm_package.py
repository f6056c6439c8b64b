"""The npm package by which a Node program imports webnn_py: it starts the process that serves the program."""

import io
import json
import tarfile
from pathlib import Path
from typing import Final

from webnn_py.javascript.node_files import own_source
from webnn_py.version import __version__
from webnn_py.written_files import written_whole

_README: Final = """# webnn-py

`import 'webnn-py/register'` gives a Node program `navigator.ml` and WebNN's interfaces, on the devices of the Python
package webnn_py, which has to be installed: the command `webnn-py` is started, or the one that `WEBNN_PY_COMMAND`
names, such as `/path/to/python -m webnn_py`. `WEBNN_PY_OPTIONS` has options of `webnn-py node`.
"""


def write(folder: Path) -> Path:
    """Write the package into a folder, as ``npm pack`` does, and return its path."""
    described = {
        "name": "webnn-py",
        "version": __version__,
        "description": "navigator.ml in Node, by the Python package webnn_py",
        "license": "Apache-2.0",
        "engines": {"node": ">=20"},
        "exports": {"./register": "./register.cjs", "./package.json": "./package.json"},
        "sideEffects": True,
    }
    contents = {
        "package.json": json.dumps(described, indent=2) + "\n",
        "register.cjs": own_source("node_register.cjs"),
        "README.md": _README,
    }
    path = folder / f"webnn-py-{described['version']}.tgz"
    with written_whole(path) as (fresh,), tarfile.open(fresh, "w:gz") as archive:
        for name, text in contents.items():
            data = text.encode()
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return path
