"""Calls are checked before anything runs, may be left at any time, and leave nothing behind."""

import gc
import itertools
import types

import numpy as np
import onnx
import pytest
import trio

from spec_tests.support.cells import cells
from webnn_py import InvalidStateError, NotSupportedError
from webnn_py.runtime import Environment
from webnn_py.runtime.generation import (
    Conversation,
    Generation,
    Generator,
    create_generator,
    generate,
)


@pytest.fixture
async def generator(numpy_env, folder_of):
    async with await create_generator(numpy_env, folder_of("genai"), capacity=32) as made:
        yield made
    assert numpy_env.statistics().live_buffers == 0


async def ids(generation):
    return [token.id async for token in generation]


@cells(
    ("prompt", "options", "error", "words"),
    [
        ([1] * 30, {"max_new_tokens": 4}, ValueError, r"sequence 0 has 30 tokens and gets 4; .* capacity of 32, which"),
        ([1] * 33, {}, ValueError, "sequence 0 has 33 tokens; that is beyond the capacity"),
        ([], {}, ValueError, "prompt of sequence 0 is empty"),
        ([[1], []], {}, ValueError, "prompt of sequence 1 is empty"),
        ([384], {}, ValueError, "the token 384; the model's are from 0 to 383"),
        ([-1], {}, ValueError, "the token -1"),
        (b"a", {}, TypeError, "prompt has|prompt is"),
        (5, {}, TypeError, "prompt is 5; it must be a text, tokens, or a list"),
        (bytearray(b"a"), {}, TypeError, r"prompt is bytearray\(b'a'\); it must be a text, tokens, or a list"),
        (memoryview(b"a"), {}, TypeError, "prompt is <memory"),
        (np.array(3), {}, TypeError, r"prompt is array\(3\)"),
        ([1.5], {}, TypeError, r"prompt of sequence 0 is 1.5; it must be a text or tokens"),
        ([1], {"max_new_tokens": 0}, ValueError, "max_new_tokens is 0"),
        ([1], {"max_new_tokens": 1.5}, TypeError, "max_new_tokens is 1.5"),
        ([1], {"temperature": -1}, ValueError, "temperature is -1.0; it must be at least 0"),
        ([1], {"temperature": "hot"}, TypeError, "temperature is 'hot'; it must be a finite number"),
        ([1], {"temperature": float("nan")}, TypeError, "temperature is nan"),
        ([1], {"top_p": 0}, ValueError, "top_p is 0.0; it must be above 0"),
        ([1], {"top_k": -1}, TypeError, "top_k is -1"),
        ([1], {"temperature": 10**400}, TypeError, "temperature is an integer of 1329 bits; it must"),
        ([1], {"repetition_penalty": 0}, ValueError, "repetition_penalty is 0.0; it must be from 1e-30 to 1e30"),
        ([1], {"repetition_penalty": 1e-308}, ValueError, "repetition_penalty is 1e-308; it must be from 1e-30"),
        ("\ud800", {}, ValueError, r"prompt '.ud800' is no text: .* surrogates not allowed"),
        ([1], {"seed": "x"}, TypeError, "seed is 'x'"),
        ([1], {"stop": ["a", ""]}, TypeError, "stop is .*; it must be a text, or several, none of them empty"),
        ([1], {"stop": 5}, TypeError, "stop is 5"),
        ([1], {"stop": map(str, itertools.count())}, ValueError, "stop has more than 64 texts"),
        ([1], {"stop": ["a", 257 * "b"]}, ValueError, "stop has 257 characters; it may have at most 256"),
        ([1, "a"], {}, TypeError, "prompt of sequence 0 is"),
        (range(1 << 60), {}, ValueError, "sequence 0 has 1152921504606846976 tokens; that is beyond the capacity"),
        (4097 * "a", {}, ValueError, "sequence 0 has 4097 characters; it may have at most 4096 at the capacity of 32"),
        ([1], {"logits": 1}, TypeError, "logits is 1"),
    ],
)
async def test_wrong_arguments_are_refused_before_anything_runs(generator, prompt, options, error, words):
    before = generator.session._opened.context.statistics()
    with pytest.raises(error, match=words):
        generate(generator, prompt, **options)
    assert generator.session._opened.context.statistics() == before


