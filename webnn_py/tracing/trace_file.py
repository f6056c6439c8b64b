"""Traces that go to a file, as commands offer them."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from webnn_py.core.api.ml import ML
from webnn_py.tracing.traces import check_ending, trace


class TraceFileError(Exception):
    """A trace could not be written; the message says where to and why."""


def check_trace_file(path: Path) -> None:
    """Refuse before the work what could not be written after it.

    Raises:
        ValueError: the name does not end as a trace's must, it is a folder's, there is no such folder, or it may not
            be written to.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file that ends in .json or .html")
    check_ending(path)
    if not path.parent.is_dir():
        raise ValueError(f"{path.parent} is no folder")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{path} may not be written")


@asynccontextmanager
async def traced_to(ml: ML, path: Path | None) -> AsyncIterator[None]:
    """Trace what is done within, with kernels, and write it to a file, also when it raises; without one do nothing.

    Raises:
        TraceFileError: the file cannot be written.
    """
    if path is None:
        yield
        return
    with trace(ml, kernels=True) as recorded:
        try:
            yield
        finally:
            try:
                recorded.save(path)
            except OSError as error:
                raise TraceFileError(f"--trace {path}: {error.strerror or error}") from error
