"""Text and tokens: a tokenizer of the package ``tokenizers``, and text that comes token by token."""

from __future__ import annotations

import base64
import json
import math
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, final

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.extras import install_command
from webnn_py.regular_files import read_regular

if TYPE_CHECKING:
    from tokenizers import Tokenizer

UNFINISHED: Final = "\ufffd"
"""The end of a text whose last character lacks bytes."""

MOST_UNFINISHED: Final = 3
"""The most bytes of a character that lacks some."""


LISTS: Final = ("normalizers", "pretokenizers", "decoders")
"""The names of the steps of a sequence."""

MOST_GROWTH: Final = 64
"""The most that the steps of a normalizer, a pre-tokenizer or a decoder may lengthen a text, together."""

GROWTHS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("NFC", "NFD", "NFKC", "NFKD", "Nmt", "Lowercase", "Strip", "StripAccents"), 1),
    **dict.fromkeys(("BertPreTokenizer", "CharDelimiterSplit", "Digits", "FixedLength", "Metaspace", "Punctuation"), 1),
    **dict.fromkeys(("Split", "UnicodeScripts", "Whitespace", "WhitespaceSplit", "ByteFallback", "Fuse"), 1),
    "WordPiece": 1,
    "BertNormalizer": 3,
    "BPEDecoder": 3,
    "CTC": 3,
    "ByteLevel": 4,
}
"""What steps lengthen a text, however often they come: normal forms do so once."""

MOST_SPECIAL: Final = 1024
"""The most tokens that a tokenizer puts around a text."""


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a tokenizer from a file ``tokenizer.json``, without its settings for cutting and filling up texts.

    Raises:
        ImportError: the extra ``generation`` is not installed.
        OSError: the file cannot be read.
        ValueError: the file is no tokenizer, or one that makes a text many times as long.
    """
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - an extra, imported when a model needs it
    except ImportError as error:
        raise ImportError(
            f"create_generator(): tokenizers need more: {install_command('generation')} ({error}); without them, give "
            "tokenizer=None and prompts of tokens"
        ) from error
    content = read_regular(path).removeprefix(BOM_UTF8)
    try:
        tokenizer = Tokenizer.from_buffer(content)
    except Exception as error:  # of no class of its own
        raise ValueError(f"create_generator(): {path} cannot be read as a tokenizer: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    _check_growth(path, tokenizer)
    return tokenizer


def _check_growth(path: Path, tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer that would fill the memory, which nothing could interrupt.

    Raises:
        ValueError: a few characters may become very many.
    """
    advice = "if it is trusted, give tokenizer=tokenizers.Tokenizer.from_file(…)"
    for part in ("normalizer", "pre_tokenizer", "decoder"):
        step = getattr(tokenizer, part)
        growth = 1 if step is None else _growth(json.loads(step.__getstate__()))
        if growth > MOST_GROWTH:
            raise ValueError(
                f"create_generator(): the {part} of {path} may make a text more than {MOST_GROWTH} times as long; "
                f"{advice}"
            )
    around = tokenizer.num_special_tokens_to_add(is_pair=False)
    if around > MOST_SPECIAL:
        raise ValueError(
            f"create_generator(): {path} puts {around} tokens around a text; it may be at most {MOST_SPECIAL}; {advice}"
        )


def _growth(step: Mapping[str, Any]) -> float:
    """Return how many times as long a step of a tokenizer can make a text."""
    match step:
        case {"type": "Sequence"}:
            return math.prod((_growth(inner) for name in LISTS for inner in step.get(name, ())), start=1.0)
        case {"type": "Replace", "pattern": {"String": pattern}, "content": content} if pattern:
            return max(1, math.ceil(len(content) / len(pattern)))
        case {"type": "Replace", "content": added} | {"type": "Prepend", "prepend": added}:
            return 1 + len(added)  # before each character: a regular expression may match between them
        case {"type": "Precompiled", "precompiled_charsmap": str(packed)}:
            table = base64.b64decode(packed)
            texts = table[4 + int.from_bytes(table[:4], "little") :].decode(errors="replace").split("\0")
            return max(1, *map(len, texts))
        case {"type": kind}:
            return GROWTHS.get(kind, MOST_GROWTH + 1)
    return MOST_GROWTH + 1


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
        place = self._held.find(stop[0], max(0, len(self._held) - len(stop) + 1))
        while place >= 0 and not stop.startswith(self._held[place:]):
            place = self._held.find(stop[0], place + 1)
        return len(self._held) - place if place >= 0 else 0

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
