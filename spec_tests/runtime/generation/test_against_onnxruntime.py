"""Each step's logits are those of onnxruntime's own session, and so are the tokens; on every device."""

import numpy as np
import pytest

from spec_tests.runtime.generation.conftest import CAPACITY, FORMS, MORE_FORMS, TINY
from spec_tests.support import depth
from webnn_py.runtime.generation import create_generator, generate

LENGTHS = (1, 15, 16, 17, CAPACITY - 1, CAPACITY)


def prompt_of(length):
    return [int(token) for token in np.random.default_rng(length).integers(0, TINY.words - 2, length)]


async def check(generator, peer, prompt, count, form):
    """Compare each step of a prompt's continuation."""
    tokens, logits = peer.decode(prompt, count)
    generation = generate(generator, prompt, max_new_tokens=count, logits=True)
    found = [token async for token in generation]
    assert [token.id for token in found] == tokens[: len(found)]
    assert len(found) == count or found[-1].finish == "end"
    tolerance = 0.1 if form == "float16" else 1e-3 if "4 bits" in form else 1e-4
    np.testing.assert_allclose([token.logits for token in found], logits[: len(found)], rtol=0, atol=tolerance)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sampled(36)
async def test_prompts_up_to_the_capacity_give_onnxruntimes_logits(env, folder_of, peer_of, form):
    async with await create_generator(env, folder_of(form), capacity=CAPACITY) as generator:
        for length in LENGTHS:
            count = min(3, CAPACITY + 1 - length)
            await check(generator, peer_of(form), prompt_of(length), count, form)
        with pytest.raises(ValueError, match="33 tokens; that is beyond the capacity of 32"):
            generate(generator, prompt_of(CAPACITY + 1))


@pytest.mark.parametrize("form", ["genai", "genai of 4 bits", "optimum"])
@pytest.mark.sampled(36)
async def test_many_steps_give_onnxruntimes_logits(pytestconfig, env, folder_of, peer_of, form):
    count = depth.amount(pytestconfig, quick=12, full=200, thorough=200)
    async with await create_generator(env, folder_of(form), capacity=216) as generator:
        await check(generator, peer_of(form), prompt_of(16), count, form)
        if depth.is_full(pytestconfig):
            await check(generator, peer_of(form), prompt_of(5), count // 5, form)


@pytest.mark.parametrize("form", MORE_FORMS)
@pytest.mark.sampled(3)
async def test_further_forms_give_onnxruntimes_logits(numpy_env, folder_of, peer_of, form):
    async with await create_generator(numpy_env, folder_of(form), capacity=CAPACITY) as generator:
        await check(generator, peer_of(form), prompt_of(5), 6, form)


@pytest.mark.sampled(12)
async def test_sequences_of_a_batch_and_turns_of_a_conversation_do_not_see_each_other(env, folder_of, peer_of):
    peer = peer_of("genai")
    async with await create_generator(env, folder_of("genai"), capacity=CAPACITY) as generator:
        prompts = [prompt_of(3), prompt_of(14), prompt_of(1)]
        found = [token async for token in generate(generator, prompts, max_new_tokens=4)]
        for row, prompt in enumerate(prompts):
            assert [token.id for token in found if token.sequence == row] == peer.decode(prompt, 4)[0]
        async with generator.conversation() as conversation:
            for turn in (prompt_of(6), prompt_of(2), []):
                before = [*conversation.tokens[0], *turn]
                new = [token.id async for token in conversation.generate(turn, max_new_tokens=3)]
                assert new == peer.decode(before, 3)[0]
                assert conversation.tokens == ((*before, *new),)
