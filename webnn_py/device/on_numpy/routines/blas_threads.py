"""On how many threads OpenBLAS multiplies: on all while processors are free, on one while others have them.

Its threads wait for each other several times in each product. While other processes have the processors, each such wait
lasts until the scheduler comes round: 25 ms, for a product of 40 µs. One thread waits for nobody. What it gives may
differ in the last bits, since OpenBLAS cuts products otherwise for other numbers of threads.
"""

import ctypes
import math
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Final

import attrs
import numpy as np

from webnn_py.device.on_numpy.routines.blocks import Index, part_of, tiles
from webnn_py.device.on_numpy.table import Array

UNSPREAD: Final = 2**18
"""Multiply-adds up to which OpenBLAS itself multiplies on one thread, matrices and vectors alike."""

WORTH_SPREADING: Final = 2**20
"""Multiply-adds of two matrices from which a second thread is a gain on a machine that is idle."""

ALWAYS_SPREAD: Final = 2**30
"""Multiply-adds from which the waits take no longer than a second thread saves, however busy the machine is."""

AT_A_TIME: Final = 2**24
"""Multiply-adds of a stack that are computed before a look at the time."""

LATE_TIMES: Final = 8
LATE_SECONDS: Final = 0.001
"""A product is late that takes this longer than so many times what products like it have taken at best."""

GUESS: Final = 1e-9
"""A guess at the seconds that a multiply-add takes at most, before products like it have been seen."""

SHORTEST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 10.0
"""For so long in seconds, after a late product, products stay on one thread; each pause that gained nothing doubles."""


@attrs.frozen
class OpenBlas:
    """How to ask OpenBLAS for the number of its threads, and to set it, for all products that begin later."""

    threads: Callable[[], int]
    set_threads: Callable[[int], object]


def loaded_openblas() -> OpenBlas | None:
    """The OpenBLAS that numpy multiplies with; None where it multiplies with something else.

    One that uses OpenMP does not count: it must not be told while other threads are multiplying.
    """
    extension = find_spec("numpy._core._multiarray_umath")
    if extension is None or extension.origin is None:
        return None
    # On Windows a library's names are not found by those that use it.
    beside = Path(np.__file__).parents[1] / "numpy.libs"
    for path in (extension.origin, *map(str, sorted(beside.glob("*openblas*")))):
        library = ctypes.PyDLL(path)
        for prefix, suffix in (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", "")):
            names = [
                f"{prefix}openblas_{what}{suffix}" for what in ("get_num_threads", "set_num_threads", "get_parallel")
            ]
            if all(hasattr(library, name) for name in names):
                threads, set_threads, kind = (getattr(library, name) for name in names)
                set_threads.argtypes = [ctypes.c_int]
                set_threads.restype = None
                is_without_openmp = kind() == 1
                return OpenBlas(threads, set_threads) if is_without_openmp else None
    return None


class ProductThreads:
    """Chooses the number of threads of each product; for any threads of this program at once."""

    def __init__(self, library: OpenBlas, clock: Callable[[], float] = perf_counter) -> None:
        self._library = library
        self._clock = clock
        self._lock = Lock()
        self._alone = 0
        self._given = 1
        self._best: dict[int, float] = {}
        self._pause = 0.0
        self._paused_until = -math.inf

    def multiply(self, a: Array, b: Array, output: Array) -> None:
        """Multiply matrices, or vectors and matrices, of floats that BLAS takes.

        Args:
            a: [rows, inner].
            b: [inner, columns].
            output: [rows, columns]; all may be stacks, which are multiplied together.
        """
        rows, columns = output.shape[-2:]
        work = rows * columns * a.shape[-1]
        if work <= UNSPREAD or work >= ALWAYS_SPREAD or self._is_single():
            np.matmul(a, b, out=output)
        elif work < WORTH_SPREADING and rows > 1 and columns > 1:
            self._multiply_alone(a, b, output)
        elif output.ndim == 2:
            self._multiply_as_suits(a, b, output)
        else:
            for tile in tiles(output.shape[:-2], AT_A_TIME // work):
                self._multiply_as_suits(_part(a, tile), _part(b, tile), output[tile])

    def _is_single(self) -> bool:
        """Whether the user wants one thread."""
        return self._alone == 0 and self._library.threads() == 1

    def _multiply_as_suits(self, a: Array, b: Array, output: Array) -> None:
        """Multiply on all threads, or on one during a pause; look whether it took too long."""
        inner = a.shape[-1]
        work = output.size * inner
        likeness = min(*output.shape[-2:], inner).bit_length()  # how often BLAS uses what it has fetched
        began = self._clock()
        is_pause = began < self._paused_until
        if is_pause:
            self._multiply_alone(a, b, output)
        else:
            np.matmul(a, b, out=output)
        now = self._clock()
        best = self._best.get(likeness, GUESS / LATE_TIMES)
        if not is_pause and now - began > LATE_SECONDS + LATE_TIMES * best * work:
            self._be_late(began, now)
        self._best[likeness] = min(best, (now - began) / work)

    def _be_late(self, began: float, now: float) -> None:
        """Pause: for twice as long as the last time, if this comes sooner after that pause than it took."""
        with self._lock:
            is_again = began - self._paused_until <= self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE) if is_again else SHORTEST_PAUSE
            self._paused_until = now + self._pause

    def _multiply_alone(self, a: Array, b: Array, output: Array) -> None:
        """Multiply on the calling thread; products of other threads that begin meanwhile do so, too."""
        with self._lock:
            if self._alone == 0:
                self._given = self._library.threads()
                self._library.set_threads(1)
            self._alone += 1
        try:
            np.matmul(a, b, out=output)
        finally:
            with self._lock:
                self._alone -= 1
                if self._alone == 0:
                    self._library.set_threads(self._given)


def _part(matrices: Array, tile: Index) -> Array:
    """Return the matrices of a stack that belong to a part of the stack of products."""
    stack = matrices.shape[:-2]
    return matrices[part_of(stack, tile[len(tile) - len(stack) :])]
