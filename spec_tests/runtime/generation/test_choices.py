"""Tokens are drawn with their probabilities; text comes when it is certain; folders are read or refused."""

import json
import math

import numpy as np
import pytest

from spec_tests.models.decoder_models import SIZES, Form, genai_config, make_tokenizer, optimum_configs
from webnn_py import OperationError
from webnn_py.runtime.generation.configuration import SearchDefaults, read_configuration
from webnn_py.runtime.generation.sampling import Sampling
from webnn_py.runtime.generation.tokens import TextStream, load_tokenizer

PRINTED = [*range(33, 127), *range(161, 173), *range(174, 256)]
BYTES = {byte: chr(byte) for byte in PRINTED}
BYTES |= {byte: chr(256 + number) for number, byte in enumerate(byte for byte in range(256) if byte not in BYTES)}
"""The tokens of single bytes of a tokenizer as GPT-2's."""

LOGITS = np.log(np.array([0.1, 0.4, 0.05, 0.25, 0.2], np.float32))


def shares(sampling, count=1500):
    random = np.random.default_rng(3)
    drawn = [sampling.chosen(LOGITS, random) for _ in range(count)]
    return np.bincount(drawn, minlength=len(LOGITS)) / count


@pytest.mark.parametrize(
    ("sampling", "wanted"),
    [
        (Sampling(1.0), [0.1, 0.4, 0.05, 0.25, 0.2]),
        (Sampling(1.0, top_k=2), [0, 0.4 / 0.65, 0, 0.25 / 0.65, 0]),
        (Sampling(1.0, top_p=0.6), [0, 0.4 / 0.65, 0, 0.25 / 0.65, 0]),
        (Sampling(1.0, top_p=0.7), [0, 0.4 / 0.85, 0, 0.25 / 0.85, 0.2 / 0.85]),
        (Sampling(1.0, top_k=3, top_p=0.4), [0, 1, 0, 0, 0]),
        (Sampling(0.0), [0, 1, 0, 0, 0]),
        (Sampling(0.01), [0, 1, 0, 0, 0]),
        (Sampling(5.0, top_k=1), [0, 1, 0, 0, 0]),
        (Sampling(1.0, top_k=99), [0.1, 0.4, 0.05, 0.25, 0.2]),
    ],
)
def test_tokens_are_drawn_with_their_probabilities(sampling, wanted):
    np.testing.assert_allclose(shares(sampling), wanted, atol=0.05)


def test_penalties_and_bans_change_a_copy():
    logits = np.array([2, -2, 1], np.float32)
    np.testing.assert_array_equal(
        Sampling(repetition_penalty=2.0).adjusted(logits, [0, 1, 1], [2]), np.array([1, -4, -np.inf], np.float32)
    )
    np.testing.assert_array_equal(logits, [2, -2, 1])


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0), Sampling(1.0, top_k=2), Sampling(1.0, top_p=0.5)])
def test_logits_that_are_no_numbers_are_refused(sampling):
    with pytest.raises(OperationError, match="greatest logit is nan"), np.errstate(invalid="ignore"):
        sampling.chosen(np.array([1, np.nan, 2], np.float32), np.random.default_rng(0))


@pytest.fixture(scope="module")
def tokenizer():
    pytest.importorskip("tokenizers")
    return make_tokenizer(384)


def test_characters_come_whole(tokenizer):
    text = "Grüße, 世界 🙂!"
    tokens = tokenizer.encode(text).ids
    stream = TextStream(tokenizer, (), [])
    pieces = [stream.push(token) for token in tokens]
    assert "".join(pieces) + stream.rest() == text
    assert not any("\ufffd" in piece for piece in pieces)


@pytest.fixture(scope="module")
def of_bytes():
    """Make a tokenizer as Llama's, of words and bytes, one as GPT-2's, and what makes tokens of bytes for each."""
    tokenizers = pytest.importorskip("tokenizers")
    decoders = tokenizers.decoders
    vocabulary = {
        token: number for number, token in enumerate(["▁hello", "▁", "a", *map("<0x{:02X}>".format, range(256))])
    }
    llama = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    parts = decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)
    llama.decoder = decoders.Sequence(list(parts))
    gpt = make_tokenizer(384)
    return {
        "llama": (llama, lambda data: [3 + byte for byte in data]),
        "gpt": (gpt, lambda data: [gpt.token_to_id(BYTES[byte]) for byte in data]),
    }


