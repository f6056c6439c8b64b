"""The graph of a model as a file: what ``webnn-py info --graph FILE`` writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from webnn_py.command.failures import BadInputError
from webnn_py.command.written_files import check_writable, written_whole
from webnn_py.graph_pictures.picture import GraphPicture

FORMS: Final[Mapping[str, Callable[[GraphPicture, str], str]]] = {
    ".svg": lambda picture, _title: picture.to_svg(),
    ".html": GraphPicture.to_html,
    ".mmd": lambda picture, _title: picture.to_mermaid(),
    ".dot": lambda picture, _title: picture.to_dot(),
    ".txt": lambda picture, _title: picture.describe(),
}
"""What is written, by the file's suffix."""


def check_graph_file(path: Path | None) -> None:
    """Refuse a file that could not be written, before anything is done for it.

    Raises:
        BadInputError: its suffix is none of these, or there is no such folder.
    """
    if path is None:
        return
    if path.suffix.lower() not in FORMS:
        raise BadInputError(f"--graph {path}: it must end in {', '.join(FORMS)}")
    check_writable(f"--graph {path}", path)


def write_graph(path: Path, picture: GraphPicture, title: str) -> None:
    """Write a picture in the form that its suffix asks for; a page has the title.

    Raises:
        CommandFailedError: it cannot be written.
    """
    with written_whole(path, what="--graph ") as (fresh,):
        fresh.write_text(FORMS[path.suffix.lower()](picture, title), encoding="utf-8")
