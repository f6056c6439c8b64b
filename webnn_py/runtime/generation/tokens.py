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
"""The end of a text whose last character lacks bytes: one for all of its bytes, or one for each."""

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

    MOST: Final = 64
    """The most tokens that are decoded together, where the text of the last ones depends on those before."""

    def __init__(self, tokenizer: Tokenizer | None, stops: Sequence[str], before: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._stops = stops
        self._revised = 0
        # Some tokenizers make no character of a run of bytes that begins, or ends, within one.
        most = len(before)
        ends = range(most, max(most - LONGEST_CHARACTER, -1), -1)
        starts = [max(0, most - self.CONTEXT - more) for more in range(LONGEST_CHARACTER)]
        parts = [(start, end) for end in ends for start in starts]
        start, end = min(parts, key=lambda part: self._decoded(before[slice(*part)]).count(UNFINISHED))
        self._tokens = list(before[start:end])
        text = self._decoded(self._tokens)
        self._known = text[: _certain(text)]
        for token in before[end:]:
            self._certain_text(token)
        self._seen = self._uncertain_text().count(UNFINISHED)
        self._held = ""
        self.is_stopped = False

    def _decoded(self, tokens: Sequence[int]) -> str:
        return "" if self._tokenizer is None else self._tokenizer.decode(tokens)

    def push(self, token: int) -> str:
        """Add a token; return the text that is certain now."""
        return self._released(self._unseen(self._certain_text(token)))

    def _certain_text(self, token: int) -> str:
        """Add a token; return what it adds to the text that later ones do not change."""
        self._tokens.append(token)
        text = self._decoded(self._tokens)
        if text.startswith(self._known):
            self._revised = 0
        else:  # bytes that are decoded together: a new character lacks some, or they are no text
            self._revised += 1
            if text.endswith(UNFINISHED) and self._revised < LONGEST_CHARACTER:
                return ""
            self._tokens, self._known, self._revised = self._tokens[-self._revised :], "", 0
            text = self._decoded(self._tokens)
        certain = text[len(self._known) : _certain(text)]
        self._known += certain
        self._drop_first(text)
        return certain

    def _uncertain_text(self) -> str:
        """Return the text of bytes that are no whole character so far."""
        if self._revised:
            return self._decoded(self._tokens[-self._revised :])
        return self._decoded(self._tokens)[len(self._known) :]

    def _drop_first(self, text: str) -> None:
        """Drop the first tokens where there are many: if possible, so that the others' text remains as it is."""
        length = len(self._tokens)
        if length < 2 * self.CONTEXT:
            return
        unknown = len(text) - len(self._known)
        for first in range(length - self.CONTEXT, length - self.CONTEXT - LONGEST_CHARACTER, -1):
            later = self._decoded(self._tokens[first:])
            if (len(later) > unknown and text.endswith(later)) or length >= self.MOST:
                self._tokens = self._tokens[first:]
                self._known = later[: max(0, len(later) - unknown)]
                return

    def _unseen(self, text: str) -> str:
        """Return a text without what it repeats of the unfinished end of the tokens before."""
        same = min(self._seen, len(text) - len(text.lstrip(UNFINISHED)))
        if text:
            self._seen = self._seen - same if same == len(text) else 0
        return text[same:]

    def _released(self, text: str) -> str:
        """Return what is certain of the text that is held back and of new text."""
        self._held += text
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
        certain = self._released(self._unseen(self._uncertain_text()))
        held, self._held = self._held, ""
        return certain + held


def _certain(text: str) -> int:
    """Return the length of a text without its end that the next tokens may change."""
    return max(len(text.rstrip(UNFINISHED)), len(text) - LONGEST_CHARACTER + 1)


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
