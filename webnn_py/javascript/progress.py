"""A progress bar with counts; on what is no terminal, a line now and then."""

from typing import Self, TextIO

from webnn_py.javascript.expectations import Judged
from webnn_py.javascript.results import FileResult

WIDTH = 28


class Progress:
    """Counts files and sub-tests as they come."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total = total
        self._stream = stream
        self._terminal = stream.isatty()
        self._files = 0
        self._passed = 0
        self._expected = 0
        self._unexpected = 0

    def __enter__(self) -> Self:
        return self

    def add(self, result: FileResult, judged: list[Judged]) -> None:
        """Another file is done."""
        self._files += 1
        self._passed += sum(test.status == "PASS" for test in result.subtests)
        self._expected += sum(one.verdict == "expected failure" for one in judged)
        self._unexpected += sum(one.verdict.startswith("unexpected") for one in judged)
        if self._terminal:
            done = WIDTH * self._files // self._total
            bar = f"[{'#' * done}{'.' * (WIDTH - done)}]"
            self._stream.write(f"\r\x1b[K{bar} {self._counts()}  {result.id}"[:200])
        elif self._files == self._total or self._files % 25 == 0:
            self._stream.write(f"{self._counts()}\n")
        self._stream.flush()

    def _counts(self) -> str:
        return (
            f"{self._files}/{self._total} files  {self._passed:,} passed  {self._expected} expected failures  "
            f"{self._unexpected} unexpected"
        )

    def __exit__(self, *_error: object) -> None:
        if self._terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
