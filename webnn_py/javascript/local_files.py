"""Files of one folder, by the paths and URLs that scripts name them with."""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

import attrs


def joined(base: str, reference: str) -> str | None:
    """Return a reference in the file ``base`` as a path from the root; None if it leaves the root."""
    names = [] if reference.startswith("/") else base.split("/")[:-1]
    for name in reference.split("/"):
        if name == ".." and not names:
            return None
        if name == "..":
            names.pop()
        elif name not in {"", "."}:
            names.append(name)
    return "/".join(names)


@attrs.frozen
class Folder:
    """A folder that is the root of ``file:`` URLs: no path, and no link in it, leads out of it."""

    path: Path

    def find(self, reference: str, base: str = "") -> str:
        """Return the name, from the folder and with forward slashes, that a reference in the file ``base`` means.

        Raises:
            TypeError: it is no local file, or leaves the folder.
        """
        parts = urlsplit(reference)
        if parts.scheme not in {"", "file"} or parts.netloc:
            raise TypeError(f"{reference!r} is not a local file")
        name = joined(base, unquote(parts.path))
        if name is None:
            raise TypeError(f"{reference!r} leads out of the folder that scripts may read")
        return name

    def read(self, name: str, most: int | None = None) -> bytes | None:
        """Return a file's bytes; None if there is no such file.

        Raises:
            TypeError: a link leads out of the folder, the file cannot be read, or it has more than ``most`` bytes.
        """
        try:
            file = (self.path / name).resolve()
            if not file.is_relative_to(self.path.resolve()):
                raise TypeError(f"{name!r} leads out of the folder that scripts may read")
            if not file.is_file():
                return None
            with file.open("rb") as opened:
                is_longer = most is not None and os.fstat(opened.fileno()).st_size > most
                data = b"" if is_longer else opened.read(-1 if most is None else most + 1)
        except OSError as error:  # its own text has the path
            raise TypeError(f"{name!r} cannot be read: {error.strerror}") from error
        except ValueError as error:  # a NUL in the name
            raise TypeError(f"{name!r} cannot be read: {error}") from error
        if is_longer or (most is not None and len(data) > most):  # a file may grow while it is read
            raise TypeError(f"{name!r} has more than {most} bytes, which are left of the memory limit")
        return data

    def name_of(self, file: Path) -> str | None:
        """Return the name of a file relative to the folder, as :meth:`find` takes it; None if it is elsewhere."""
        inside = file.resolve().is_relative_to(self.path.resolve())
        return file.resolve().relative_to(self.path.resolve()).as_posix() if inside else None
