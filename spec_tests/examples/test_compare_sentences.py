"""The network that is drawn by hand computes what its authors publish, and what numpy computes of the same weights."""

import math

import compare_sentences
import numpy as np
import pytest
import real_models

from spec_tests.examples.onnxruntime_peer import assert_near
from webnn_py.runtime import Environment

TOKENS = {
    "The cat sleeps on the sofa.": [101, 1996, 4937, 25126, 2006, 1996, 10682, 1012, 102],
    "naïve café — Ünïcödé words, antidisestablishmentarianism": [
        *(101, 15743, 7668, 1517, 27260, 2616, 1010, 3424, 10521, 4355, 7875, 13602, 3672, 12199, 2964, 102)
    ],
    "snake_case x_1 = y**2 + 3.14": [
        *(101, 7488, 1035, 2553, 1060, 1035, 1015, 1027, 1061, 1008, 1008, 1016, 1009, 1017, 1012, 2403, 102)
    ],
    "日本語 and 中文字 mixed": [101, 1864, 1876, 1950, 1998, 1746, 1861, 100, 3816, 102],
    "5€ or $5? 100%": [101, 1019, 30102, 2030, 1002, 1019, 1029, 2531, 1003, 102],
    "a" * 200: [101, 100, 102],
    "": [101, 102],
}
"""By the package ``tokenizers`` and the model's ``tokenizer.json``."""

PUBLISHED = ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.")
NEARNESS = [[1, 0.6660, 0.1046], [0.6660, 1, 0.1411], [0.1046, 0.1411, 1]]
"""The similarities of these three in the documentation of Sentence Transformers."""


def embedding_by_numpy(weights, ids):
    """The same for one sentence without filling, in double precision."""
    weights = {name: value.astype(np.float64) for name, value in weights.items()}

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def normalized(x, name):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x**2).mean(-1, keepdims=True) + 1e-12)
        return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = normalized(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(6):
        name = f"encoder.layer.{layer}"
        heads = []
        parts = [linear(x, f"{name}.attention.self.{part}") for part in ("query", "key", "value")]
        for query, key, value in zip(*(np.split(part, 12, axis=1) for part in parts), strict=True):
            scores = query @ key.T / math.sqrt(32)
            chances = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(chances / chances.sum(-1, keepdims=True) @ value)
        mixed = linear(np.concatenate(heads, axis=1), f"{name}.attention.output.dense")
        x = normalized(x + mixed, f"{name}.attention.output.LayerNorm")
        inner = linear(x, f"{name}.intermediate.dense")
        inner = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
        x = normalized(x + linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    return x.mean(0) / np.linalg.norm(x.mean(0))


@pytest.fixture
def files(files_of):
    files_of("compare_sentences")


@pytest.mark.sampled(5)
@pytest.mark.usefixtures("files")
async def test_sentences_are_as_near_as_is_published(ml, options):
    async with Environment(ml, **options) as env:
        vectors = await compare_sentences.embeddings(env, PUBLISHED)
    ids = compare_sentences.WordPiece(real_models.get("sentence_words")).ids(PUBLISHED[0])
    with np.errstate(under="ignore"):  # an embedding has an element of 1e-33, whose square is less than float32 has
        np.testing.assert_allclose(vectors @ vectors.T, NEARNESS, atol=1e-4)
        weights = compare_sentences.read_safetensors(real_models.get("sentence_weights"))
        expected = embedding_by_numpy(weights, ids)
    assert_near(vectors[0], expected, "the embedding")


@pytest.mark.parametrize("text", TOKENS, ids=lambda text: text[:12] or "nothing")
def test_text_is_split_as_the_model_was_taught(text, real_file):
    assert compare_sentences.WordPiece(real_file("sentence_words")).ids(text) == TOKENS[text]


def test_what_is_too_long_ends_early(real_file):
    ids = compare_sentences.WordPiece(real_file("sentence_words")).ids("word " * 300)
    assert len(ids) == compare_sentences.LONGEST
    assert ids[-1] == 102
