"""A step of a token allocates nothing, uploads the token and its position alone, and compiles nothing."""

from collections import Counter

import numpy as np
import pytest

from spec_tests.support import depth
from spec_tests.support.stand_ins import noted
from webnn_py.runtime.generation import create_generator, generate
from webnn_py.runtime.generation.steps import filled_up, step_of

STEPS = 5


@pytest.fixture
def gpu_calls(monkeypatch, backend, request):
    """Count what a GPU device is asked to make."""
    calls = Counter()
    if backend != "wgpu":
        return calls
    kind = type(request.getfixturevalue("shared_gpu"))

    for name in ("create_buffer", "create_bind_group", "create_compute_pipeline", "create_shader_module"):
        noted(monkeypatch, kind, name, lambda *_, name=name, **__: calls.update([name]))
    return calls


@pytest.mark.parametrize("form", ["genai", "optimum"])
@pytest.mark.sampled(12)
async def test_a_step_is_one_upload_one_dispatch_and_one_read(env, folder_of, gpu_calls, form):
    async with (
        await create_generator(env, folder_of(form), capacity=32, tokenizer=None) as generator,
        generator.conversation() as conversation,
    ):
        async for _ in conversation.generate([1], max_new_tokens=4):  # both sides of the cache have been bound
            pass
        before, calls = env.statistics(), Counter(gpu_calls)
        with env.trace() as trace:
            found = [token async for token in conversation.generate([], max_new_tokens=STEPS)]
        after = env.statistics()
    assert len(found) == STEPS
    asked = [event for event in trace.events if event.what == "enqueued"]
    assert [event.kind for event in asked] == ["write_buffer", "dispatch", "read_buffer"] * STEPS
    lengths = {(event.kind, event.operation.byte_length) for event in asked if event.kind != "dispatch"}
    assert lengths == {("write_buffer", 3 * 4), ("read_buffer", 4)}  # a position, a row and a token; the next token
    assert (after.live_buffers, after.live_bytes) == (before.live_buffers, before.live_bytes)
    assert after.host_copies - before.host_copies == 2 * STEPS
    assert gpu_calls == calls


async def test_thousands_of_tokens_leave_memory_as_it_is(pytestconfig, numpy_env, folder_of):
    env = numpy_env
    rounds, count = depth.amount(pytestconfig, quick=(2, 20), full=(8, 250), thorough=(40, 250))
    async with await create_generator(env, folder_of("genai"), capacity=256, tokenizer=None) as generator:
        levels = set()
        for _ in range(rounds):
            async for _ in generate(generator, [1], max_new_tokens=count):
                pass
            await env.drain()
            levels.add((env.statistics().live_buffers, env.statistics().live_bytes))
        assert len(levels) == 1


def test_new_tokens_are_filled_up_and_end_within_the_capacity():
    assert [filled_up(count) for count in (1, 2, 16, 17, 33)] == [1, 16, 16, 32, 64]
    step = step_of([[5, 6, 7], list(range(40, 70))], [0, 28], 32)
    np.testing.assert_array_equal(step[0], [0, 2, 5, 6, 7, *[0] * 13])
    np.testing.assert_array_equal(step[1], [16, 13, *range(56, 70), 0, 0])
    np.testing.assert_array_equal(step_of([[5, 6, 7]], [3], 32), [[2, 0, 7]])
    np.testing.assert_array_equal(step_of([[5] * 40], [0], 40)[0, :2], [0, 39])


async def test_what_finds_the_greatest_logits_is_kept_for_a_few_numbers_of_them(env, folder_of):
    async with await create_generator(env, folder_of("genai"), capacity=32) as generator:

        async def buffers_after(top_ks):
            for top_k in top_ks:
                options = {"temperature": 1.0, "seed": 1, "max_new_tokens": 2}
                assert len([token async for token in generate(generator, [1], top_k=top_k, **options)]) == 2
            await env.drain()  # the last conversation's buffers are released on the device timeline
            return env.statistics().live_buffers

        few = await buffers_after([2, 3, 4, 5])
        assert await buffers_after([6, 2, 7, 8, 9, 2, 10]) == few
