"""The tile of a matrix product that a workgroup and an invocation compute."""

from __future__ import annotations

import attrs

from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.features import Features


@attrs.frozen
class GemmTile:
    """A tile of a product.

    Attributes:
        rows: the output rows of a workgroup.
        columns: the output columns of a workgroup.
        thread_rows: the rows of an invocation, a multiple of four.
        thread_columns: the columns of an invocation, a multiple of four.
        inner: the length of the inner axis that an invocation multiplies per tile.
        slices: the number of parts of a tile's inner axis, each computed by other invocations; a divisor of
            :attr:`sums`.
    """

    rows: int
    columns: int
    thread_rows: int
    thread_columns: int
    inner: int = 16
    slices: int = 1

    @property
    def depth(self) -> int:
        """The length of a tile along the inner axis."""
        return self.inner * self.slices

    @property
    def across(self) -> int:
        """The invocations of a slice along the columns."""
        return self.columns // self.thread_columns

    @property
    def down(self) -> int:
        """The invocations of a slice along the rows."""
        return self.rows // self.thread_rows

    @property
    def slice_threads(self) -> int:
        """The invocations of a slice."""
        return self.across * self.down

    @property
    def threads(self) -> int:
        """The invocations of a workgroup."""
        return self.slice_threads * self.slices

    @property
    def sums(self) -> int:
        """The vec4s of sums of an invocation."""
        return self.thread_rows * self.thread_columns // WIDTH

    @property
    def vec4s(self) -> int:
        """The vec4s of workgroup memory."""
        tiles = self.depth * (self.rows + self.columns) // WIDTH
        return max(tiles, self.slices * self.threads) if self.slices > 1 else tiles

    @property
    def shared_sums(self) -> int:
        """The vec4s of sums per invocation that fit into workgroup memory at once, a multiple of the slices."""
        return min(self.sums, self.vec4s // self.threads // self.slices * self.slices)

    def fits(self, features: Features) -> bool:
        """Return whether an adapter can run it."""
        return self.vec4s * 16 <= features.max_workgroup_storage and self.threads <= features.max_invocations

    def groups(self, rows: int, columns: int) -> int:
        """Return the number of workgroups of a product."""
        return -(-rows // self.rows) * -(-columns // self.columns)
