"""Files that are written whole or not at all: a full disk, an error or an interrupt leaves what was there."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(*paths: str | os.PathLike[str]) -> Iterator[tuple[Path, ...]]:
    """Give temporary paths next to files, which replace the files when the block ends, and are removed when it raises.

    Several files are of use together only: they take their places in this order, and all or none stay. Links are
    followed; devices and pipes are given as they are.

    Args:
        paths: the files.

    Raises:
        OSError: a file cannot be written; it names the file, not the temporary one.
    """
    targets = [Path(os.path.realpath(path)) for path in paths]
    fresh = [path.with_name(f"{path.name}.part") if path.is_file() or not path.exists() else path for path in targets]
    replaced = {part: path for part, path in zip(fresh, targets, strict=True) if part != path}
    try:
        yield tuple(fresh)
        _place(replaced)
    except OSError as error:
        for part, path in zip(fresh, paths, strict=True):
            if error.filename is not None and os.fspath(error.filename) == str(part):
                error.filename, error.filename2 = os.fspath(path), None
        raise
    finally:
        for part in replaced:
            part.unlink(missing_ok=True)


def _place(replaced: Mapping[Path, Path]) -> None:
    try:
        for part, path in replaced.items():
            part.replace(path)
    except BaseException:
        if [*replaced][-1].exists():  # what has been placed would have no file, or an older one, next to it
            for part, path in replaced.items():
                if not part.exists():
                    path.unlink(missing_ok=True)
        raise
