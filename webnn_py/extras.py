"""The commands that install what an extra of the package needs."""

import re
from typing import Final

REQUIREMENT: Final = re.compile(r"""([^;]+?)\s*;\s*extra == ['"]([\w-]+)['"]""")
"""A requirement of an extra, as hatchling writes it: other extras of this package are resolved."""


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
