"""Tokens are drawn with their probabilities; text comes when it is certain; folders are read or refused."""

import json
import math

import numpy as np
import pytest

from spec_tests.models.decoder_models import SIZES, Form, genai_config, make_tokenizer, optimum_configs
from webnn_py import OperationError
from webnn_py.runtime.generation.configuration import SearchDefaults, read_configuration
from webnn_py.runtime.generation.sampling import Sampling
from webnn_py.runtime.generation.tokens import TextStream

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


def test_a_small_nucleus_has_what_it_has_of_many_tokens():
    rng = np.random.default_rng(0)
    logits = rng.standard_normal(5000).astype(np.float32) * 3
    order = np.argsort(-logits)
    chances = np.exp(logits[order] - logits.max())
    nucleus = set(order[: int(np.searchsorted(np.cumsum(chances / chances.sum()), 0.5)) + 1].tolist())
    drawn = {Sampling(1.0, top_p=0.5).chosen(logits, rng) for _ in range(1000)}
    assert drawn <= nucleus
    assert len(drawn) > len(nucleus) // 3


def test_penalties_and_bans_change_a_copy():
    logits = np.array([2, -2, 1], np.float32)
    np.testing.assert_array_equal(
        Sampling(repetition_penalty=2.0).adjusted(logits, [0, 1, 1], [2]), np.array([1, -4, -np.inf], np.float32)
    )
    np.testing.assert_array_equal(logits, [2, -2, 1])
    greatest = np.finfo(np.float32).max
    for penalty, wanted in ((1e-320, [greatest, 0, 0]), (1e300, [0, -greatest, 0])):
        changed = Sampling(repetition_penalty=penalty).adjusted(np.array([8, -2, 0], np.float32), [0, 1, 2], [])
        np.testing.assert_allclose(changed, np.array(wanted, np.float32), atol=1e-30)


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


def test_a_stop_across_tokens_is_held_back(tokenizer):
    stream = TextStream(tokenizer, ("###",), [])
    pieces = [stream.push(token) for token in tokenizer.encode("a#b##c###d").ids]
    assert "".join(pieces).startswith("a#b##c")
    assert stream.is_stopped
    kept = TextStream(tokenizer, ("###",), [])
    assert "".join(kept.push(token) for token in tokenizer.encode("a##").ids) == "a"
    assert kept.rest() == "##"


def streamed(tokenizer, tokens, stops=(), before=()):
    stream = TextStream(tokenizer, stops, before)
    pieces = []
    for token in tokens:
        pieces.append(stream.push(token))
        if stream.is_stopped:
            return "".join(pieces)
    return "".join(pieces) + stream.rest()


def test_random_bytes_and_characters_come_as_the_whole_sequence_is_decoded(tokenizer):
    rng = np.random.default_rng(0)
    for _ in range(400):
        text = "".join(rng.choice(["a", " the", "世界", "🙂", "é", "\ufffd"], 8))
        tokens = np.array(tokenizer.encode(text).ids)
        changed = rng.random(len(tokens)) < rng.choice([0, 0.1, 1])
        tokens = np.where(changed, rng.integers(0, 384, len(tokens)), tokens).tolist()
        whole = tokenizer.decode(tokens)
        assert streamed(tokenizer, tokens) == whole
        stop = whole[(at := int(rng.integers(len(whole)))) : at + 3]
        assert streamed(tokenizer, tokens, (stop,)) == whole[: whole.index(stop)]
        split = int(rng.integers(len(tokens)))
        before = tokenizer.decode(tokens[:split])
        if whole.startswith(before):
            assert streamed(tokenizer, tokens[split:], (), tokens[:split]) == whole[len(before) :]


@pytest.mark.parametrize(
    ("text", "ends"), [("👩‍👩‍👧" * 9, [8, 11, 12]), ("a界" * 9 + "界" * 20, [4, 30, 60])], ids=["emoji", "characters"]
)
def test_bytes_that_are_decoded_together_come_as_characters(text, ends):
    tokenizers = pytest.importorskip("tokenizers")
    words = {f"<0x{byte:02X}>": byte for byte in range(256)} | {"a": 256, "<unk>": 257}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(words, [], unk_token="<unk>", byte_fallback=True))  # noqa: S106
    tokenizer.decoder = tokenizers.decoders.Sequence(
        [tokenizers.decoders.ByteFallback(), tokenizers.decoders.Fuse(), tokenizers.decoders.Strip(" ", 1, 0)]
    )
    tokens = tokenizer.encode(text).ids
    stream = TextStream(tokenizer, (), [])
    pieces = [stream.push(token) for token in tokens]
    assert ("".join(pieces), stream.rest()) == (text, "")
    assert max(map(len, pieces)) == 1
    for end in ends:
        before = text.encode()[:end].decode(errors="ignore")
        assert streamed(tokenizer, tokens[end:], (), tokens[:end]) == text[len(before) :]
    assert streamed(tokenizer, [*tokens[:2], 256]) == tokenizer.decode([*tokens[:2], 256])


