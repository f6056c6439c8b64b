"""The processor: the name under which devices that run on it are listed, and its features."""

import platform
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def processor() -> str:
    """Return the processor's name, if the system reports it."""
    return next(_lines("model name"), "") or platform.processor() or platform.machine()


@cache
def has_vnni() -> bool:
    """Return whether the processor is known to have VNNI, which adds products of bytes without saturation."""
    return not {"avx512_vnni", "avx_vnni"}.isdisjoint(next(_lines("flags"), "").split())


def _lines(name: str) -> Iterator[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    yield from (line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == name)
