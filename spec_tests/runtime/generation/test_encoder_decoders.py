"""Encoder-decoders: their audio, the tokens of onnxruntime's own sessions, and what is refused."""

from pathlib import Path

import attrs
import numpy as np
import onnx
import pytest
import trio
from onnx import helper

from spec_tests.models.encoder_decoder_models import END, FORCED, MELS, START, Form, write_folder
from spec_tests.support.onnxruntime_encoder_decoder import OnnxruntimeEncoderDecoder
from webnn_py import NotSupportedError
from webnn_py.runtime.generation import create_generator, generate
from webnn_py.runtime.generation.audio import filters, spectra
from webnn_py.runtime.generation.configuration import EncoderConfiguration

FORMS = {
    "merged": Form(),
    "separate, a part of a table": Form(is_merged=False, positions="slice"),
    "rotated and masked": Form(positions="rotary", is_masked=True),
    "spectra": Form(is_merged=False, positions="slice", is_flat=True, hears="spectra"),
}
SUPPRESSED = {"suppressed": [3, START], "suppressed_first": [END]}


@pytest.fixture(scope="session")
def encoded_folder_of(tmp_path_factory):
    """Return the folder of a form, written once."""
    made = {}

    def folder(name):
        if name not in made:
            made[name] = write_folder(tmp_path_factory.mktemp("encoded"), FORMS[name])
        return made[name]

    return folder


def sound(length=360, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, length).astype(np.float32)


def heard_by(form, samples):
    """Return what an encoder of a form reads."""
    if FORMS[form].hears == "samples":
        return {"input_values": samples[None]}
    return {"input_features": spectra(samples, configuration_of_tests())[None]}


def configuration_of_tests():
    return EncoderConfiguration(Path(), Path(), rate=1600, mels=MELS, hop=16, window=40, frames=24)


async def tokens_of(generation):
    return [token async for token in generation]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sampled(24)
async def test_tokens_are_those_of_onnxruntimes_sessions(env, encoded_folder_of, form):
    folder = encoded_folder_of(form)
    peer = OnnxruntimeEncoderDecoder(folder)
    async with await create_generator(env, folder, tokenizer=None) as generator:
        for samples, prompt in ((sound(), []), (sound(200, 1), [START, 5, 6, 9])):
            expected, logits = peer.decode(
                heard_by(form, samples), prompt or [START, FORCED], 12, end=END, **SUPPRESSED
            )
            options = {"max_new_tokens": 12, "logits": True}
            found = await tokens_of(generate(generator, prompt or "", audio=samples, **options))
            assert [token.id for token in found] == expected
            np.testing.assert_allclose([token.logits for token in found], logits, rtol=1e-4, atol=1e-4)


async def test_a_conversation_goes_on_about_one_sound(env, encoded_folder_of):
    folder = encoded_folder_of("merged")
    peer = OnnxruntimeEncoderDecoder(folder)
    async with (
        await create_generator(env, folder, tokenizer=None) as generator,
        generator.conversation(audio=sound()) as conversation,
    ):
        for turn in ([START, 4], [8, 9], []):
            before = [*conversation.tokens[0], *turn]
            new = [token.id for token in await tokens_of(conversation.generate(turn, max_new_tokens=3))]
            first = (
                SUPPRESSED if not conversation.tokens[0][len(turn) + 3 :] else {"suppressed": SUPPRESSED["suppressed"]}
            )
            assert new == peer.decode(heard_by("merged", sound()), before, 3, **first)[0]


@pytest.mark.sampled(12)
async def test_a_token_is_one_upload_one_dispatch_and_one_read(env, encoded_folder_of):
    async with (
        await create_generator(env, encoded_folder_of("merged"), tokenizer=None) as generator,
        generator.conversation(audio=sound()) as conversation,
    ):
        await tokens_of(conversation.generate(max_new_tokens=4))
        before = env.statistics()
        with env.trace() as trace:
            found = await tokens_of(conversation.generate([], max_new_tokens=5))
        after = env.statistics()
    asked = [event for event in trace.events if event.what == "enqueued"]
    assert [event.kind for event in asked] == ["write_buffer", "dispatch", "read_buffer"] * len(found)
    assert (after.live_buffers, after.live_bytes) == (before.live_buffers, before.live_bytes)


async def test_a_cancelled_token_leaves_a_conversation_that_goes_on(numpy_env, encoded_folder_of):
    async with await create_generator(numpy_env, encoded_folder_of("merged"), tokenizer=None) as generator:
        whole = [token.id for token in await tokens_of(generate(generator, audio=sound(), max_new_tokens=6))]
        async with generator.conversation(audio=sound()) as conversation:
            generation = conversation.generate(max_new_tokens=6)
            with trio.move_on_after(0):
                await anext(generation)
            assert conversation.tokens == ((),)
            found = [token.id for token in await tokens_of(conversation.generate(max_new_tokens=3))]
            found += [token.id for token in await tokens_of(conversation.generate(max_new_tokens=3))]
            assert found == whole
        await numpy_env.drain()
        await generator.close()
    await numpy_env.drain()
    assert numpy_env.statistics().live_buffers == 0


async def test_draws_are_the_same_for_a_seed_and_end_at_the_capacity(numpy_env, encoded_folder_of):
    async with await create_generator(numpy_env, encoded_folder_of("merged"), tokenizer=None, capacity=9) as generator:
        options = {"audio": sound(), "temperature": 1.0, "top_k": 30, "seed": 4}
        once, again = [await tokens_of(generate(generator, **options)) for _ in range(2)]
        assert once == again
        assert len(once) == 8
        with pytest.raises(ValueError, match="10 tokens; that is beyond the capacity of 9"):
            generate(generator, [1] * 10, audio=sound())
        await generator.prepare(2, audio=sound())