def test_bytes_that_are_no_text_are_decoded_together_to_a_limit(tokenizer):
    lengths = []

    class Counting:
        def decode(self, tokens):
            lengths.append(len(tokens))
            return "\ufffd" * len(tokens) if 200 in tokens else "a" * len(tokens)

    text = streamed(Counting(), [200] + [201] * 200)
    assert set(text) == {"\ufffd", "a"}
    assert max(lengths) == TextStream.MOST


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
        ({"genai_config": "{"}, "is no JSON"),
        ({"genai_config": "[]"}, "must be a JSON object"),
        ({"genai_config": {}}, "model must be dict; it lacks it"),
        ({"genai_config": {"model": {"decoder": {"filename": 5}}}}, "filename must be str; it has 5"),
        ({"genai_config": changed(model={"decoder": {"inputs": []}})}, "inputs must be dict; it has"),
        ({"genai_config": changed(model={"decoder": {"inputs": {"past_key_names": 5}}})}, "past_key_names must be str"),
        ({"genai_config": changed(model={"bos_token_id": "a"})}, "bos_token_id is 'a'; it must be a token's number"),
        ({"genai_config": changed(search=[])}, "search must be dict"),
        ({"genai_config": changed(search={"top_k": 1.5})}, "top_k is 1.5; it must be an integer from 0"),
        ({"genai_config": "[" * 50000}, "genai_config.json is no JSON, or none that can be read"),
        ({"genai_config": '{"model": ' + "1" * 5000 + "}"}, "genai_config.json is no JSON, or none that can be read"),
        ({"genai_config": " " * (2**24 + 1)}, "genai_config.json has more than 16,777,216 bytes"),
        *(
            ({"genai_config": changed(model={"decoder": {"filename": name}})}, "filename is .*; it must name a file in")
            for name in ("../x.onnx", "/x.onnx", "a/../../x.onnx", "..\\x.onnx", "C:x.onnx", "", ".", "a\0", "\ud800")
        ),
        *(
            ({"genai_config": changed(model={"decoder": {side: {f"{name}_value_names": value}}})}, "must have one %d")
            for side, name in (("inputs", "past"), ("outputs", "present"))
            for value in ("past", "%s", "%d.%d", "%d%", "%99d")
        ),
        ({"genai_config": changed(model={"decoder": {"num_hidden_layers": 10**9}})}, "from 1 to 10,000; it has 10"),
        ({"genai_config": changed(model={"context_length": 2**31})}, "from 1 to 2,147,483,647; it has 2147483648"),
        (
            {"genai_config": changed(model={"context_length": True})},
            "context_length must be an integer .*; it has True",
        ),
        ({"genai_config": changed(model={"bos_token_id": True})}, "bos_token_id is True; it must be a token's number"),
        ({"genai_config": changed(model={"eos_token_id": [1, True]})}, r"eos_token_id is \[1, True\]; it must be"),
        ({"genai_config": changed(search={"do_sample": 1})}, "do_sample is 1; it must be true or false"),
        ({"genai_config": changed(search={"top_k": True})}, "top_k is True; it must be an integer from 0"),
        *(
            (
                {"genai_config": changed(search={name: value})},
                f"{name} is .*; it must be a (finite )?number (from|above) 0",
            )
            for name, values in {
                "temperature": (math.nan, math.inf, -1, True, "1", 10**400),
                "top_p": (math.nan, 7, -0.5, True),
                "repetition_penalty": (0, -1, math.inf, math.nan, False),
            }.items()
            for value in values
        ),
        ({"config": {"is_encoder_decoder": "yes"}}, "is_encoder_decoder must be bool; it has 'yes'"),
        ({"config": {"text_config": 5}}, "text_config must be dict"),
        ({"config": {"num_hidden_layers": 0}}, "none of|num_hidden_layers must be an integer from 1"),
    ],
)
def test_broken_folders_are_refused(tmp_path, files, words):
    with pytest.raises(ValueError, match=words):
        read_configuration(written(tmp_path, **files), None)


def test_what_is_no_file_is_refused_where_a_configuration_should_be(tmp_path):
    written(tmp_path, **{name.removesuffix(".json"): config for name, config in optimum_configs(SIZES["tiny"]).items()})
    (tmp_path / "model.onnx").touch()
    for name in ("generation_config.json", "config.json", "genai_config.json"):
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name).mkdir()
        with pytest.raises(OSError, match=name):
            read_configuration(tmp_path, None)


def test_settings_of_the_search_that_are_not_supported_are_refused(tmp_path):
    config = genai_config(SIZES["tiny"], Form(), "model.onnx")
    config["search"]["num_beams"] = 4
    with pytest.raises(ValueError, match="num_beams is 4; only 1, which switches it off, is supported"):
        read_configuration(written(tmp_path, genai_config=config), None)
