"""A compiled graph's kernels as JSON and bytes, and back: what is read need be neither lowered nor folded again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from webnn_py.core.device.backend import KernelNode
from webnn_py.devices.saved_code import Bytes, SavedCode, UnusableFileError
from webnn_py.devices.wgpu.passes.arena import BufferRange, DeviceMemory
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.kernel import Kernel

FORM: Final = "kernels"


@attrs.frozen
class SavedMemory:
    """One GPU buffer of a graph.

    Attributes:
        byte_length: its size.
        digest: that of the identity of a constant that graphs may have in common.
        contents: of a constant; None where intermediates lie.
    """

    byte_length: int
    digest: bytes | None
    contents: Bytes | None


@attrs.frozen(eq=False)
class SavedKernels:
    """Kernels in the order in which they run, and the memory that they use.

    Attributes:
        kernels: the kernels.
        memory: the GPU buffers.
        places: for each block and constant, which of ``memory`` it lies in, and from which byte on for how many.
    """

    kernels: Sequence[Kernel]
    memory: Sequence[SavedMemory]
    places: Mapping[Buffer, tuple[int, int, int]]


def to_saved(
    kernels: Sequence[Kernel],
    ranges: Mapping[Buffer, BufferRange],
    contents: Mapping[DeviceMemory, Bytes],
    digests: Mapping[DeviceMemory, bytes | None],
) -> SavedCode:
    """Write kernels down.

    Args:
        kernels: in the order in which they run.
        ranges: where blocks and constants lie.
        contents: the bytes of the GPU buffers that hold constants.
        digests: those of the identities of constants that graphs may have in common.
    """
    numbers: dict[Buffer, int] = {}
    memories: dict[DeviceMemory, int] = {}
    memory: list[Any] = []
    buffers: list[Any] = []
    sources: dict[str, int] = {}
    for buffer in (buffer for kernel in kernels for buffer in (*kernel.reads, *kernel.writes)):
        if buffer in numbers:
            continue
        numbers[buffer] = len(buffers)
        if buffer.kind in ("input", "output"):
            buffers.append([buffer.kind, buffer.byte_length, buffer.name])
            continue
        place = ranges[buffer]
        if place.buffer not in memories:
            memories[place.buffer] = len(memory)
            digest = digests.get(place.buffer)
            text = None if digest is None else digest.hex()
            memory.append([place.buffer.size, text, place.buffer in contents])
        buffers.append([buffer.kind, buffer.byte_length, memories[place.buffer], place.offset, place.byte_length])
    document = {
        "kernels": [
            [
                kernel.label,
                sources.setdefault(kernel.source, len(sources)),
                [numbers[buffer] for buffer in kernel.reads],
                [numbers[buffer] for buffer in kernel.writes],
                list(kernel.workgroups),
                [[node.operator, node.label, node.flops] for node in kernel.nodes],
            ]
            for kernel in kernels
        ],
        "copies": [index for index, kernel in enumerate(kernels) if kernel.copies],
        "sources": list(sources),
        "buffers": buffers,
        "memory": memory,
    }
    return SavedCode(FORM, document, tuple(contents[item] for item in memories if item in contents))


def from_saved(code: SavedCode) -> SavedKernels:
    """Return the kernels that were written down.

    Raises:
        UnusableFileError: these are none.
    """
    if code.form != FORM:
        raise UnusableFileError(f"it holds {code.form!r}, not kernels")
    document, blobs = code.document, iter(code.blobs)
    buffers: list[Buffer] = []
    places: dict[Buffer, tuple[int, int, int]] = {}
    for kind, byte_length, *rest in document["buffers"]:
        buffer = Buffer(kind, byte_length, rest[0] if kind in ("input", "output") else "")
        buffers.append(buffer)
        if kind in ("block", "constant"):
            index, offset, length = rest
            places[buffer] = index, offset, length
    kernels = [
        Kernel(
            label,
            document["sources"][source],
            tuple(buffers[index] for index in reads),
            tuple(buffers[index] for index in writes),
            (x, y, z),
            tuple(KernelNode(operator, text, flops) for operator, text, flops in nodes),
            copies=index in document["copies"],
        )
        for index, (label, source, reads, writes, (x, y, z), nodes) in enumerate(document["kernels"])
    ]
    memory = [
        SavedMemory(byte_length, None if digest is None else bytes.fromhex(digest), next(blobs) if filled else None)
        for byte_length, digest, filled in document["memory"]
    ]
    return SavedKernels(kernels, memory, places)