async def test_a_text_of_too_many_tokens_is_refused_by_the_first_token(generator):
    generation = generate(generator, 33 * "# ")
    with pytest.raises(InvalidStateError, match="made by the first token"):
        assert generation.prompt_tokens
    with pytest.raises(ValueError, match="beyond the capacity of 32"):
        await anext(generation)
    assert await ids(generation) == []


class PatientTokenizer:
    """A tokenizer whose work ends when the program's other tasks have had a turn."""

    def __init__(self):
        self.began = self.turn = None

    def encode_batch_fast(self, texts, *, add_special_tokens):
        assert (texts, add_special_tokens) == (["hello"], True)
        trio.from_thread.run_sync(self.began.set)
        trio.from_thread.run(self.turn.wait)
        return [types.SimpleNamespace(ids=[1, 2, 3])]

    def decode(self, tokens):
        return " ".join(map(str, tokens))


async def test_other_tasks_go_on_while_tokens_are_made_of_a_text(numpy_env, folder_of):
    tokenizer = PatientTokenizer()
    tokenizer.began, tokenizer.turn = trio.Event(), trio.Event()
    folder = folder_of("genai")
    async with await create_generator(numpy_env, folder, capacity=32, tokenizer=tokenizer) as generator:
        generation = generate(generator, "hello", max_new_tokens=2)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(anext, generation)
            with trio.fail_after(20):
                await tokenizer.began.wait()
                tokenizer.turn.set()
        assert generation.prompt_tokens == (3,)
        conversation = generator.conversation()
        tokenizer.began, tokenizer.turn = trio.Event(), trio.Event()
        earlier = conversation.generate("hello")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(raises_state_error, earlier)
            await tokenizer.began.wait()
            assert len(await ids(conversation.generate([1], max_new_tokens=2))) == 2
            tokenizer.turn.set()


async def raises_state_error(generation):
    with pytest.raises(InvalidStateError, match="went on by a later generate"):
        await anext(generation)


