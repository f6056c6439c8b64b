"""Files of one folder, by the paths and URLs that scripts name them with."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import attrs


@attrs.frozen
class Folder:
    """A folder that is the root of ``file:`` URLs: no path, and no link in it, leads out of it."""

    path: Path

    def find(self, reference: str, base: str = "") -> str:
        """The name, from the folder and with forward slashes, that a reference in the file ``base`` means.

        Raises:
            TypeError: it is no local file, or leaves the folder.
        """
        parts = urlsplit(reference)
        if parts.scheme not in {"", "file"} or parts.netloc:
            raise TypeError(f"{reference!r} is not a local file")
        path = unquote(parts.path)
        names = [] if path.startswith("/") else base.split("/")[:-1]
        for name in path.split("/"):
            if name == ".." and not names:
                raise TypeError(f"{reference!r} leads out of the folder that scripts may read")
            if name == "..":
                names.pop()
            elif name not in {"", "."}:
                names.append(name)
        return "/".join(names)

    def read(self, name: str) -> bytes | None:
        """A file's bytes; None when there is none of the name.

        Raises:
            TypeError: a link leads out of the folder, or the file cannot be read.
        """
        try:
            file = (self.path / name).resolve()
            if not file.is_relative_to(self.path.resolve()):
                raise TypeError(f"{name!r} leads out of the folder that scripts may read")
            return file.read_bytes() if file.is_file() else None
        except OSError as error:  # its own text has the path
            raise TypeError(f"{name!r} cannot be read: {error.strerror}") from error
        except ValueError as error:  # a NUL in the name
            raise TypeError(f"{name!r} cannot be read: {error}") from error

    def name_of(self, file: Path) -> str | None:
        """The name of a file from the folder, as :meth:`find` gives it; None when it lies elsewhere."""
        inside = file.resolve().is_relative_to(self.path.resolve())
        return file.resolve().relative_to(self.path.resolve()).as_posix() if inside else None