def streamed(tokenizer, tokens, before=()):
    stream = TextStream(tokenizer, (), before)
    return "".join([*(stream.push(token) for token in tokens), stream.rest()])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xff\xff\xff\xe2\x82\xacx", "\ufffd\ufffd\ufffd€x"),
        (b"\xe2\x82\xe2\x82\xac", "\ufffd€"),
        (b"a\xf0\x9f\x98", "a\ufffd"),
        (100 * b"\xff" + b"\xe2\x82\xacx", 100 * "\ufffd" + "€x"),
    ],
)
def test_bytes_that_are_no_text_do_not_lose_characters_behind_them(of_bytes, data, text):
    tokenizer, tokens_of = of_bytes["gpt"]
    assert streamed(tokenizer, tokens_of(data)) == text


def test_a_turn_does_not_repeat_the_unfinished_end_of_the_one_before(of_bytes):
    tokenizer, tokens_of = of_bytes["gpt"]
    assert streamed(tokenizer, tokens_of(b"b"), tokens_of(b"a\xff")) == "b"
    assert streamed(tokenizer, tokens_of(b"\x82\xacb"), tokens_of(b"a\xe2")) == "€b"


def test_a_stop_across_tokens_is_held_back(tokenizer):
    stream = TextStream(tokenizer, ("###",), [])
    pieces = [stream.push(token) for token in tokenizer.encode("a#b##c###d").ids]
    assert "".join(pieces).startswith("a#b##c")
    assert stream.is_stopped
    kept = TextStream(tokenizer, ("###",), [])
    assert "".join(kept.push(token) for token in tokenizer.encode("a##").ids) == "a"
    assert kept.rest() == "##"
    unfinished = TextStream(tokenizer, ("\ufffd",), [])
    assert unfinished.push(tokenizer.encode("🙂").ids[0]) + unfinished.rest() == ""
    assert unfinished.is_stopped


