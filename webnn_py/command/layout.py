"""Lengths and times as text."""

from typing import Final

NARROWER: Final = {"float64": "float32", "int64": "int32"}
"""The narrower types that replace these."""


def in_bytes(length: float) -> str:
    """Return a length in bytes, in a unit that suits it."""
    for unit in ("bytes", "kB", "MB"):
        if length < 1000:
            return f"{length:.0f} {unit}" if unit == "bytes" or length >= 100 else f"{length:.1f} {unit}"
        length /= 1000
    return f"{length:.1f} GB"


def in_time(seconds: float) -> str:
    """Return a duration in milliseconds, or, if it is long, in seconds."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def number(value: float | None) -> str:
    """Return a number in four digits; "none" for none."""
    return "none" if value is None else f"{value:.4g}"
