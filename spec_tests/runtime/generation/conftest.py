"""Folders of tiny decoders, and onnxruntime's own session of each."""

import attrs
import pytest

from spec_tests.models.decoder_models import SIZES, Form, write_folder
from spec_tests.support.onnxruntime_decoder import OnnxruntimeDecoder
from webnn_py.runtime import Environment

CAPACITY = 32
TINY = SIZES["tiny"]
EVEN = attrs.evolve(TINY, kv_heads=TINY.heads)
FORMS = {
    "genai": Form("genai"),
    "genai of 4 bits": Form("genai", 4, is_packed=False, window=7, softcap=20.0),
    "optimum": Form("optimum"),
}
MORE_FORMS = {
    "float16": Form("genai", data_type="float16"),
    "MultiHeadAttention": Form("optimum", attention="MultiHeadAttention"),
    "Attention": Form("optimum", attention="Attention"),
    "TensorScatter": Form("optimum", attention="TensorScatter", softcap=20.0),
    "positions of the past": Form("optimum", positions="past", mask_type="int32"),
    "positions by a sum": Form("optimum", positions="sum"),
    "positions of the mask": Form("optimum", 4, positions="mask", attention="Attention", is_causal=True),
}
"""Forms that need not be looked at on each device."""


def size_of(name):
    """Return the size of a form's decoder."""
    return EVEN if name in {"MultiHeadAttention", "Attention"} else TINY


def length_of(name, capacity):
    """Return the length of the caches of a form, in onnxruntime's own session; 0 where they grow."""
    return capacity if name == "TensorScatter" else 0


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory):
    """Return the folder of a form of the tiny decoder, written once."""
    pytest.importorskip("tokenizers")
    made = {}

    def folder(name):
        if name not in made:
            made[name] = write_folder(tmp_path_factory.mktemp("decoder"), size_of(name), (FORMS | MORE_FORMS)[name])
        return made[name]

    return folder


@pytest.fixture(scope="session")
def peer_of(folder_of):
    """Return onnxruntime's own session of a form."""
    made = {}

    def peer(name):
        if name not in made:
            made[name] = OnnxruntimeDecoder(folder_of(name), size_of(name), fixed=length_of(name, CAPACITY))
        return made[name]

    return peer


@pytest.fixture
async def env(ml, options):
    async with Environment(ml, **options) as environment:
        yield environment


@pytest.fixture
async def numpy_env(ml):
    async with Environment(ml, "numpy") as environment:
        yield environment
