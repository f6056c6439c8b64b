"""Workgroups that reduce or scan: the arrangement of their invocations, and how they merge accumulators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from webnn_py.devices.wgpu.codegen.reduction.writer import KernelWriter

Merge = Callable[[Sequence[str], Sequence[str]], list[str]]
"""(accumulators, expressions for those of another invocation) → statements that merge them."""


@attrs.frozen
class ReductionWorkgroup:
    """A workgroup's invocations as a rectangle: ``across`` different outputs, ``along`` the elements of each.

    The lanes of a subgroup are assumed to be adjacent in a workgroup of one dimension, as with every known driver.

    Attributes:
        across: the number of different outputs; a power of two.
        along: the invocations that share outputs; a power of two.
        along_first: whether adjacent invocations share outputs.
    """

    across: int
    along: int
    along_first: bool

    @property
    def size(self) -> int:
        """The invocations of the workgroup."""
        return self.across * self.along

    def place(self, writer: KernelWriter, outputs: int) -> None:
        """Name each invocation's coordinates, ``x`` across and ``y`` along, its ``place`` and clamped ``output``."""
        fast, slow = ("y", "x") if self.along_first else ("x", "y")
        width = self.along if self.along_first else self.across
        writer.add(f"let {fast} = t % {width}u;", f"let {slow} = t / {width}u;")
        writer.add(f"let place = group * {self.across}u + x;", f"let output = min(place, {outputs - 1}u);")

    def combine(
        self,
        writer: KernelWriter,
        kinds: Sequence[str],
        sets: Sequence[Sequence[str]],
        merge: Merge,
        *,
        everywhere: bool,
    ) -> None:
        """Merge the accumulators of the invocations that share outputs.

        Args:
            writer: the kernel.
            kinds: the types of the accumulators of an output.
            sets: for each output of an invocation, its accumulators.
            merge: merges those of two invocations; commutative.
            everywhere: whether all these invocations need the result, not only the one whose ``y`` is 0.
        """
        if self.along == 1:
            return
        reach = min(self.along, self._shuffled(writer, kinds))
        distance = 1
        while distance < reach:
            for variables in sets:
                _shuffle(writer, variables, merge, distance)
            distance *= 2
        if reach == self.along:
            return
        if reach > 1:
            self._combine_groups(writer, kinds, sets, merge, reach)
        else:
            self._combine_in_memory(writer, kinds, sets, merge, everywhere=everywhere)

    def _shuffled(self, writer: KernelWriter, kinds: Sequence[str]) -> int:
        """Return how many adjacent invocations can exchange values of these types by subgroup shuffles."""
        usable = writer.features.subgroups and self.along_first and not {"i64", "u64"} & set(kinds)
        return writer.features.least_subgroup if usable else 1

    def _combine_groups(
        self, writer: KernelWriter, kinds: Sequence[str], sets: Sequence[Sequence[str]], merge: Merge, width: int
    ) -> None:
        """Merge groups of ``width`` invocations, which each hold one result, so that all invocations get the total."""
        groups = self.along // width
        arrays = [writer.fresh(kind, self.across * groups * len(sets)) for kind in kinds]  # needs no barrier
        base = writer.let(f"x * {groups * len(sets)}u", "base")
        writer.add(f"if (y % {width}u == 0u) {{")
        mine = writer.let(f"{base} + y / {width}u * {len(sets)}u", "mine")
        for number, variables in enumerate(sets):
            writer.add(*_store(arrays, f"{mine} + {number}u", variables))
        writer.add("}", "workgroupBarrier();")
        shuffled = groups <= width
        first = writer.let(f"{base} + y % {groups}u * {len(sets)}u", "first") if shuffled else base
        for number, variables in enumerate(sets):
            writer.add(*_fetch(arrays, f"{first} + {number}u", variables))
            if shuffled:
                for step in range(groups.bit_length() - 1):
                    _shuffle(writer, variables, merge, 1 << step)
                continue
            others = [f"{array}[{base} + group * {len(sets)}u + {number}u]" for array in arrays]
            writer.add(f"for (var group = 1u; group < {groups}u; group++) {{", *merge(variables, others), "}")

    def scan(self, writer: KernelWriter, kind: str, value: str) -> tuple[str, str]:
        """Scan a value across the invocations that share outputs.

        Returns:
            Variables with the exclusive prefix sum, and with the total. Workgroup memory must not be reused before a
            barrier.
        """
        zero = f"{kind}(0)"
        if self.along == 1:
            return writer.let(zero), value
        reach = min(self.along, self._shuffled(writer, [kind]))
        if reach == 1:
            return self._scan_in_memory(writer, kind, value)
        running = writer.var(value)
        for step in range(reach.bit_length() - 1):
            other = writer.let(f"subgroupShuffleUp({running}, {1 << step}u)", "other")
            writer.add(f"{running} = select({running}, {running} + {other}, y % {reach}u >= {1 << step}u);")
        other = writer.let(f"subgroupShuffleUp({running}, 1u)", "other")
        before = writer.let(f"select({zero}, {other}, y % {reach}u > 0u)", "before")
        if reach == self.along:
            total = f"subgroupShuffle({running}, subgroup_invocation_id | {reach - 1}u)"
            return before, writer.let(total, "total")
        groups = self.along // reach
        array = writer.shared(kind, 0, self.across * groups)
        writer.add(f"if (y % {reach}u == {reach - 1}u) {{ {array}[x * {groups}u + y / {reach}u] = {running}; }}")
        writer.add("workgroupBarrier();")
        total, skipped = writer.var(zero, "total"), writer.var(zero, "skipped")
        writer.add(f"for (var group = 0u; group < {groups}u; group++) {{")
        writer.add(f"if (group == y / {reach}u) {{ {skipped} = {total}; }}")
        writer.add(f"{total} = {total} + {array}[x * {groups}u + group];", "}")
        return writer.let(f"{skipped} + {before}", "before"), total

    def _scan_in_memory(self, writer: KernelWriter, kind: str, value: str) -> tuple[str, str]:
        array = writer.shared(kind, 0, self.size)
        running = writer.var(value)
        distance = 1
        while distance < self.along:
            writer.add(f"{array}[t] = {running};", "workgroupBarrier();")
            writer.add(f"if (y >= {distance}u) {{ {running} = {running} + {array}[t - {distance}u]; }}")
            writer.add("workgroupBarrier();")
            distance *= 2
        writer.add(f"{array}[t] = {running};", "workgroupBarrier();")
        before = writer.var(f"{kind}(0)", "before")
        writer.add(f"if (y > 0u) {{ {before} = {array}[t - 1u]; }}")
        return before, writer.let(f"{array}[x * {self.along}u + {self.along - 1}u]", "total")

    def _combine_in_memory(
        self,
        writer: KernelWriter,
        kinds: Sequence[str],
        sets: Sequence[Sequence[str]],
        merge: Merge,
        *,
        everywhere: bool,
    ) -> None:
        """Reduce through workgroup memory, halving the number of invocations in each step."""
        arrays = _arrays(writer, kinds, self.size * len(sets))
        for number, variables in enumerate(sets):
            writer.add(*_store(arrays, f"t + {number * self.size}u", variables))
        writer.add("workgroupBarrier();")
        stride = 1 if self.along_first else self.across
        half = self.along // 2
        while half:
            writer.add(f"if (y < {half}u) {{")
            for number, variables in enumerate(sets):
                place = f"t + {number * self.size + half * stride}u"
                writer.add(*merge(variables, [f"{array}[{place}]" for array in arrays]))
                if half > 1 or everywhere:
                    writer.add(*_store(arrays, f"t + {number * self.size}u", variables))
            writer.add("}")
            half //= 2
            if half or everywhere:
                writer.add("workgroupBarrier();")
        if everywhere:
            first = f"x * {self.along}u" if self.along_first else "x"
            for number, variables in enumerate(sets):
                writer.add(*_fetch(arrays, f"{first} + {number * self.size}u", variables))


def _arrays(writer: KernelWriter, kinds: Sequence[str], size: int) -> list[str]:
    """Return arrays in workgroup memory for these types, after a barrier if they are reused."""
    if any(writer.is_shared(kind, number) for number, kind in enumerate(kinds)):
        writer.add("workgroupBarrier();")
    return [writer.shared(kind, number, size) for number, kind in enumerate(kinds)]


def _store(arrays: Sequence[str], place: str, variables: Sequence[str]) -> list[str]:
    return [f"{array}[{place}] = {variable};" for array, variable in zip(arrays, variables, strict=True)]


def _fetch(arrays: Sequence[str], place: str, variables: Sequence[str]) -> list[str]:
    return [f"{variable} = {array}[{place}];" for array, variable in zip(arrays, variables, strict=True)]


def _shuffle(writer: KernelWriter, variables: Sequence[str], merge: Merge, distance: int) -> None:
    others = [writer.let(f"subgroupShuffleXor({variable}, {distance}u)", "other") for variable in variables]
    writer.add(*merge(variables, others))
