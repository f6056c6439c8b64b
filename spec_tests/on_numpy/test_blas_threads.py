"""Products are spread over OpenBLAS' threads while processors are free, and stay on one while others have them."""

from threading import Barrier, Thread

import attrs
import numpy as np
import pytest

from spec_tests.support.stand_ins import failing
from webnn_py.devices.numpy.routines import blas_threads
from webnn_py.devices.numpy.routines.blas_threads import (
    ALWAYS_SPREAD,
    AT_A_TIME,
    LONGEST_PAUSE,
    SHORTEST_PAUSE,
    UNSPREAD,
    WORTH_SPREADING,
    OpenBlas,
    ProductThreads,
    loaded_openblas,
)

GIVEN = 8
QUICK = 1e-5
LATE = 0.025


@attrs.define(slots=False)
class Machine:
    """An OpenBLAS with a clock: each product takes ``seconds`` on several threads and no time on one."""

    threads: int = GIVEN
    now: float = 1000.0
    seconds: float = QUICK
    used: list[int] = attrs.field(factory=list)

    def set_threads(self, threads):
        self.threads = threads

    def matmul(self, _a, _b, *, out):
        self.used.append(self.threads)
        if self.threads > 1:
            self.now += self.seconds

    def product_threads(self):
        return ProductThreads(OpenBlas(lambda: self.threads, self.set_threads), lambda: self.now)


@pytest.fixture
def machine(monkeypatch):
    machine = Machine()
    monkeypatch.setattr(blas_threads.np, "matmul", lambda *given, out: machine.matmul(*given, out=out))
    return machine


def factors(rows, inner, columns, stack=()):
    """A product's operands and output that take no memory worth speaking of."""
    shapes = (rows, inner), (inner, columns), (rows, columns)
    return [np.broadcast_to(np.float32(1), (*stack, *shape)) for shape in shapes]


MIDDLING = factors(32, 256, 256)


