"""How the invocations of a workgroup share the work on some outputs, and put together what each of them has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from webnn_py.device.on_wgpu.codegen.reduction.writer import KernelWriter

Merge = Callable[[Sequence[str], Sequence[str]], list[str]]
"""(variables, expressions) → statements that combine into the variables what the expressions have."""


@attrs.frozen
class ReductionWorkgroup:
    """A workgroup's invocations as a rectangle: ``across`` different outputs, ``along`` the elements of each.

    Subgroups are taken to be neighbours in a workgroup of one dimension, as they are with every known driver.

    Attributes:
        across: invocations, or groups of them, with different outputs; a power of two.
        along: invocations with the same outputs; a power of two.
        along_first: whether neighbouring invocations have the same outputs.
    """

    across: int
    along: int
    along_first: bool

    @property
    def size(self) -> int:
        """The invocations of the workgroup."""
        return self.across * self.along

    def place(self, writer: KernelWriter) -> None:
        """Name each invocation's place: ``x`` across and ``y`` along."""
        fast, slow = ("y", "x") if self.along_first else ("x", "y")
        width = self.along if self.along_first else self.across
        writer.add(f"let {fast} = t % {width}u;", f"let {slow} = t / {width}u;")

    def combine(
        self,
        writer: KernelWriter,
        kinds: Sequence[str],
        sets: Sequence[Sequence[str]],
        merge: Merge,
        *,
        everywhere: bool,
    ) -> None:
        """Combine the variables of the invocations that have the same outputs.

        Args:
            writer: the kernel.
            kinds: the types of the variables of a set.
            sets: for each output of an invocation, its variables.
            merge: combines two of such outputs; the order does not matter.
            everywhere: whether all these invocations need the result, or only the one whose ``y`` is 0.
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
        """How many neighbouring invocations surely belong to one subgroup and may exchange values of these types."""
        usable = writer.features.subgroups and self.along_first and not {"i64", "u64"} & set(kinds)
        return writer.features.least_subgroup if usable else 1

    def _combine_groups(
        self, writer: KernelWriter, kinds: Sequence[str], sets: Sequence[Sequence[str]], merge: Merge, width: int
    ) -> None:
        """Combine what groups of ``width`` invocations have in common, so that all of them have it."""
        groups = self.along // width
        arrays = [writer.fresh(kind, self.across * groups * len(sets)) for kind in kinds]  # small: no barrier to reuse
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
        """Sum up a value of the invocations that have the same outputs, neighbours first.

        Returns:
            Variables with the sum of those before an invocation, and with the sum of all of them. The workgroup's
            memory must not be used again before a barrier.
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
        """Halve the invocations that have something until one has it all."""
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
    """Workgroup memory for variables of these types, of which nobody still needs what it holds."""
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
