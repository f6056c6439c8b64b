"""The installed package: the place of its documentation."""

from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[1]


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
