"""The order in which the promises of the API settle."""

import pytest

BEGIN = """
const descriptor = {dataType: 'float32', shape: [1], readable: true, writable: true};
const log = (...words) => console.log(words.join(' '));
"""


@pytest.fixture
def order(run):
    """Run the body of an asynchronous function, and return the lines that it printed."""
    return lambda body: run(f"{BEGIN}{body}")


def test_promises_settle_in_the_order_of_the_calls(order):
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
    assert order(body) == ["a1 b1 a2 b2"]


def test_each_settlement_is_a_task_with_its_own_microtasks(order):
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
    assert order(body) == ["first", "microtask of the first", "second"]


def test_destroying_in_a_microtask_of_the_first_read_rejects_the_second(order):
    body = """
      const context = await navigator.ml.createContext();
      const tensor = await context.createTensor(descriptor);
      const reads = [context.readTensor(tensor).then(() => { tensor.destroy(); log('destroyed'); }),
                     context.readTensor(tensor).catch((error) => log(error.name))];
      await Promise.all(reads);
    """
    assert order(body) == ["destroyed", "InvalidStateError"]


@pytest.mark.parametrize("target", ["", ", new Float32Array(1)"])
@pytest.mark.parametrize("destroyed", ["tensor", "context"])
def test_destroy_rejects_the_reads_of_the_same_task(order, destroyed, target):
    body = f"""
      const context = await navigator.ml.createContext();
      const tensor = await context.createTensor(descriptor);
      const reads = [1, 2].map(() => context.readTensor(tensor{target}).catch((error) => error.name));
      {destroyed}.destroy();
      log((await Promise.all(reads)).join());
    """
    assert order(body) == ["InvalidStateError,InvalidStateError"]


@pytest.mark.parametrize("destroyed", ["tensor", "context"])
def test_destroy_leaves_the_error_of_a_read_that_was_refused(order, destroyed):
    body = f"""
      const context = await navigator.ml.createContext();
      const tensor = await context.createTensor({{...descriptor, shape: [2]}});
      const read = context.readTensor(tensor, new Float32Array(1));
      {destroyed}.destroy();
      log(await read.catch((error) => error.name));
    """
    assert order(body) == ["TypeError"]


def test_destroy_rejects_within_the_call_and_reactions_run_after_the_script(order):
    body = """
      const context = await navigator.ml.createContext();
      const tensor = await context.createTensor(descriptor);
      context.lost.then(() => log('lost'));
      context.readTensor(tensor).catch((error) => log('read:', error.name));
      context.destroy();
      try { new MLGraphBuilder(context); } catch (error) { log('builder:', error.name); }
      log('script');
      await context.lost;
    """
    assert order(body) == [
        "builder: InvalidStateError",
        "script",
        "lost",
        "read: InvalidStateError",
    ]


def test_a_rejection_that_a_call_decides_comes_as_a_task(order):
    body = """
      const context = await navigator.ml.createContext();
      const rejected = context.createTensor({dataType: 'float32', shape: [0]});
      rejected.catch((error) => log(error.name));
      Promise.resolve().then(() => log('microtask'));
      log('script');
      await rejected.catch(() => {});
    """
    assert order(body) == ["script", "microtask", "TypeError"]
