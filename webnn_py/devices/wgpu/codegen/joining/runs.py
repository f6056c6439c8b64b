"""Joining of kernels: runs of small ones become one kernel each, which saves launches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from webnn_py.devices.wgpu.codegen.joining.joined_kernel import BufferLifetimes, JoinedKernel
from webnn_py.devices.wgpu.codegen.joining.step import KernelStep
from webnn_py.devices.wgpu.codegen.joining.views import Kind, common
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.kernel import Kernel

LEAST_STEPS: Final = 8
"""The fewest kernels that are joined: shorter runs keep sources that other graphs share."""

MOST_STEPS: Final = 256


def may_be_joined(kernel: Kernel) -> bool:
    """Return whether a kernel is small enough to be joined with those that follow."""
    return KernelStep.from_kernel(kernel) is not None


def joined(kernels: Sequence[Kernel], features: Features) -> list[Kernel]:
    """Return the kernels in their order, with runs of small ones as one kernel each."""
    result: list[Kernel] = []
    lifetimes, begin = BufferLifetimes.from_kernels(kernels), 0
    while begin < len(kernels):
        steps = _run(kernels[begin : begin + MOST_STEPS])
        count, joining = _longest(kernels, steps, lifetimes, begin, features)
        result += kernels[begin : begin + count] if joining is None else [joining.kernel()]
        begin += count
    return result


def _longest(
    kernels: Sequence[Kernel], steps: Sequence[KernelStep], lifetimes: BufferLifetimes, begin: int, features: Features
) -> tuple[int, JoinedKernel | None]:
    """Return the number of kernels that can be joined, and their kernel; None if they stay apart."""
    count = len(steps)
    while count >= LEAST_STEPS:
        joining = JoinedKernel(kernels[begin : begin + count], steps[:count], lifetimes, begin, features)
        if joining.fits:
            return count, joining
        count = min(count - 1, count * 3 // 4)
    return max(1, len(steps)), None


def _run(kernels: Iterable[Kernel]) -> list[KernelStep]:
    """Return the steps of kernels up to the first that is not small, or incompatible with those before it."""
    kinds: dict[Buffer, set[Kind]] = {}
    sizes: set[int] = set()
    whole: set[int] = set()
    steps: list[KernelStep] = []
    for kernel in kernels:
        step = KernelStep.from_kernel(kernel)
        if step is None:
            break
        sizes.add(step.invocations)
        whole |= {step.invocations} if step.is_whole else set()
        for buffer, (_, kind) in zip((*kernel.reads, *kernel.writes), step.bindings, strict=True):
            if buffer.kind in ("block", "output"):
                kinds.setdefault(buffer, set()).add(kind)
        if not whole <= {max(sizes)} or any(common(seen) is None for seen in kinds.values()):
            break
        steps.append(step)
    return steps
