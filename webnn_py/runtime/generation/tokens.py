"""Text and tokens: a tokenizer of the package ``tokenizers``, and text that comes token by token."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, final

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.distribution import install_command

if TYPE_CHECKING:
    from tokenizers import Tokenizer

UNFINISHED: Final = "\ufffd"
"""The end of a text whose last character lacks bytes."""

LONGEST_CHARACTER: Final = 4
"""The most bytes of a character, and so the most tokens that one may wait for its end."""


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a tokenizer from a file ``tokenizer.json``.

    Raises:
        ImportError: the extra ``generation`` is not installed.
        ValueError: the file is no tokenizer.
    """
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - an extra, imported when a model needs it
    except ImportError as error:
        raise ImportError(
            f"create_generator(): tokenizers need more: {install_command('generation')} ({error}); without them, give "
            "tokenizer=None and prompts of tokens"
        ) from error
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # of no class of its own
        raise ValueError(f"create_generator(): {path} cannot be read as a tokenizer: {error}") from error


@final
class TextStream:
    """The text of tokens that come one after the other; what may be the beginning of a stop is held back.

    Args:
        tokenizer: makes text of tokens; None for no text.
        stops: texts at which a sequence ends.
        before: tokens that come before, whose text the first new one may continue.

    Attributes:
        is_stopped: whether a stop has come.
    """

    CONTEXT: Final = 8
    """The tokens before a new one that are decoded with it: some tokenizers look back to where a word begins."""

    def __init__(self, tokenizer: Tokenizer | None, stops: Sequence[str], before: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._stops = stops
        self._tokens = list(before[-self.CONTEXT :])
        self._known = self._decoded().rstrip(UNFINISHED)
        self._unfinished = 0
        self._held = ""
        self.is_stopped = False

    def _decoded(self) -> str:
        return "" if self._tokenizer is None else self._tokenizer.decode(self._tokens)

    def push(self, token: int) -> str:
        """Add a token; return the text that is certain now."""
        self._tokens.append(token)
        text = self._decoded()
        self._unfinished += 1
        if text.endswith(UNFINISHED) and self._unfinished < LONGEST_CHARACTER:
            return ""
        self._unfinished = 0
        self._held += text[len(self._known) :]
        self._tokens = self._tokens[-self.CONTEXT :]
        self._known = self._decoded()
        found = [place for stop in self._stops if (place := self._held.find(stop)) >= 0]
        if found:
            self.is_stopped = True
            certain, self._held = self._held[: min(found)], ""
            return certain
        longest = max((self._overlap(stop) for stop in self._stops), default=0)
        certain, self._held = self._held[: len(self._held) - longest], self._held[len(self._held) - longest :]
        return certain

    def _overlap(self, stop: str) -> int:
        """Return how much of the end of the text may be the beginning of a stop."""
        most = min(len(stop) - 1, len(self._held))
        return next((length for length in range(most, 0, -1) if self._held.endswith(stop[:length])), 0)

    def rest(self) -> str:
        """Return what was held back, at the end of the sequence."""
        held, self._held = self._held, ""
        unfinished = self._decoded()[len(self._known) :]
        return held + unfinished


@attrs.frozen
class Token:
    """A token that was generated.

    Attributes:
        id: its number.
        text: what it adds to the text; "" where that is not certain yet, or there is no tokenizer.
        sequence: the number of its sequence in the batch.
        finish: why the sequence ends with it: ``"end"`` for a token that ends sequences, ``"stop"`` for a text of
            ``stop``, ``"length"`` for the most tokens; None where it goes on.
        logits: the model's logits, which it was chosen by, if they were asked for: float32, one for each token.
    """

    id: int
    text: str
    sequence: int = 0
    finish: Literal["end", "stop", "length"] | None = None
    logits: NDArray[np.float32] | None = attrs.field(default=None, repr=False, eq=False)
