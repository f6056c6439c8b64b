"""The installed package: the commands for its extras, and the place of its documentation."""

import re
from pathlib import Path
from typing import Final

REQUIREMENT: Final = re.compile(r"""([^;]+?)\s*;\s*extra == ['"]([\w-]+)['"]""")
"""A requirement of an extra, as hatchling writes it: other extras of this package are resolved."""

PACKAGE: Final = Path(__file__).parents[1]


def install_command(extra: str) -> str:
    """Return the command that installs what an extra needs.

    It names the requirements themselves: the package may come from a checkout or a wheel, which are on no index.
    """
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415 - slow to import

    try:
        declared = [match.groups() for text in requires("webnn_py") or () if (match := REQUIREMENT.fullmatch(text))]
    except PackageNotFoundError:  # its folder was copied
        declared = []
    needed = [requirement for requirement, of in declared if of == extra]
    return f"pip install {' '.join(map(repr, needed))}" if needed else f"pip install '.[{extra}]' in its checkout"


def documentation() -> Path:
    """Return the folder of the documentation: in an installed package its own, else the checkout's ``docs``."""
    shipped = PACKAGE / "docs"
    return shipped if shipped.is_dir() else PACKAGE.parent / "docs"


def page(name: str) -> str:
    """Return the path of a page of the documentation, for messages.

    Args:
        name: the page's, such as ``"blocking"``, without ``.md``.
    """
    return str(documentation() / f"{name}.md")
