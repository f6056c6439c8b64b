"""Choosing the next token by a model's logits, on the host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.core.errors import OperationError

MOST_ON_DEVICE: Final = 64
"""The most of the greatest logits that a GPU finds itself: it compares each with each of a block."""

Logits = NDArray[np.float32]


@attrs.frozen
class Sampling:
    """How a token is chosen.

    Attributes:
        temperature: the divisor of logits; 0 takes the likeliest token.
        top_k: the number of likeliest tokens of which one is drawn; 0 for all.
        top_p: those of the likeliest tokens are drawn from that together have this probability.
        repetition_penalty: positive logits of earlier tokens are divided by it, negative ones multiplied.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0

    @property
    def is_greedy(self) -> bool:
        """Return whether the likeliest token is taken."""
        return self.temperature == 0 or self.top_k == 1

    def adjusted(self, logits: Logits, earlier: Iterable[int], banned: Iterable[int]) -> Logits:
        """Return logits with the penalty of earlier tokens, and without the tokens that are banned."""
        changed = logits
        if self.repetition_penalty != 1:
            changed = logits.copy()
            tokens = np.unique(np.fromiter(earlier, np.int64))
            found = changed[tokens]
            changed[tokens] = np.where(found > 0, found / self.repetition_penalty, found * self.repetition_penalty)
        places = list(banned)
        if places:
            changed = logits.copy() if changed is logits else changed
            changed[places] = -np.inf
        return changed

    def chosen(self, logits: Logits, random: np.random.Generator) -> int:
        """Return the token that is chosen.

        Raises:
            OperationError: no logit is a number.
        """
        greatest = _greatest(logits)
        if self.is_greedy:
            return int(np.argmax(logits))
        if 0 < self.top_k < len(logits):
            kept = np.argpartition(-logits, self.top_k - 1)[: self.top_k]
            kept = kept[np.lexsort((kept, -logits[kept]))]
            return self.drawn(logits[kept], kept, random)
        if self.top_p < 1:
            # What has a smaller probability makes up less than the rest of the nucleus, so it is outside.
            floor = greatest + self.temperature * min(0.0, np.log((1 - self.top_p) / len(logits)))
            kept = np.flatnonzero(logits >= floor)
            kept = kept[np.argsort(-logits[kept], kind="stable")]
            return self.drawn(logits[kept], kept, random)
        return self.drawn(logits, np.arange(len(logits)), random)

    def drawn(self, logits: Logits, tokens: NDArray[Any], random: np.random.Generator) -> int:
        """Draw one of some tokens, the likeliest of all, in falling order where ``top_p`` is less than 1.

        Raises:
            OperationError: no logit is a number.
        """
        greatest = _greatest(logits)
        with np.errstate(under="ignore", over="ignore"):  # of a temperature near 0
            shares = np.exp((logits.astype(np.float64) - greatest) / self.temperature)
        total = np.cumsum(shares)
        if self.top_p < 1:
            total = total[: int(np.searchsorted(total, self.top_p * total[-1])) + 1]
        place = int(np.searchsorted(total, random.random() * total[-1], side="right"))
        return int(tokens[min(place, len(total) - 1)])


def _greatest(logits: Logits) -> np.float32:
    greatest: np.float32 = np.max(logits)
    if not np.isfinite(greatest):
        raise no_finite_logits(greatest)
    return greatest


def no_finite_logits(greatest: object) -> OperationError:
    """Return the exception for logits of which no token can be chosen."""
    return OperationError(f"the model's greatest logit is {greatest}; check_finite() of its session says why")
