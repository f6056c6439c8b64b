"""The page of a trace, out of its assets: markup, style, scripts and the trace itself in one text."""

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

SCRIPTS = (
    "trace",
    "axis",
    "words",
    "view",
    "palette",
    "boxes",
    "drawing",
    "arrows",
    "details",
    "search",
    "table",
    "input",
    "page",
)
"""In the order in which they stand in the page; each uses only those before it, but within functions."""


def page_of(document: Mapping[str, Any], title: str) -> str:
    """A whole HTML page that shows a trace, and asks nothing of any network.

    Args:
        document: a trace in the object form of Chrome's trace-event format, as ``trace.save("x.json")`` writes it.
        title: of the page.

    Raises:
        ValueError: The document has a number that JSON has not: NaN or an infinity.
        TypeError: The document has a value that JSON has not.
    """
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    style, script = _asset("page.css"), _script()
    return Template(_asset("page.html")).substitute(
        title=html.escape(title.encode("utf-8", "replace").decode("utf-8")),  # a lone surrogate has no UTF-8
        policy=f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        document=text.replace("<", "\\u003c"),  # no text of the trace may end the element that it stands in
    )


@cache
def _script() -> str:
    parts = "\n".join(_asset(f"{name}.js") for name in SCRIPTS)
    return f"(() => {{\n'use strict';\n\n{parts}}})();\n"


@cache
def _asset(name: str) -> str:
    return (files("webnn_py.tracing.page") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """What a content security policy allows by: this text and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
