"""Kernels that record how long they take, for dispatches that are timed."""

import math
from time import perf_counter_ns

from webnn_py.core.device.backend import KernelTiming
from webnn_py.core.graph import Node
from webnn_py.devices.kernel_nodes import remembered
from webnn_py.devices.numpy.table import Array, Kernel, Run


class TimedKernel:
    """A call's kernel, which also records its duration.

    Args:
        kernel: the kernel.
        run: the kernel with its arrays bound, where they are the same at each dispatch.
        node: the node that it computes; None where it copies an output.
        timings: the list that receives the duration.
    """

    def __init__(self, kernel: Kernel, run: Run | None, node: Node | None, timings: list[KernelTiming]) -> None:
        self._kernel = kernel
        self._run = run
        self._timings = timings
        self._nodes = remembered(() if node is None else (node,))
        self._operators = tuple(node.operator for node in self._nodes)
        self._name = ""
        self._byte_length = 0

    def __call__(self, *arrays: Array) -> None:
        if not self._name:
            first, *others = self._operators or ("copy",)
            self._name = " ".join([first, str(arrays[-1].dtype), *others])
            self._byte_length = sum(_byte_length(array) for array in {id(array): array for array in arrays}.values())
        kernel, run = self._kernel, self._run
        began = perf_counter_ns()
        if run is None:
            kernel(*arrays)
        else:
            run()
        took = perf_counter_ns() - began
        self._timings.append(
            KernelTiming(self._name, self._operators, began, took, self._byte_length, "host", self._nodes)
        )


def _byte_length(array: Array) -> int:
    """Return the bytes of an array's distinct elements: broadcast axes repeat them."""
    sizes = [size for size, stride in zip(array.shape, array.strides, strict=True) if stride]
    return int(array.itemsize * math.prod(sizes))
