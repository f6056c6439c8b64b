"""Copies between GPU buffers, in bytes: by the queue's own command, or by a kernel where that cannot.

The command wants offsets and lengths in multiples of four bytes, and two different buffers. So elements of one or two
bytes at odd places are copied by a kernel, word by word; and what is copied within one buffer by way of another.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import attrs
import wgpu

from webnn_py.devices.wgpu.records.buffer import padded
from webnn_py.devices.wgpu.runtime.context_queue import BufferCopy, Command
from webnn_py.devices.wgpu.runtime.memory import STORAGE

WORKGROUP: Final = 64
MOST_WORKGROUPS: Final = 65535

SOURCE: Final = f"""
struct Region {{
  first_word: u32,  // of those that are written
  end_word: u32,
  begin: u32,  // the bytes that are written
  end: u32,
  source_word: i32,  // holds the first byte of what goes to word 0
  shift: u32,  // the bits before it there
}}
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read> region: Region;
@group(0) @binding(2) var<storage, read_write> result: array<u32>;

fn source_word(place: i32) -> u32 {{
  // Beyond the ends there is nothing that is wanted.
  return source[clamp(place, 0, i32(arrayLength(&source)) - 1)];
}}

fn bits_below(byte: u32) -> u32 {{
  return select((1u << (8u * byte)) - 1u, 0xffffffffu, byte >= 4u);
}}

@compute @workgroup_size({WORKGROUP})
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{
  for (var word = region.first_word + id.x; word < region.end_word; word += groups.x * {WORKGROUP}u) {{
    let place = region.source_word + i32(word);
    var bits = source_word(place) >> region.shift;
    if (region.shift != 0u) {{ bits |= source_word(place + 1) << (32u - region.shift); }}
    let begin = max(region.begin, 4u * word) - 4u * word;
    let end = min(region.end - 4u * word, 4u);
    let written = bits_below(end) & ~bits_below(begin);
    result[word] = (result[word] & ~written) | (bits & written);
  }}
}}
"""


@attrs.frozen(eq=False)
class Span:
    """Bytes of a buffer that holds ``capacity`` of them, rounded up to a multiple of 32."""

    buffer: wgpu.GPUBuffer
    offset: int
    byte_length: int
    capacity: int

    @property
    def end(self) -> int:
        """The end of the bytes."""
        return self.offset + self.byte_length

    def overlaps(self, other: Span) -> bool:
        """Return whether both have a byte in common."""
        return self.buffer is other.buffer and self.offset < other.end and other.offset < self.end


class BufferCopies:
    """Makes the commands that copy between buffers of one device."""

    def __init__(self, device: wgpu.GPUDevice) -> None:
        self._device = device
        self._pipeline: wgpu.GPUComputePipeline | None = None

    @staticmethod
    def needs_kernel(source: Span, target: Span) -> bool:
        """Return whether the queue's own command cannot copy it; then :meth:`prepare` has to have been called."""
        # What follows a buffer's last element is nobody's.
        is_whole_words = target.byte_length % 4 == 0 or target.end == target.capacity
        return bool(source.offset % 4 or target.offset % 4 or not is_whole_words)

    @property
    def is_prepared(self) -> bool:
        """Return whether the kernel is compiled."""
        return self._pipeline is not None

    def prepare(self) -> None:
        """Compile the kernel; in any thread."""
        module = self._device.create_shader_module(label="copy_buffer", code=SOURCE)
        self._pipeline = self._device.create_compute_pipeline(
            label="copy_buffer", layout="auto", compute={"module": module, "entry_point": "main"}
        )

    def commands(self, source: Span, target: Span) -> Iterator[Command]:
        """Return the commands that copy bytes that do not overlap.

        Raises:
            wgpu.GPUError: there is no memory for what lies between.
        """
        if source.buffer is target.buffer:
            begin = source.offset // 4 * 4
            byte_length = -(-source.end // 4) * 4 - begin
            between = self._device.create_buffer(label="copy_buffer", size=padded(byte_length), usage=STORAGE)
            yield BufferCopy(source.buffer, between, byte_length, source_offset=begin)
            source = Span(between, source.offset - begin, source.byte_length, byte_length)
        if self.needs_kernel(source, target):
            yield self._kernel(source, target)
        else:
            byte_length = -(-target.byte_length // 4) * 4
            yield BufferCopy(source.buffer, target.buffer, byte_length, source.offset, target.offset)

    def _kernel(self, source: Span, target: Span) -> Command:
        pipeline: Any = self._pipeline
        first, end = target.offset // 4, -(-target.end // 4)
        source_word, byte = divmod(source.offset - target.offset, 4)
        region = struct.pack("<4IiI", first, end, target.offset, target.end, source_word, 8 * byte)
        region_buffer = self._device.create_buffer_with_data(data=region, usage=wgpu.BufferUsage.STORAGE)
        bound = (
            (source.buffer, padded(source.capacity)),
            (region_buffer, len(region)),
            (target.buffer, padded(target.capacity)),
        )
        group = self._device.create_bind_group(
            label="copy_buffer",
            layout=pipeline.get_bind_group_layout(0),
            entries=[
                {"binding": index, "resource": {"buffer": buffer, "offset": 0, "size": size}}
                for index, (buffer, size) in enumerate(bound)
            ],
        )
        workgroups = min(-(-(end - first) // WORKGROUP), MOST_WORKGROUPS)
        return (pipeline, group, workgroups, 1, 1)
