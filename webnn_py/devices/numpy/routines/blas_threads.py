"""The number of threads of OpenBLAS's products: all while processors are free, one while other processes use them.

Its threads wait for each other several times in each product. While other processes use the processors, each such wait
lasts until the scheduler switches: 25 ms, for a product of 40 µs. A single thread does not wait. Its results may differ
in the last bits, since OpenBLAS cuts products differently for other numbers of threads.
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

from webnn_py.devices.numpy.routines.blocks import Index, part_of, tiles
from webnn_py.devices.numpy.table import Array

UNSPREAD: Final = 2**18
"""Multiply-adds up to which OpenBLAS itself multiplies on one thread, both matrices and vectors."""

WORTH_SPREADING: Final = 2**20
"""Multiply-adds of two matrices from which a second thread is a gain on an idle machine."""

ALWAYS_SPREAD: Final = 2**30
"""Multiply-adds from which the waits take no longer than a second thread saves, however busy the machine is."""

AT_A_TIME: Final = 2**24
"""Multiply-adds of a stack that are computed between two looks at the clock."""

LATE_TIMES: Final = 8
LATE_SECONDS: Final = 0.001
"""A product is late if it takes this much longer than ``LATE_TIMES`` times the best rate of similar products."""

GUESS: Final = 1e-9
"""An upper estimate of the seconds of a multiply-add, before similar products have been measured."""

SHORTEST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 10.0
"""The seconds for which products stay on one thread after a late one; a pause that gained nothing is doubled."""


@attrs.frozen
class OpenBlas:
    """The functions of OpenBLAS that get and set the number of threads, for all products that start later."""

    threads: Callable[[], int]
    set_threads: Callable[[int], object]


def loaded_openblas() -> OpenBlas | None:
    """Return the OpenBLAS that numpy multiplies with; None where numpy uses another library.

    One that uses OpenMP does not count: its threads must not be set while other threads are multiplying.
    """
    extension = find_spec("numpy._core._multiarray_umath")
    if extension is None or extension.origin is None:
        return None
    # On Windows, the names of a library are not found through the libraries that use it.
    bundled = Path(np.__file__).parents[1] / "numpy.libs"
    for path in (extension.origin, *map(str, sorted(bundled.glob("*openblas*")))):
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
    """Chooses the number of threads of each product; may be used by several threads of this program at once."""

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
            output: [rows, columns]; all may be stacks, which are multiplied pairwise.
        """
        rows, columns = output.shape[-2:]
        work = rows * columns * a.shape[-1]
        if work <= UNSPREAD or work >= ALWAYS_SPREAD or (self._alone == 0 and self._library.threads() == 1):
            np.matmul(a, b, out=output)
        elif work < WORTH_SPREADING and rows > 1 and columns > 1:
            self._multiply_alone(a, b, output)
        elif output.ndim == 2:
            self._multiply_as_suits(a, b, output)
        else:
            for tile in tiles(output.shape[:-2], AT_A_TIME // work):
                self._multiply_as_suits(_part(a, tile), _part(b, tile), output[tile])

    def _multiply_as_suits(self, a: Array, b: Array, output: Array) -> None:
        """Multiply on all threads, or on one during a pause; check whether it took too long."""
        inner = a.shape[-1]
        work = output.size * inner
        likeness = min(*output.shape[-2:], inner).bit_length()  # the reuse of each element that BLAS has fetched
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
        """Begin a pause: twice as long as the last one, if less time than that has passed since its end."""
        with self._lock:
            is_again = began - self._paused_until <= self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE) if is_again else SHORTEST_PAUSE
            self._paused_until = now + self._pause

    def _multiply_alone(self, a: Array, b: Array, output: Array) -> None:
        """Multiply on the calling thread; products that other threads start at the same time run on one thread, too."""
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
