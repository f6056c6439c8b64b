"""Pages that are complete in themselves: markup, style, scripts and data in one text, which loads nothing."""

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, Final

SHARED_SCRIPTS: Final = ("elements", "controls")
"""The scripts of every page, which stand before its own."""


def filled_page(package: str, scripts: Sequence[str], document: Any, title: str) -> str:
    """Return a whole page out of the parts that every page has, and those in a package.

    Args:
        package: the package's name; its ``assets`` are ``toolbar.html``, ``picture.html``, ``page.css`` and scripts.
        scripts: the names of its scripts in the order in which they stand in the page, without ``.js``, after the
            scripts of every page; all share one scope, which is theirs alone.
        document: what the page shows, as JSON can say it.
        title: of the page, which may be any text.

    Raises:
        ValueError: The document has a number that JSON has not: NaN or an infinity.
        TypeError: The document has a value that JSON has not.
    """
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    style = asset(__name__, "page.css") + asset(package, "page.css")
    script = _script(package, tuple(scripts))
    return Template(asset(__name__, "page.html")).substitute(
        title=html.escape(title.encode("utf-8", "replace").decode("utf-8")),  # a lone surrogate has no UTF-8
        policy=f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        toolbar=asset(package, "toolbar.html"),
        picture=asset(package, "picture.html"),
        style=style,
        script=script,
        document=text.replace("<", "\\u003c"),  # no text of the document may end the element that it stands in
    )


@cache
def _script(package: str, names: tuple[str, ...]) -> str:
    shared = [asset(__name__, f"{name}.js") for name in SHARED_SCRIPTS]
    parts = "\n".join([*shared, *(asset(package, f"{name}.js") for name in names)])
    return f"(() => {{\n'use strict';\n\n{parts}}})();\n"


@cache
def asset(package: str, name: str) -> str:
    """Return the text of a file among the ``assets`` of a package."""
    return (files(package) / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return the hash by which a content security policy allows this text and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
