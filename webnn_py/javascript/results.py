"""Results of test files: plain records that go between processes and into reports."""

from typing import Literal

import attrs

Status = Literal["PASS", "FAIL", "TIMEOUT", "NOTRUN", "PRECONDITION_FAILED"]
HarnessStatus = Literal["OK", "ERROR", "TIMEOUT", "CRASH", "PRECONDITION_FAILED"]


@attrs.define
class SubTest:
    """One sub-test.

    Attributes:
        name: its name; made unique by ``#2``, ``#3`` where a file uses one twice.
        status: what testharness.js reports, or ``NOTRUN`` where it reported nothing.
        message: why it failed.
    """

    name: str
    status: Status
    message: str | None = None


@attrs.define
class FileResult:
    """One variant of one file.

    Attributes:
        id: path and variant.
        harness: what became of the file as a whole.
        message: why that is not ``OK``.
        subtests: in the order in which they ended.
        seconds: wall time.
        log: what scripts wrote, and exceptions that nothing caught.
    """

    id: str
    harness: HarnessStatus
    message: str | None = None
    subtests: list[SubTest] = attrs.field(factory=list)
    seconds: float = 0.0
    log: list[str] = attrs.field(factory=list)


HARNESS = "(harness)"
"""The name under which the file as a whole is expected or not."""
