"""The part of a matrix product that a workgroup and an invocation compute."""

from __future__ import annotations

import attrs

from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.features import Features


@attrs.frozen
class GemmTile:
    """A tile of a product.

    Attributes:
        rows: rows of the output that a workgroup computes.
        columns: columns of the output that a workgroup computes.
        thread_rows: rows that an invocation computes, a multiple of four.
        thread_columns: columns that an invocation computes, a multiple of four.
        inner: how much of the inner axis an invocation computes before the next tile is fetched.
        slices: the number of parts of a tile's inner axis, each computed by other invocations. They divide the vec4s
            of sums of an invocation.
        interleaved: whether eight neighbouring invocations compute two rows of vec4s by four, not one by eight.
        in_rows: whether each side has an array of rows of its own in workgroup memory, whose numbers are constants
            where it is read; only with one slice.
    """

    rows: int
    columns: int
    thread_rows: int
    thread_columns: int
    inner: int = 16
    slices: int = 1
    interleaved: bool = False
    in_rows: bool = False

    @property
    def depth(self) -> int:
        """The length of a tile along the inner axis."""
        return self.inner * self.slices

    @property
    def across(self) -> int:
        """Invocations of a slice along the columns."""
        return self.columns // self.thread_columns

    @property
    def down(self) -> int:
        """Invocations of a slice along the rows."""
        return self.rows // self.thread_rows

    @property
    def slice_threads(self) -> int:
        """Invocations of a slice."""
        return self.across * self.down

    @property
    def threads(self) -> int:
        """Invocations of a workgroup."""
        return self.slice_threads * self.slices

    @property
    def is_serpentine(self) -> bool:
        """Whether an invocation adds products in serpentine order; measured for these tiles, and slower for others."""
        return self.interleaved and self.thread_rows == self.thread_columns

    @property
    def has_rows(self) -> bool:
        """Whether each side has an array of rows of its own."""
        return self.in_rows and self.slices == 1

    @property
    def sums(self) -> int:
        """Vec4s of sums of an invocation."""
        return self.thread_rows * self.thread_columns // WIDTH

    @property
    def vec4s(self) -> int:
        """Vec4s of workgroup memory."""
        tiles = self.depth * (self.rows + self.columns) // WIDTH
        return max(tiles, self.slices * self.threads) if self.slices > 1 else tiles

    @property
    def shared_sums(self) -> int:
        """Sums of each invocation for which workgroup memory has room at once, a multiple of the slices."""
        return min(self.sums, self.vec4s // self.threads // self.slices * self.slices)

    def fits(self, features: Features) -> bool:
        """Return whether an adapter can run it."""
        return self.vec4s * 16 <= features.max_workgroup_storage and self.threads <= features.max_invocations

    def groups(self, rows: int, columns: int) -> int:
        """Return the number of workgroups of a product."""
        return -(-rows // self.rows) * -(-columns // self.columns)
