"""Checks of decoders on the device: whether a cache of fixed capacity gives the logits that the model means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from webnn_py.core.errors import NotSupportedError
from webnn_py.runtime.generation.decoder import DecoderSource
from webnn_py.runtime.generation.encoder_decoder import StepSource
from webnn_py.runtime.generation.steps import Cache, LoadedDecoder
from webnn_py.runtime.session import SessionOptions

CHECKED_TOKENS: Final = 3
"""The number of tokens by which a model that appends to its cache is checked."""

MOST_DIFFERENCE_OF_A_STEP: Final = 0.1
"""Of their deviation, by which logits may differ that come of the same numbers: where these are rounded to 8 bits, sums
in another order may round another way. Positions that are wrong make more than half of it."""

MOST_DIFFERENCE: Final = 0.2
"""Of their deviation, by which logits may differ that are computed together and one by one, as of quantized models."""


async def check_growing(decoder: LoadedDecoder, source: DecoderSource | StepSource, cache: Cache) -> None:
    """Compare the logits of a step with a cache of fixed capacity with those of the model as it is.

    The cache, which is empty, is full of random numbers behind its tokens, which the step must not see.

    Raises:
        NotSupportedError: they differ, since the model counts, or hides, in a way that is not known here.
    """
    tokens = [token % source.vocabulary for token in range(1, 1 + min(CHECKED_TOKENS, decoder.capacity))]
    try:
        if len(tokens) == 1:
            return
        await cache.step([tokens[:-1]], [0], wants_likeliest=False, wants_logits=False, greatest=0)
        expected = await _expected(decoder, source, cache, tokens)
        await cache.scramble(len(tokens) - 1)
        found = await _logits(cache, tokens, len(tokens) - 1)
    finally:
        cache.dispose()
    may_come = found != np.finfo(np.float32).min  # the others never do, by the configuration
    scale, difference = np.std(expected), np.sqrt(np.mean((found - expected)[may_come] ** 2))
    if not difference <= MOST_DIFFERENCE_OF_A_STEP * scale:
        raise NotSupportedError(
            f"create_generator(): the logits of a token with a cache of fixed capacity differ by {difference:.3g} from "
            f"those of the model as it is (their deviation is {scale:.3g}): the model takes the length of its past in "
            "a way that is not supported"
        )


async def _expected(
    decoder: LoadedDecoder, source: DecoderSource | StepSource, cache: Cache, tokens: Sequence[int]
) -> NDArray[np.float64]:
    """Return the logits of the last token by the model as it is, with a cache of just the tokens before it."""
    feeds = await cache.contents(len(tokens) - 1)
    model = source.as_it_is(tokens[-1], feeds)
    options = SessionOptions(frozenset(), enable_graph_capture=False, progress=None)
    async with await decoder.environment._open_session("create_generator", model, options) as session:
        results = await session.run({name: array for name, array in feeds.items() if name in session.input_descriptors})
    (logits,) = results.values()
    return np.asarray(logits.data[:, -1], np.float64)


async def check_hiding(decoder: LoadedDecoder) -> None:
    """Compare the logits of a prompt with those of its tokens one by one, for a model that appends to its cache.

    The second cache is full of random numbers, which the model must not see.

    Raises:
        NotSupportedError: they differ, since the model sees what is not in the cache, or does not see what is.
    """
    tokens = [token % decoder.source.vocabulary for token in range(1, 1 + min(CHECKED_TOKENS, decoder.capacity))]
    whole, single = Cache(decoder, 1), Cache(decoder, 1)
    try:
        together = await _logits(whole, tokens, 0)
        await _logits(single, tokens[:1], 0)
        await single.scramble()
        for known in range(len(tokens)):
            apart = await _logits(single, tokens[: known + 1], known)
    finally:
        whole.dispose()
        single.dispose()
    scale, difference = np.std(together), np.sqrt(np.mean((together - apart) ** 2))
    if not difference <= MOST_DIFFERENCE * scale:
        raise NotSupportedError(
            f"create_generator(): the logits of {len(tokens)} tokens in one run and one by one differ by "
            f"{difference:.3g} (their deviation is {scale:.3g}): the model does not hide by attention_mask alone what "
            "is not in its cache, since it has a window, or takes positions from the length of the past"
        )


async def _logits(cache: Cache, tokens: Sequence[int], known: int) -> NDArray[np.float64]:
    result = await cache.step([tokens], [known], wants_likeliest=False, wants_logits=True, greatest=0)
    return np.asarray(result.logits, np.float64)
