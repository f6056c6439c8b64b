"""Which kernels are joined: as many small ones as follow each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from webnn_py.device.on_wgpu.codegen.joining.joined_kernel import JoinedKernel, Uses
from webnn_py.device.on_wgpu.codegen.joining.step import KernelStep
from webnn_py.device.on_wgpu.codegen.joining.views import Kind, common
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.device.on_wgpu.records.kernel import Kernel

LEAST_STEPS: Final = 8
"""Fewer kernels are not joined: they keep a text that other graphs have, too."""

MOST_STEPS: Final = 256


def may_be_joined(kernel: Kernel) -> bool:
    """Whether a kernel is small enough, so that there is no use in compiling it before it is known what follows."""
    return KernelStep.of(kernel) is not None


def joined(kernels: Sequence[Kernel], features: Features) -> list[Kernel]:
    """The kernels in their order, runs of small ones as one kernel each."""
    return list(_joined(kernels, features))


def _joined(kernels: Sequence[Kernel], features: Features) -> Iterator[Kernel]:
    uses, begin = Uses.of(kernels), 0
    while begin < len(kernels):
        steps = _run(kernels[begin : begin + MOST_STEPS])
        joining = _longest(kernels, steps, uses, begin, features)
        if joining is None:
            yield from kernels[begin : begin + max(1, len(steps))]
            begin += max(1, len(steps))
        else:
            yield joining[0].kernel()
            begin += joining[1]


def _longest(
    kernels: Sequence[Kernel], steps: Sequence[KernelStep], uses: Uses, begin: int, features: Features
) -> tuple[JoinedKernel, int] | None:
    """The kernel of as many of these steps as fit, and how many that are."""
    count = len(steps)
    while count >= LEAST_STEPS:
        joining = JoinedKernel(kernels[begin : begin + count], steps[:count], uses, begin, features)
        if joining.fits:
            return joining, count
        count = min(count - 1, count * 3 // 4)
    return None


def _run(kernels: Iterable[Kernel]) -> list[KernelStep]:
    """The steps of kernels until the first that is not small, or does not go with those before it."""
    kinds: dict[Buffer, set[Kind]] = {}
    sizes: set[int] = set()
    whole: set[int] = set()
    steps: list[KernelStep] = []
    for kernel in kernels:
        step = KernelStep.of(kernel)
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
