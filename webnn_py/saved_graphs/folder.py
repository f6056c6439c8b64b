"""The folder of saved graphs: a file for each device and key.

Any number of processes may use one folder. A file appears at once, by the renaming of a finished one, so that readers
see the old graph, the new one, or none. Other files in the folder are left alone. Everything here blocks.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from io import BufferedReader
from pathlib import Path
from typing import Final

import attrs

from webnn_py.devices.saved_code import UnusableFileError
from webnn_py.regular_files import NotRegularFileError, open_regular
from webnn_py.saved_graphs.record import MOST_BYTES, SavedGraph
from webnn_py.saved_graphs.sealed import DIGEST_BYTES, Label, pack, read_contents, read_label

SUFFIX: Final = ".webnn"
UNFINISHED: Final = ".webnn-part"
SECRET: Final = "secret.webnn-key"  # noqa: S105 - a file's name

ABANDONED_SECONDS: Final = 3600.0
"""A file that is unfinished for so long was left by a process that has ended."""


class TooLargeError(Exception):
    """A graph whose file alone is larger than the folder may be."""


@attrs.frozen
class GraphFolder:
    """Saved graphs under keys, each device's apart.

    Attributes:
        path: the folder; the first save makes it.
        most_bytes: what all files together may take. The graphs that were used the longest ago go first.
    """

    path: Path
    most_bytes: int = MOST_BYTES

    def keys(self, device: str) -> list[str]:
        """Return the keys of the graphs that can be loaded for a device, judging by their labels, in order.

        Raises:
            OSError: the folder cannot be read.
        """
        try:
            secret = self._secret()
        except FileNotFoundError:
            return []
        found = []
        for path in self._files():
            with suppress(OSError, UnusableFileError), _opened(path) as file:
                label = read_label(file, secret)
                label.check(device)
                if path == self._file(device, label.key) and _size(file) == file.tell() + label.content_length:
                    found.append(label.key)
        return sorted(found)

    def load(self, device: str, key: str) -> SavedGraph:
        """Return what was saved under a key.

        Raises:
            UnusableFileError: nothing, or nothing that can be loaded.
            OSError: the file cannot be read.
        """
        path = self._file(device, key)
        try:
            with _named(path), _opened(path) as file:
                label = self._label(file, device, key)
                if _size(file) != file.tell() + label.content_length:
                    raise UnusableFileError("it is damaged: it has not the length that was written")
                graph = read_contents(file, label)
        except FileNotFoundError:
            raise UnusableFileError("there is none") from None
        with suppress(OSError):  # it is only used without being noted
            os.utime(path)
        return graph

    def _label(self, file: BufferedReader, device: str, key: str) -> Label:
        label = read_label(file, self._secret())
        label.check(device)
        if label.key != key:
            raise UnusableFileError("it was saved under another key, and renamed")
        return label

    def save(self, device: str, key: str, graph: SavedGraph) -> None:
        """Write a graph down, in the place of what was saved under the key before.

        Raises:
            TooLargeError: it cannot be kept even alone; nothing has changed.
            OSError: the file cannot be written; nothing has changed.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        pieces = pack(graph, key, device, self._secret_made())
        size = sum(map(len, pieces))
        if size > self.most_bytes:
            raise TooLargeError(f"it takes {size} bytes; the folder may have {self.most_bytes}")
        target = self._file(device, key)
        self._make_room(size, target)
        handle, name = tempfile.mkstemp(UNFINISHED, dir=self.path)
        try:
            with _named(target), os.fdopen(handle, "wb") as file:
                for piece in pieces:
                    file.write(piece)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink()
            raise

    def delete(self, device: str, key: str) -> None:
        """Forget what was saved under a key, if anything was.

        Raises:
            OSError: the file cannot be removed.
        """
        self._file(device, key).unlink(missing_ok=True)

    # --- files -----------------------------------------------------------------------------------------------

    def _file(self, device: str, key: str) -> Path:
        """Return the path of a key's graph: keys are any text, so names are digests."""
        place = blake2b(digest_size=DIGEST_BYTES)
        for text in (device, key):
            encoded = text.encode("utf-8", "surrogatepass")
            place.update(len(encoded).to_bytes(8, "little") + encoded)
        return self.path / f"{place.hexdigest()}{SUFFIX}"

    def _files(self, suffix: str = SUFFIX) -> Iterator[Path]:
        with suppress(FileNotFoundError), os.scandir(self.path) as entries:
            for entry in entries:
                if entry.name.endswith(suffix) and entry.is_file(follow_symlinks=False):
                    yield self.path / entry.name

    def _make_room(self, size: int, target: Path) -> None:
        """Remove the graphs that were used the longest ago, and what ended processes have left unfinished."""
        for path in self._files(UNFINISHED):
            with suppress(FileNotFoundError):  # another process was faster, here and below
                if path.stat().st_mtime < time.time() - ABANDONED_SECONDS:
                    path.unlink()
        kept = []
        for path in self._files():
            with suppress(FileNotFoundError):
                status = path.stat()
                if path != target:
                    kept.append((status.st_mtime_ns, path, status.st_size))
        total = size + sum(length for _, _, length in kept)
        for _, path, length in sorted(kept):
            if total <= self.most_bytes:
                return
            path.unlink(missing_ok=True)
            total -= length

    # --- the secret ------------------------------------------------------------------------------------------

    def _secret(self) -> bytes:
        """Return the secret that this folder's files are sealed with.

        Raises:
            FileNotFoundError: there is none, and so no graph.
            PermissionError: others could have read or written it.
        """
        with _named(self.path / SECRET), _opened(self.path / SECRET) as file:
            status = os.fstat(file.fileno())
            if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o077):
                raise PermissionError(f"{self.path / SECRET} must be this user's and readable by nobody else")
            secret = file.read(DIGEST_BYTES + 1)
        if len(secret) != DIGEST_BYTES:
            raise FileNotFoundError(f"{self.path / SECRET} is damaged")
        return secret

    def _secret_made(self) -> bytes:
        """Return the secret, made if there is none; if two processes make one at once, both use the same."""
        with suppress(FileNotFoundError):
            return self._secret()
        handle, name = tempfile.mkstemp(UNFINISHED, dir=self.path)  # for this user alone
        try:
            with _named(self.path / SECRET), os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(DIGEST_BYTES))
            _publish(Path(name), self.path / SECRET)
        finally:
            Path(name).unlink(missing_ok=True)
        return self._secret()


def _publish(made: Path, target: Path) -> None:
    """Give a finished file its name, unless another process has just given it to another; a damaged one goes."""
    if target.exists() and target.stat().st_size == DIGEST_BYTES:
        return
    with suppress(FileNotFoundError):
        if target.stat().st_size != DIGEST_BYTES:
            target.unlink()
    try:
        os.link(made, target)
    except FileExistsError:
        pass
    except OSError:  # a file system without links: the last one wins, and what others sealed in between is lost
        made.replace(target)


def _opened(path: Path) -> BufferedReader:
    """Return a regular file, open for reading; a link, or what would make the reader wait, is none.

    Raises:
        FileNotFoundError: there is no such file.
        UnusableFileError: it is no regular file.
    """
    try:
        return open_regular(path, follow_symlinks=False)
    except (NotRegularFileError, IsADirectoryError):
        raise UnusableFileError(f"{path} must be a regular file, and no link") from None


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in errors of reading and writing, which name none: a full disk, one that fails."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _size(file: BufferedReader) -> int:
    return os.fstat(file.fileno()).st_size
