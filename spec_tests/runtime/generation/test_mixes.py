"""Decoders with random mixes of what decoders are made of: the logits and tokens of onnxruntime's own session."""

import random

import attrs
import numpy as np
import onnxruntime
import pytest

from spec_tests.models.decoder_models import SIZES, Form, Size, write_folder
from spec_tests.runtime.generation.conftest import CAPACITY
from spec_tests.support.onnxruntime_decoder import OnnxruntimeDecoder
from webnn_py import NotSupportedError
from webnn_py.runtime.generation import create_generator, generate

PROMPTS = ([5], list(range(3, 12)), list(range(20, 37)), list(range(40, 40 + CAPACITY)))


def mix(seed):
    """Return the size and the form of a decoder."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    form = {
        "layout": chance.choice(["genai", "optimum", "optimum"]),
        "bits": chance.choice([32, 32, 4]),
        "data_type": chance.choice(["float32", "float32", "float16"]),
        "mask_type": chance.choice(["int64", "int32"]),
    }
    kv_heads = chance.choice([1, 2, 4])
    if form["layout"] == "genai":
        form["rotates"] = chance.choice(["inside", "inside", "outside"])
        form["is_packed"] = form["rotates"] == "inside" and chance.random() < 0.5
        form["window"] = chance.choice([-1, -1, 5, 9])
        form["softcap"] = chance.choice([0.0, 0.0, 20.0])
        form["is_smooth"] = chance.random() < 0.2
    else:
        form["attention"] = chance.choice(["plain", "plain", "MultiHeadAttention", "Attention", "TensorScatter"])
        is_fixed = form["attention"] == "TensorScatter"
        form["positions"] = "input" if is_fixed else chance.choice(["input", "mask", "past", "sum"])
        if form["attention"] == "MultiHeadAttention":
            kv_heads = 4
        elif form["attention"] == "Attention":
            form["softcap"] = chance.choice([0.0, 15.0])
        if form["attention"] != "plain" and not is_fixed:
            # A sum is what the mask is made of, too, so that it is no position where an operator appends.
            form["positions"] = "past" if form["positions"] == "sum" else form["positions"]
            form["is_causal"] = chance.random() < 0.25
    head = chance.choice([16, 32])
    return Size(chance.choice([1, 2]), 64, 4, kv_heads, head, 96, 384, 64), Form(**form)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.sampled(10)
async def test_a_mix_gives_onnxruntimes_logits(numpy_env, tmp_path, seed):
    pytest.importorskip("tokenizers")
    size, form = mix(seed)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    folder = write_folder(tmp_path, size, form, seed)
    fixed = CAPACITY if form.attention == "TensorScatter" else 0
    peer = OnnxruntimeDecoder(folder, size, fixed=fixed, sess_options=options)
    tolerance = 0.1 if form.data_type == "float16" else 1e-3 if form.bits == 4 else 1e-4
    async with await create_generator(numpy_env, folder, capacity=CAPACITY, tokenizer=None) as generator:
        for prompt in PROMPTS:
            tokens, logits = peer.decode(prompt, min(6, CAPACITY + 1 - len(prompt)))
            generation = generate(generator, prompt, max_new_tokens=len(tokens), logits=True)
            found = [token async for token in generation]
            ids = [token.id for token in found]
            same = next((at for at, token in enumerate(ids) if token != tokens[at]), len(ids))
            compared = slice(0, same + 1)  # the logits that the first other token comes of, too
            found_logits = [token.logits for token in found][compared]
            np.testing.assert_allclose(found_logits, logits[: len(found)][compared], rtol=0, atol=tolerance)
            assert same == len(ids) or form.data_type == "float16"  # of which two may be the greatest but for rounding


async def test_positions_of_the_past_are_those_of_one_sequence(numpy_env, tmp_path):
    pytest.importorskip("tokenizers")
    size = attrs.evolve(SIZES["tiny"], layers=1, width=64, inner=64)
    folder = write_folder(tmp_path, size, Form("optimum", positions="past"))
    async with await create_generator(numpy_env, folder, capacity=CAPACITY) as generator:
        with pytest.raises(NotSupportedError, match=r"so 2 sequences cannot be computed together; generate them one"):
            [token async for token in generate(generator, ["a", "b"])]
        assert len([token async for token in generate(generator, "a", max_new_tokens=2)]) == 2
