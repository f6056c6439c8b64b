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

MOST_UNFINISHED: Final = 3
"""The most bytes of a character that lacks some."""


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
    """The tokens of ``before`` that are decoded with the first new one, and of a run that is no text."""

    MOST_TOKENS: Final = 64
    """The most tokens that wait for a text that ends with a whole character: so long a run is no text."""

    def __init__(self, tokenizer: Tokenizer | None, stops: Sequence[str], before: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._stops = stops
        self._tokens = self._from_a_character(list(before[-self.CONTEXT :]))
        self._context = len(self._tokens)
        self._known = self._decoded()
        self._held = ""
        self.is_stopped = False

    def _decoded(self) -> str:
        return "" if self._tokenizer is None else self._tokenizer.decode(self._tokens)

    def _from_a_character(self, tokens: list[int]) -> list[int]:
        """Return tokens without the first ones that are the end of a character."""
        if self._tokenizer is not None:
            for start in range(min(len(tokens), MOST_UNFINISHED + 1)):
                if not self._tokenizer.decode(tokens[start:]).startswith(UNFINISHED):
                    return tokens[start:]
        return tokens

    def push(self, token: int) -> str:
        """Add a token; return the text that is certain now.

        New tokens are decoded with those of the text before, since some tokenizers look back to where a word begins.
        Both begin with a character: of bytes that begin within one, some tokenizers decode none at all.
        """
        self._tokens.append(token)
        text = self._decoded()
        has_room = len(self._tokens) - self._context < self.MOST_TOKENS
        if text.endswith(UNFINISHED) and has_room:
            return ""
        begin = len(self._known) if text.startswith(self._known) else len(self._known.rstrip(UNFINISHED))
        self._held += text[begin:]
        self._known = text
        if len(text) > begin or not has_room:
            new = self._tokens[self._context :]
            self._tokens = new if has_room else self._from_a_character(new[-self.CONTEXT :])
            self._context = len(self._tokens)
            self._known = self._decoded()
        return self._released()

    def _released(self) -> str:
        """Return what is certain of the text that is held back."""
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
        self._held += self._decoded()[len(self._known) :]
        certain = self._released()
        held, self._held = self._held, ""
        return certain + held


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
