"""Opening files that somebody else names: only regular ones, as reading a pipe or a device may block or never end."""

import errno
import os
import stat
from io import BufferedReader
from os import PathLike
from pathlib import Path


class NotRegularFileError(OSError):
    """A pipe, a socket or a device stands where a file is needed."""


def open_regular(path: str | PathLike[str], *, follow_symlinks: bool = True) -> BufferedReader:
    """Open a regular file for reading bytes.

    Args:
        path: the file.
        follow_symlinks: whether the path may be a symbolic link.

    Raises:
        NotRegularFileError: it is a pipe, a socket or a device, or a link that is not followed.
        OSError: it cannot be opened, or is a folder.
    """
    _check(Path(path).stat(follow_symlinks=follow_symlinks).st_mode, path)  # opening some devices has an effect
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(path, flags if follow_symlinks else flags | getattr(os, "O_NOFOLLOW", 0))
    try:
        _check(os.fstat(handle).st_mode, path)  # another file may have taken its name
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: str | PathLike[str]) -> bytes:
    """Read a whole regular file.

    Raises:
        NotRegularFileError: it is a pipe, a socket or a device.
        OSError: it cannot be read, or is a folder.
    """
    with open_regular(path) as file:
        return file.read()


def _check(mode: int, path: str | PathLike[str]) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise NotRegularFileError(errno.EINVAL, "not a regular file", os.fspath(path))
