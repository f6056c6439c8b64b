"""The proposals that ``open_ml(experimental=…)`` switches on; docs/proposals has a page for each."""

from typing import Final

from webnn_py.descriptors import sequence_of
from webnn_py.errors import NotSupportedError
from webnn_py.operators.idl import enumeration

EXPERIMENTS: Final = (
    "compute-policy",
    "int4",
    "subgraph",
    "webgpu-interop",
)
"""The proposals that can be asked for."""


def experiments(value: object) -> frozenset[str]:
    """Convert ``open_ml(experimental=…)``."""
    return frozenset(sequence_of(value, enumeration(EXPERIMENTS), f"names of proposals: {', '.join(EXPERIMENTS)}"))


def check_asked(member: str, asked: frozenset[str], proposal: str, otherwise: str) -> None:
    """Refuse a member of a proposal that was not enabled.

    Args:
        member: what was called or read, as messages have it.
        asked: what ``open_ml()`` was asked for.
        proposal: its name.
        otherwise: what can be used instead.

    Raises:
        NotSupportedError: the proposal was not asked for.
    """
    if proposal not in asked:
        raise NotSupportedError(
            f'{member}: this is of a proposal that open_ml(experimental={{"{proposal}"}}) switches on; {otherwise}'
        )
