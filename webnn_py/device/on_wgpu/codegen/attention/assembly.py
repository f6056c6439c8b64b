"""What all kernels of attention are put together with."""

from __future__ import annotations

from webnn_py.device.on_wgpu.codegen.epilogue import EpilogueCode
from webnn_py.device.on_wgpu.codegen.module import Binding, declare, module
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.kernel import Kernel


class BoundArrays:
    """The buffers that a kernel of attention reads, each as elements of one type or of several."""

    def __init__(self) -> None:
        self._names: dict[tuple[Buffer, str], str] = {}

    def name(self, buffer: Buffer, kind: str) -> str:
        """The binding by which a buffer is read as elements of a type."""
        return self._names.setdefault((buffer, kind), f"r{len(self._names)}")

    @property
    def reads(self) -> list[Binding]:
        """All of them."""
        return [(buffer, name, kind) for (buffer, kind), name in self._names.items()]


def with_end(
    end: EpilogueCode | tuple[Buffer, Buffer],
    label: str,
    reads: list[Binding],
    parts: list[str],
    main: str,
    workgroups: tuple[int, int, int],
) -> Kernel:
    """A kernel of attention that stores its results, or, of a part of the keys, its sums and totals."""
    if isinstance(end, EpilogueCode):
        return end.kernel(label, reads, parts, main, workgroups)
    sums, totals = end
    declared = declare(reads, [(sums, "sums", "vec4<f32>"), (totals, "totals_of", "vec2<f32>")])
    return Kernel(label, module(declared, *parts, main=main), tuple(buffer for buffer, _, _ in reads), end, workgroups)
