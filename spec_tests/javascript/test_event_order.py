"""Script tasks, microtasks and timers in the order of the platform, and promises on the script timeline."""

import pytest

from spec_tests.support.scripts import both_engines, lines_of

BEGIN = """
const descriptor = {dataType: 'float32', shape: [1], readable: true, writable: true};
const log = (...words) => console.log(words.join(' '));
"""


async def order(body, engine):
    return await lines_of(f"{BEGIN}(async () => {{ {body} }})().catch((error) => log('failed', error));", engine)


@both_engines
async def test_microtasks_run_after_the_script_and_before_timers(engine, autojump_clock):
    body = """
      setTimeout(() => { log('timer'); Promise.resolve().then(() => log('microtask of the timer')); }, 0);
      setTimeout(() => log('next timer'), 0);
      Promise.resolve().then(() => log('microtask'));
      queueMicrotask(() => log('queued microtask'));
      log('script');
    """
    assert await order(body, engine) == [
        "script",
        "microtask",
        "queued microtask",
        "timer",
        "microtask of the timer",
        "next timer",
    ]


@both_engines
async def test_timers_fire_by_time_and_can_be_cleared(engine, autojump_clock):
    body = """
      setTimeout(() => log('late'), 30);
      setTimeout((...words) => log(...words), 1, 'with', 'arguments');
      clearTimeout(setTimeout(() => log('never'), 10));
      let count = 0;
      const id = setInterval(() => { log('tick', count); if (++count === 3) clearInterval(id); }, 1);
    """
    lines = await order(body, engine)
    assert lines.count("with arguments") == 1
    assert [line for line in lines if line.startswith("tick")] == ["tick 0", "tick 1", "tick 2"]
    assert lines[-1] == "late"
    assert "never" not in lines


@both_engines
async def test_promises_settle_in_the_order_of_the_calls(engine):
    body = """
      const context = await navigator.ml.createContext();
      const [a, b] = await Promise.all([context.createTensor(descriptor), context.createTensor(descriptor)]);
      const done = [];
      const reads = [[a, 'a1'], [b, 'b1'], [a, 'a2'], [b, 'b2']].map(async ([tensor, name]) => {
        await context.readTensor(tensor);
        done.push(name);
      });
      await Promise.all(reads);
      log(...done);
    """
    assert await order(body, engine) == ["a1 b1 a2 b2"]


@both_engines
async def test_each_settlement_is_a_task_with_its_own_microtasks(engine):
    body = """
      const context = await navigator.ml.createContext();
      const tensor = await context.createTensor(descriptor);
      const first = context.readTensor(tensor).then(() => {
        log('first');
        return Promise.resolve().then(() => log('microtask of the first'));
      });
      const second = context.readTensor(tensor).then(() => log('second'));
      await Promise.all([first, second]);
    """
    assert await order(body, engine) == ["first", "microtask of the first", "second"]


@both_engines
async def test_destroying_in_a_microtask_of_the_first_read_rejects_the_second(engine):
    body = """
      const context = await navigator.ml.createContext();
      const tensor = await context.createTensor(descriptor);
      const reads = [context.readTensor(tensor).then(() => { tensor.destroy(); log('destroyed'); }),
                     context.readTensor(tensor).catch((error) => log(error.name))];
      await Promise.all(reads);
    """
    assert await order(body, engine) == ["destroyed", "InvalidStateError"]


@both_engines
async def test_destroy_rejects_within_the_call_and_reactions_run_after_the_script(engine):
    body = """
      const context = await navigator.ml.createContext();
      const tensor = await context.createTensor(descriptor);
      context.lost.then(() => log('lost'));
      context.readTensor(tensor).catch((error) => log('read:', error.name));
      context.destroy();
      try { new MLGraphBuilder(context); } catch (error) { log('builder:', error.name); }
      log('script');
    """
    assert await order(body, engine) == [
        "builder: InvalidStateError",
        "script",
        "lost",
        "read: InvalidStateError",
    ]


@both_engines
async def test_a_rejection_that_a_call_decides_comes_as_a_microtask(engine):
    body = """
      const context = await navigator.ml.createContext();
      const rejected = context.createTensor({dataType: 'float32', shape: [0]});
      rejected.catch((error) => log(error.name));
      Promise.resolve().then(() => log('microtask'));
      log('script');
      await rejected.catch(() => {});
    """
    assert await order(body, engine) == ["script", "TypeError", "microtask"]


@both_engines
async def test_an_exception_in_a_timer_does_not_stop_the_others(engine):
    source = """
      addEventListener('error', (event) => { event.preventDefault(); console.log('error:', event.error.message); });
      setTimeout(() => { throw new Error('mine'); }, 0);
      setTimeout(() => console.log('other'), 0);
    """
    assert await lines_of(source, engine) == ["error: mine", "other"]


@both_engines
async def test_a_program_ends_when_nothing_waits(engine):
    with pytest.raises(AssertionError):
        await lines_of("setTimeout(() => { throw new Error('nobody caught this'); }, 0)", engine)
    assert await lines_of("new Promise(() => {});", engine) == []