@pytest.mark.parametrize(
    ("rows", "inner", "columns", "expected"),
    [
        (64, UNSPREAD // 2**12, 64, GIVEN),  # OpenBLAS takes one thread itself
        (64, UNSPREAD // 2**12 + 1, 64, 1),
        (64, WORTH_SPREADING // 2**12 - 1, 64, 1),
        (64, WORTH_SPREADING // 2**12, 64, GIVEN),
        (1, 768, 768, GIVEN),  # a vector gains sooner
        (768, 768, 1, GIVEN),
        (2, 512, 512, 1),
    ],
)
def test_small_products_are_not_spread_on_an_idle_machine(machine, rows, inner, columns, expected):
    machine.product_threads().multiply(*factors(rows, inner, columns))
    assert machine.used == [expected]
    assert machine.threads == GIVEN


def test_every_product_is_spread_while_none_is_late(machine):
    threads = machine.product_threads()
    for _ in range(1000):
        threads.multiply(*MIDDLING)
    assert set(machine.used) == {GIVEN}


def test_after_a_late_product_others_stay_on_one_thread_for_a_while(machine):
    threads = machine.product_threads()
    machine.seconds = LATE
    threads.multiply(*MIDDLING)
    machine.seconds = QUICK
    threads.multiply(*MIDDLING)
    machine.now += SHORTEST_PAUSE - QUICK
    threads.multiply(*factors(1, 1024, 1024))
    machine.now += 2 * QUICK
    threads.multiply(*MIDDLING)
    assert machine.used == [GIVEN, 1, 1, GIVEN]
    assert machine.threads == GIVEN


def test_products_so_large_that_waits_do_not_matter_are_spread_always(machine):
    threads = machine.product_threads()
    machine.seconds = LATE
    threads.multiply(*MIDDLING)
    threads.multiply(*factors(1024, ALWAYS_SPREAD // 2**20, 1024))
    assert machine.used == [GIVEN, GIVEN]


def test_pauses_grow_while_products_come_late_and_are_short_again_afterwards(machine):
    threads = machine.product_threads()

    def seconds_of_pause():
        began = machine.now
        while True:
            machine.now += SHORTEST_PAUSE / 4
            machine.seconds = 0
            threads.multiply(*MIDDLING)
            if machine.used[-1] == GIVEN:
                return machine.now - began

    lengths = []
    for _ in range(12):
        machine.seconds = LATE
        threads.multiply(*MIDDLING)
        lengths.append(seconds_of_pause())
    doubling = [min(SHORTEST_PAUSE * 2**count, LONGEST_PAUSE) for count in range(12)]
    np.testing.assert_allclose(lengths, doubling, atol=SHORTEST_PAUSE / 2)
    machine.now += 2 * LONGEST_PAUSE
    machine.seconds = LATE
    threads.multiply(*MIDDLING)
    assert seconds_of_pause() < 2 * SHORTEST_PAUSE


def test_what_products_take_at_best_says_which_is_late(machine):
    threads = machine.product_threads()
    large = factors(512, 512, 512)
    machine.seconds = 0.1
    threads.multiply(*large)  # a machine may be as slow as this
    threads.multiply(*large)
    machine.seconds = 0.002
    threads.multiply(*large)
    machine.seconds = 0.1
    threads.multiply(*large)
    threads.multiply(*large)
    assert machine.used == [GIVEN, GIVEN, GIVEN, GIVEN, 1]


def test_a_product_that_is_slow_by_its_shape_is_not_late(machine):
    threads = machine.product_threads()
    machine.seconds = 0.001
    threads.multiply(*factors(512, 512, 512))
    machine.seconds = 0.01  # of a matrix that is read once
    for _ in range(3):
        threads.multiply(*factors(2, 4096, 4096))
    assert machine.used == [GIVEN] * 4


def test_the_rest_of_a_stack_stays_on_one_thread_when_its_beginning_is_late(machine):
    threads = machine.product_threads()
    machine.seconds = LATE
    threads.multiply(*factors(128, 128, 128, stack=(4, 12)))
    at_a_time = AT_A_TIME // 128**3
    assert machine.used == [GIVEN] + [1] * (4 * -(-12 // at_a_time) - 1)


def test_the_number_of_threads_is_the_users_again_when_the_last_of_several_products_is_done(machine):
    threads = machine.product_threads()
    both = Barrier(2)

    def wait(_a, _b, *, out):
        both.wait()
        machine.used.append(machine.threads)
        both.wait()

    machine.matmul = wait
    workers = [Thread(target=threads.multiply, args=factors(64, 128, 64)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert machine.used == [1, 1]
    assert machine.threads == GIVEN


def test_the_number_of_threads_is_the_users_again_after_a_product_that_raises(machine):
    machine.matmul = failing(MemoryError())
    with pytest.raises(MemoryError):
        machine.product_threads().multiply(*factors(64, 128, 64))
    assert machine.threads == GIVEN


def test_a_user_who_wants_one_thread_is_left_alone(machine):
    machine.threads = 1
    threads = machine.product_threads()
    for shape in [(64, 128, 64), (32, 256, 256), (1024, 1024, 1024)]:
        threads.multiply(*factors(*shape))
    machine.threads = 3
    assert machine.used == [1, 1, 1]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((40, 200), (200, 180)),
        ((3, 2, 128, 130), (3, 2, 130, 128)),
        ((5, 128, 130), (130, 128)),
        ((128, 130), (9, 130, 128)),
        ((1, 4, 128, 130), (3, 1, 130, 128)),
        ((1, 900), (900, 900)),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_pause", [False, True], ids=["spread", "on one thread"])
def test_products_are_numpys(rng, monkeypatch, a, b, is_pause):
    machine = Machine()
    threads = machine.product_threads()
    if is_pause:
        with monkeypatch.context() as patch:
            patch.setattr(blas_threads.np, "matmul", machine.matmul)
            machine.seconds = LATE
            threads.multiply(*MIDDLING)
    a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in (a, b))
    expected = np.matmul(a, b)
    output = np.full(expected.shape, np.nan, np.float32)
    threads.multiply(a, b, output)
    np.testing.assert_array_equal(output, expected)


def test_numpys_openblas_takes_a_number_of_threads():
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    library = loaded_openblas()
    if "openblas" not in blas:
        assert library is None
        return
    assert library is not None
    given = library.threads()
    library.set_threads(1)
    assert library.threads() == 1
    library.set_threads(given)
    assert library.threads() == given