def of_steps(kind, steps):
    """Return a tokenizer with steps of a kind."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={"a": 0}, merges=[]))
    setattr(tokenizer, kind, steps(tokenizers))
    return tokenizer


GROWING = {
    "replacements": ("normalizer", lambda t: [t.normalizers.Replace("a", 9 * "a")] * 2),
    "a regular expression": ("normalizer", lambda t: [t.normalizers.Replace(t.Regex(""), 64 * "a")]),
    "an empty text": ("normalizer", lambda t: [t.normalizers.Replace("", 64 * "a")]),
    "beginnings": ("normalizer", lambda t: [t.normalizers.Prepend(8 * "a")] * 2),
    "bytes": ("normalizer", lambda t: [t.normalizers.ByteLevel()] * 4),
    "bytes of words": ("pre_tokenizer", lambda t: [t.pre_tokenizers.ByteLevel()] * 4),
    "replacements in results": ("decoder", lambda t: [t.decoders.Replace("a", 9 * "a")] * 2),
    "spaces in results": ("decoder", lambda t: [t.decoders.BPEDecoder("")] * 4),
}


@pytest.mark.parametrize("case", GROWING)
def test_tokenizers_that_lengthen_texts_without_measure_are_refused(tmp_path, case):
    kind, steps = GROWING[case]
    of_steps(kind, lambda t: getattr(t, f"{kind}s").Sequence(steps(t))).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match=f"the {kind} of .*tokenizer.json may make a text more than 64 times as long"):
        load_tokenizer(tmp_path / "tokenizer.json")


def test_usual_steps_of_tokenizers_are_accepted_and_texts_neither_cut_nor_filled_up(tmp_path):
    def usual(tokenizers):
        found = tokenizers.normalizers
        return found.Sequence(
            [found.NFKC(), found.Prepend("▁"), found.Replace(tokenizers.Regex(" {2,}"), "▁"), found.BertNormalizer()]
        )

    tokenizer = of_steps("normalizer", usual)
    tokenizer.enable_padding(length=1 << 40)
    tokenizer.enable_truncation(2)
    (tmp_path / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8-sig")
    assert load_tokenizer(tmp_path / "tokenizer.json").encode("aaa").ids == [0, 0, 0]


def written(folder, **files):
    for name, content in files.items():
        path = folder / f"{name}.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def test_genai_folders_are_read(tmp_path):
    config = genai_config(SIZES["tiny"], Form(), "model.onnx")
    config["search"] |= {"do_sample": True, "top_k": 7, "min_length": 3}
    found = read_configuration(written(tmp_path, genai_config=config), None)
    assert (found.layout, found.file, found.layers) == ("onnxruntime-genai", tmp_path / "model.onnx", 2)
    assert (found.context_length, found.end_tokens, found.start_token) == (256, {383}, 382)
    assert found.search == SearchDefaults(True, 1.0, 7, 1.0, 1.0, 3, 256)
    assert found.names.past == ("past_key_values.%d.key", "past_key_values.%d.value")
    assert read_configuration(tmp_path, "other.onnx").file == tmp_path / "other.onnx"


def test_optimums_folders_are_read(tmp_path):
    configs = {name.removesuffix(".json"): config for name, config in optimum_configs(SIZES["tiny"]).items()}
    written(tmp_path, **configs)
    with pytest.raises(ValueError, match=r"has none of model.onnx, decoder_model_merged.onnx"):
        read_configuration(tmp_path, None)
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx/decoder_model_merged.onnx").touch()
    found = read_configuration(tmp_path, None)
    assert (found.layout, found.file.name, found.end_tokens) == ("optimum", "decoder_model_merged.onnx", {383})


def changed(**settings):
    """Return a configuration with other settings, at any depth."""

    def merged(old, new):
        if not isinstance(old, dict) or not isinstance(new, dict):
            return new
        return old | {name: merged(old.get(name), value) for name, value in new.items()}

    return merged(genai_config(SIZES["tiny"], Form(), "model.onnx"), settings)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "has neither genai_config.json nor config.json"),
        ({"genai_config": "{"}, "genai_config.json cannot be read as JSON: Expecting property name"),
        ({"genai_config": "[" * 100_000}, "genai_config.json cannot be read as JSON: maximum recursion depth"),
        ({"genai_config": "9" * 5000}, "genai_config.json cannot be read as JSON: Exceeds the limit"),
        ({"genai_config": "[]"}, "must be a JSON object"),
        ({"genai_config": {}}, "model must be dict; it lacks it"),
        ({"genai_config": {"model": {"decoder": {"filename": 5}}}}, "filename must be str; it has 5"),
        ({"genai_config": changed(model={"decoder": {"inputs": []}})}, "inputs must be dict; it has"),
        ({"genai_config": changed(model={"decoder": {"inputs": {"past_key_names": 5}}})}, "past_key_names must be str"),
        ({"genai_config": changed(model={"bos_token_id": "a"})}, "bos_token_id is 'a'; it must be a token's number"),
        ({"genai_config": changed(model={"bos_token_id": True})}, "bos_token_id is True; it must be a token's number"),
        ({"genai_config": changed(model={"eos_token_id": [2, True]})}, "eos_token_id is .*; it must be a token's"),
        *(
            (
                {"genai_config": changed(model={"decoder": {"filename": name}})},
                "filename is .*; it must be in the folder",
            )
            for name in ("../x.onnx", "/x.onnx", "a/../../x.onnx", "c:x.onnx", "..\\x.onnx", "", ".", "a\0", "\ud800")
        ),
        ({"genai_config": changed(model={"decoder": {"num_hidden_layers": 10**12}})}, "it must be at most 10000"),
        (
            {"genai_config": changed(model={"decoder": {"inputs": {"past_key_names": "keys"}}})},
            "past_key_names is 'keys'; it must have %d once",
        ),
        *(
            ({"genai_config": changed(search={name: value})}, f"{name} is {value}; it must be {allowed}")
            for name, value, allowed in (
                ("temperature", True, "a finite number"),
                ("temperature", -1, "a finite number from 0"),
                ("top_p", math.nan, "a finite number"),
                ("repetition_penalty", math.inf, "a finite number"),
                ("do_sample", 1, "true or false"),
                ("min_length", True, "an integer from 0"),
            )
        ),
        ({"genai_config": changed(search=[])}, "search must be dict"),
        ({"genai_config": changed(search={"top_k": 1.5})}, "top_k is 1.5; it must be an integer from 0"),
        ({"config": {"text_config": 5}}, "text_config must be dict"),
        ({"config": {"num_hidden_layers": 0}}, "none of|num_hidden_layers must be an integer from 1"),
    ],
)
def test_broken_folders_are_refused(tmp_path, files, words):
    with pytest.raises(ValueError, match=words):
        read_configuration(written(tmp_path, **files), None)


def test_settings_of_the_search_that_are_not_supported_are_refused(tmp_path):
    config = genai_config(SIZES["tiny"], Form(), "model.onnx")
    config["search"]["num_beams"] = 4
    with pytest.raises(ValueError, match="num_beams is 4; only 1, which switches it off, is supported"):
        read_configuration(written(tmp_path, genai_config=config), None)
