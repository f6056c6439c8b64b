"""Random graphs on a device and on numpy, which must give the same: to the bit, or within a computed bound."""

from functools import partial

import trio
from hypothesis import HealthCheck, settings

from spec_tests.support.random_graphs.program import what_is_wrong
from webnn_py import open_ml

SETTINGS = settings(
    max_examples=settings().max_examples // 20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""Of tests that compare random graphs, one for each category."""


async def differences(program, backend, **options):
    """Return, in words, how each output of each round differs between a device and numpy."""
    async with open_ml() as ml:
        contexts = await ml.create_context(backend=backend, **options), await ml.create_context(backend="numpy")
        got, expected = [await program.run(context) for context in contexts]
        for context in contexts:
            await context.drain()
            assert (context.statistics().live_buffers, context.statistics().live_bytes) == (0, 0)
    return [
        f"y{index}, round {number}: {words}"
        for number, (ours, theirs) in enumerate(zip(got, expected, strict=True))
        for index, value in enumerate(program.outputs)
        if (words := what_is_wrong(value, ours[index], theirs[index], backend))
    ]


def assert_same(program, backend, **options):
    """Run a program on a device and on numpy, and compare."""
    wrong = trio.run(partial(differences, program, backend, **options))
    assert not wrong, "\n".join(wrong)
