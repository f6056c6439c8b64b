"""Files that the command writes: refused before the work where they cannot be, and written whole or not at all."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from webnn_py import written_files
from webnn_py.command.failures import BadInputError, CommandFailedError
from webnn_py.command.loading import unreadable


def check_writable(what: str, path: Path) -> None:
    """Refuse before the work what could not be written after it.

    Args:
        what: the file as the user named it, for the message.
        path: its path.

    Raises:
        BadInputError: it is a folder, there is no such folder to write it in, or that may not be written to.
    """
    if path.is_dir() or not path.parent.is_dir():
        raise BadInputError(f"{what} cannot be written: {path.parent} is no folder, or {path.name} is one")
    if not os.access(path.parent, os.W_OK):
        raise BadInputError(f"{what} cannot be written: nothing may be written in {path.parent}")


def check_ending(option: str, path: Path | None, endings: Iterable[str]) -> None:
    """Refuse the file of an option, if it is given, before the work for it.

    Raises:
        BadInputError: its name has none of these endings, or it cannot be written.
    """
    if path is None:
        return
    if path.suffix.lower() not in endings:
        raise BadInputError(f"{option} {path}: it must end in {', '.join(endings)}")
    check_writable(f"{option} {path}", path)


@contextmanager
def written_whole(*paths: Path, what: str = "") -> Iterator[tuple[Path, ...]]:
    """Give temporary paths, as :func:`webnn_py.written_files.written_whole` does.

    Args:
        paths: the files.
        what: the option that names them, for the message.

    Raises:
        CommandFailedError: a file cannot be written.
    """
    try:
        with written_files.written_whole(*paths) as fresh:
            yield fresh
    except OSError as error:
        raise CommandFailedError(f"{what}{unreadable(paths[-1], error)}") from error