async def test_what_is_no_generator_and_what_was_closed_is_refused(generator, numpy_env, folder_of):
    with pytest.raises(TypeError, match="generator is 5; it must be what create_generator"):
        generate(5, [1])
    with pytest.raises(TypeError, match="environment is 5"):
        await create_generator(5, folder_of("genai"))
    for given, options, words in (
        (5, {}, "folder is 5"),
        ("", {"file": 5}, "file is 5"),
        ("", {"capacity": "a"}, "has neither"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            await create_generator(numpy_env, given, **options)
    with pytest.raises(TypeError, match="tokenizer is 5; it must be the path"):
        await create_generator(numpy_env, folder_of("genai"), tokenizer=5)
    for kind in (Generator, Conversation, Generation):
        with pytest.raises(TypeError, match="no public constructor"):
            kind()
    conversation = generator.conversation()
    conversation.close()
    with pytest.raises(InvalidStateError, match="the conversation is closed"):
        conversation.generate([1])
    with pytest.raises(ValueError, match="batch is 0"):
        generator.conversation(0)
    async with await create_generator(numpy_env, folder_of("genai"), capacity=32) as other:
        pass
    with pytest.raises(InvalidStateError, match="the generator is closed"):
        generate(other, [1])
    for capacity in (0, 257):
        with pytest.raises(ValueError, match=f"capacity is {capacity}; it must be from 1 to 256"):
            await create_generator(numpy_env, folder_of("genai"), capacity=capacity)


async def test_a_loop_that_is_left_leaves_nothing(generator, numpy_env):
    await ids(generate(generator, [1, 2], max_new_tokens=2))  # makes the graph of prompts
    await numpy_env.drain()
    before = numpy_env.statistics()
    async for _ in generate(generator, [1, 2]):
        break
    gc.collect()
    let_go = trio.Event()
    trio.lowlevel.current_trio_token().run_sync_soon(let_go.set)  # after what was asked for in the same way
    await let_go.wait()
    await numpy_env.drain()
    assert numpy_env.statistics().live_bytes == before.live_bytes
    async with generate(generator, [1, 2]) as generation:
        assert (await anext(generation)).id >= 0
    assert await ids(generation) == []
    await numpy_env.drain()
    assert numpy_env.statistics().live_bytes == before.live_bytes


async def test_a_cancelled_token_changes_nothing(generator):
    wanted = await ids(generate(generator, [1, 2, 3], max_new_tokens=6))
    async with generator.conversation() as conversation:
        with trio.CancelScope() as scope:
            scope.cancel()
            await ids(conversation.generate([1, 2, 3]))
        assert scope.cancelled_caught
        assert conversation.tokens == ((),)
        got = [token.id async for token in conversation.generate([1, 2, 3], max_new_tokens=3)]
        with trio.CancelScope() as scope:
            async for _ in conversation.generate([]):
                scope.cancel()
        assert scope.cancelled_caught
        got = list(conversation.tokens[0][3:])
        got += await ids(conversation.generate([], max_new_tokens=6 - len(got)))
        assert got == wanted


async def test_a_lost_device_ends_what_was_on_it(numpy_env, folder_of):
    generator = await create_generator(numpy_env, folder_of("genai"), capacity=32)
    conversation = generator.conversation()
    generation = conversation.generate([1])
    await anext(generation)
    numpy_env.device.context.destroy()
    for again in (lambda: generation, lambda: conversation.generate([2]), lambda: generate(generator, [1])):
        with pytest.raises(InvalidStateError, match=r"generate\(\): the device was lost: .*; create the session again"):
            await anext(again())
    await generator.close()
    async with await create_generator(numpy_env, folder_of("genai"), capacity=32) as other:
        assert len(await ids(generate(other, [1], max_new_tokens=3))) == 3


async def test_a_generator_that_closes_ends_conversations(numpy_env, folder_of):
    generator = await create_generator(numpy_env, folder_of("genai"), capacity=32)
    generations = [generate(generator, [1]), generator.conversation().generate([2])]
    for generation in generations:
        await anext(generation)
    await generator.close()
    for generation in generations:
        with pytest.raises(InvalidStateError, match="its conversation was closed"):
            await anext(generation)
    assert numpy_env.statistics().live_buffers == 0


async def test_conversations_take_turns(generator):
    prompts = [[1], [2, 3], [4, 5, 6]]
    wanted = [await ids(generate(generator, prompt, max_new_tokens=5)) for prompt in prompts]
    found = [[] for _ in prompts]

    async def collect(row):
        found[row] += await ids(generate(generator, prompts[row], max_new_tokens=5))

    async with trio.open_nursery() as nursery:
        for row in range(len(prompts)):
            nursery.start_soon(collect, row)
    assert found == wanted


async def test_sequences_of_a_batch_go_on_where_others_have_filled_the_cache(generator):
    prompts = [[7] * 32, [6] * 29, [1]]
    wanted = [await ids(generate(generator, prompt)) for prompt in prompts]
    assert [len(tokens) for tokens in wanted] == [1, 4, 32]
    tokens = [token async for token in generate(generator, prompts)]
    assert [[token.id for token in tokens if token.sequence == row] for row in range(3)] == wanted


async def test_the_same_seed_draws_the_same_tokens(generator):
    options = {"max_new_tokens": 8, "temperature": 1.5, "seed": 4}
    first, again = [await ids(generate(generator, [1], **options)) for _ in range(2)]
    assert first == again
    other = await ids(generate(generator, [1], **{**options, "seed": 5}))
    assert other != first
    batch = [token async for token in generate(generator, [[1], [2, 2]], **options)]
    assert [token.id for token in batch if token.sequence == 0] == first
    assert await ids(generate(generator, [1], top_k=1, max_new_tokens=4)) == await ids(
        generate(generator, [1], max_new_tokens=4)
    )


async def test_text_ends_at_a_stop_and_at_an_end(generator):
    whole = [token async for token in generate(generator, "hello world", max_new_tokens=20)]
    text = "".join(token.text for token in whole)
    assert whole[-1].finish == "length"
    stop = text[len(text) // 2 :][:3]
    found = [token async for token in generate(generator, "hello world", max_new_tokens=20, stop=stop)]
    assert "".join(token.text for token in found) == text[: text.index(stop)]
    assert found[-1].finish == "stop"
    assert (await ids(generate(generator, "hello world", stop=[stop, text[0]])))[0] == whole[0].id


async def test_a_graph_cache_keeps_decoders(ml, folder_of, tmp_path):
    converted = []

    async def generated():
        async with (
            Environment(ml, "numpy", graph_cache=tmp_path) as env,
            await create_generator(
                env, folder_of("genai"), capacity=32, progress=lambda *step: converted.append(step)
            ) as generator,
        ):
            return await ids(generate(generator, [1, 2], max_new_tokens=4))

    first = await generated()
    assert converted
    converted.clear()
    assert await generated() == first
    assert not converted


async def test_a_penalty_and_the_logits(generator):
    tokens = [token async for token in generate(generator, [7] * 4, max_new_tokens=6, logits=True)]
    for token in tokens:
        assert token.id == int(np.argmax(token.logits))
    penalized = await ids(generate(generator, [7] * 4, max_new_tokens=12, repetition_penalty=1e6))
    assert len({*penalized, 7}) == 13
    assert len(await ids(generate(generator, [7], max_new_tokens=2, temperature=np.int64(1)))) == 2


async def test_models_that_are_not_supported_are_refused(numpy_env, folder_of):
    folder = folder_of("optimum")
    proto = onnx.load(folder_of("positions of the past") / "model.onnx")
    (counted,) = (node for node in proto.graph.node if node.name == "counted")
    counted.op_type, counted.input[:] = "Expand", ["past", "length_1"]  # the same number for each new token
    at = list(proto.graph.node).index(counted)
    proto.graph.node.insert(at, onnx.helper.make_node("Unsqueeze", ["length", "row_1"], ["length_1"]))
    onnx.save(proto, folder_of("positions of the past") / "miscounted.onnx")
    with pytest.raises(
        NotSupportedError, match="the model takes the length of its past in a way that is not supported"
    ):
        await create_generator(numpy_env, folder_of("positions of the past"), file="miscounted.onnx")
    path = folder_of("MultiHeadAttention") / "model.onnx"
    proto = onnx.load(path)
    for node in proto.graph.node:
        if node.op_type == "MultiHeadAttention":
            node.input[5] = ""
    onnx.save(proto, path.with_name("unmasked.onnx"))
    with pytest.raises(NotSupportedError, match=r"MultiHeadAttention 'layers.\d.attention' attends to the whole past"):
        await create_generator(numpy_env, path.parent, file="unmasked.onnx")
    proto = onnx.load(path)
    (visible,) = (node for node in proto.graph.node if node.name == "is_visible")
    visible.input[1] = "is_seen"
    onnx.save(proto, path.with_name("blind.onnx"))
    with pytest.raises(NotSupportedError, match="the logits of 3 tokens in one run and one by one differ by"):
        await create_generator(numpy_env, path.parent, file="blind.onnx")
    await numpy_env.drain()
    assert numpy_env.statistics().live_buffers == 0
    proto = onnx.load(folder / "model.onnx")
    (mask,) = (item for item in proto.graph.input if item.name == "attention_mask")
    proto.graph.input.remove(mask)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 1), np.int64), "attention_mask"))
    onnx.save(proto, folder / "always_visible.onnx")
    with pytest.raises(NotSupportedError, match=r"the model lacks \['attention_mask'\]; its inputs are"):
        await create_generator(numpy_env, folder, file="always_visible.onnx")