SOUNDS = [
    (None, "audio is missing; the model has an encoder"),
    ([0.1, 0.2], r"audio is \[0.1, 0.2\]; it must be an array of floats from -1 to 1"),
    (np.zeros(5, np.int16), r"audio is int16 \[5\]; it must be an array of floats"),
    (np.zeros([2, 5], np.float32), r"audio is float32 \[2, 5\]; it must be an array of floats"),
    ({"samples": np.zeros([1, 5])}, r"audio has \['samples'\]; it must have arrays for \['input_values'\]"),
]


@pytest.mark.parametrize(("audio", "refusal"), SOUNDS)
async def test_what_is_no_sound_is_refused(numpy_env, encoded_folder_of, audio, refusal):
    async with await create_generator(numpy_env, encoded_folder_of("merged"), tokenizer=None) as generator:
        with pytest.raises(TypeError, match=refusal):
            generate(generator, audio=audio)
        with pytest.raises(ValueError, match="audio has no samples"):
            generate(generator, audio=np.zeros(0))
        with pytest.raises(ValueError, match="one sequence for each sound"):
            generator.conversation(2, audio=sound())
        with pytest.raises(TypeError, match=r"feeds|input_values"):
            await tokens_of(generate(generator, audio={"input_values": np.zeros([1, 99], np.float64)}))


async def test_a_sound_that_is_too_long_is_refused(numpy_env, encoded_folder_of):
    async with await create_generator(numpy_env, encoded_folder_of("spectra"), tokenizer=None) as generator:
        with pytest.raises(ValueError, match=r"audio has 0\.5 s; the encoder takes at most 0.24"):
            generate(generator, audio=sound(800))


def test_spectra_are_powers_by_frequencies():
    configuration = attrs.evolve(configuration_of_tests(), window=400, rate=16000, hop=160, mels=80, frames=50)
    weights = filters(configuration)
    assert weights.shape == (80, 201)
    # Numbers of the file of filters that comes with the package openai-whisper.
    rows, columns = [0, 1, 1, 10, 40, 40, 79], [1, 1, 2, 10, 42, 43, 192]
    expected = [0.024862595, 0.001990822, 0.022871772, 0.019908218, 0.0054111048, 0.014735566, 0.0031647119]
    np.testing.assert_allclose(weights[rows, columns], expected, rtol=1e-6)
    tone = np.sin(2 * np.pi * 1000 * np.arange(8000) / 16000).astype(np.float32)
    found = spectra(tone, configuration)
    assert found.shape == (80, 50)
    assert set(found[:, 5:45].argmax(0)) == {int((weights[:, 25]).argmax())}  # 1 kHz is frequency 25 of 40 Hz each
    assert found.max() - found.min() == pytest.approx(2)  # eight powers of ten, divided by four


# --- what is refused --------------------------------------------------------------------------------------------


def changed(folder, tmp_path, name, change):
    """Return a folder with one model changed."""
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    model = onnx.load(tmp_path / name)
    change(model.graph)
    onnx.save(model, tmp_path / name)
    return tmp_path


def counts_otherwise(graph):
    """Scale states by the length of the past, which no replacement knows."""
    real = helper.make_node("Cast", ["past"], ["past_real"], to=1)
    scaled = helper.make_node("Mul", ["norm/output", "past_real"], ["norm/scaled"])
    place = next(place for place, node in enumerate(graph.node) if node.output[0] == "lm_head/output")
    graph.node[place].input[0] = "norm/scaled"
    graph.node.insert(place, scaled)
    graph.node.insert(place, real)


def reads_keys_otherwise(graph):
    name = "past_key_values.0.decoder.key"
    (node,) = [node for node in graph.node if node.op_type == "Concat" and name in node.input]
    node.input[0] = "past_negative"
    graph.node.insert(0, helper.make_node("Neg", [name], ["past_negative"], "negative"))


def computes_with_keys(graph):
    place = next(place for place, node in enumerate(graph.node) if node.op_type == "Softmax")
    scores = graph.node[place].input[0]
    graph.node[place].input[0] = "scores_exponential"
    graph.node.insert(place, helper.make_node("Exp", [scores], ["scores_exponential"], "exponential"))


def asks_for_more(graph):
    graph.input.append(helper.make_tensor_value_info("encoder_attention_mask", 7, ["batch", "heard"]))


def lacks_a_cache(graph):
    del graph.output[-1]


LATER = "decoder_with_past_model.onnx"


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (counts_otherwise, "the model takes the length of its past in a way that is not supported"),
        (reads_keys_otherwise, "Neg 'negative' reads 'past_key_values.0.decoder.key'; it must be a Concat"),
        (computes_with_keys, "Exp 'exponential' computes with the keys 'present.0.decoder.key'"),
        (asks_for_more, r"the decoder with a cache has the input \['encoder_attention_mask'\], which is not supported"),
        (lacks_a_cache, r"the decoder with a cache lacks \['present.1.decoder.value'\]"),
    ],
)
async def test_models_that_are_not_understood_are_refused(numpy_env, encoded_folder_of, tmp_path, change, refusal):
    folder = changed(encoded_folder_of("separate, a part of a table"), tmp_path, LATER, change)
    with pytest.raises(NotSupportedError, match=refusal):
        await create_generator(numpy_env, folder, tokenizer=None)
    assert numpy_env.sessions == ()
