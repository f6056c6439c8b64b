"""Answers of device timelines run at once while the script timeline is idle, and otherwise in their turn."""

import pytest
from trio.testing import wait_all_tasks_blocked

from webnn_py.core.timelines.script_timeline import ScriptTask


@pytest.fixture
async def timeline(ml):
    await wait_all_tasks_blocked()
    return ml.script_timeline


async def test_an_answer_runs_at_once_while_the_script_timeline_is_idle(timeline):
    given, before = [], timeline.statistics().done
    timeline.answer(ScriptTask("first", given.append, (1,)))
    timeline.answer(ScriptTask("second", given.append, (2,)))
    assert given == [1, 2]
    assert timeline.statistics().done == before + 2


async def test_an_answer_does_not_overtake_queued_tasks(timeline):
    given = []
    timeline.enqueue(ScriptTask("first", given.append, (1,)))
    timeline.answer(ScriptTask("second", given.append, (2,)))
    assert given == []
    await timeline.drain()
    assert given == [1, 2]


async def test_no_answer_runs_while_the_script_timeline_is_paused(timeline):
    given = []
    timeline.pause()
    timeline.answer(ScriptTask("answer", given.append, (1,)))
    await wait_all_tasks_blocked()
    assert (given, timeline.queued_operations) == ([], 1)
    assert await timeline.step() == 1
    assert given == [1]
    timeline.resume()
