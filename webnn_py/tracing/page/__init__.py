"""The page of a trace, out of its assets: markup, style, scripts and the trace itself in one text."""

from collections.abc import Mapping
from typing import Any

from webnn_py.html_page import filled_page

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
    """Return a whole HTML page that shows a trace, and asks nothing of any network.

    Args:
        document: a trace in the object form of Chrome's trace-event format, as ``trace.save("x.json")`` writes it.
        title: of the page.

    Raises:
        ValueError: The document has a number that JSON has not: NaN or an infinity.
        TypeError: The document has a value that JSON has not.
    """
    return filled_page(__name__, SCRIPTS, document, title)
