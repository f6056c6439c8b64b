"""The exchange of scores between the lanes that share rows, by shuffles or through workgroup memory.

Rows are numbered per lane, permuted by ``own`` (XOR), so that a lane's first rows are those whose scores it owns, and
its last those whose partial scores it sends. Each row has one owner, or several that compute the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from webnn_py.devices.wgpu.codegen.attention.tile import AttentionTile


@attrs.frozen
class Lanes:
    """Writes the exchange for a tile.

    Attributes:
        tile: the tile.
    """

    tile: AttentionTile

    def begin(self) -> list[str]:
        """Return the statements that name a lane, the place of its group in the workgroup, and ``own``."""
        lanes = self.tile.lanes
        names = [f"let lane = t % {lanes}u;", f"let place = t / {lanes}u;"]
        if self.tile.shuffles:
            names = [
                f"let lane = invocation % {lanes}u;",
                f"let place = subgroup * (size / {lanes}u) + invocation / {lanes}u;",
            ]
        terms = [f"(lane / {distance}u % 2u) * {kept}u" for distance, kept in self._halvings() if kept]
        return [*names, f"let own = {' + '.join(terms) or '0u'};"]

    @property
    def builtins(self) -> str:
        """The parameters of the entry point."""
        if not self.tile.shuffles:
            return "@builtin(local_invocation_index) t: u32"
        return """@builtin(local_invocation_index) t: u32,
  @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_size) size: u32,
  @builtin(subgroup_invocation_id) invocation: u32"""

    @property
    def memory(self) -> list[str]:
        """The declaration of the workgroup memory through which scores go."""
        exchanged = self.tile.exchanged
        return [f"var<workgroup> exchanged: array<f32, {exchanged}>;"] if exchanged else []

    @property
    def fence(self) -> list[str]:
        """The barrier before values that other lanes read may be replaced, if there is none in between."""
        return ["workgroupBarrier();"] if self.tile.exchanged else []

    def add_up(self, partial: Sequence[Sequence[str]]) -> list[str]:
        """Return the statements that add up partial scores to ``x{row}_{key}``, for the lane's own rows.

        Args:
            partial: the names of a lane's partial scores, for each key those of all rows.
        """
        return self._add_up_in_memory(partial) if self.tile.exchanged else self._add_up_by_shuffles(partial)

    def _add_up_by_shuffles(self, partial: Sequence[Sequence[str]]) -> list[str]:
        """In each exchange a lane sends the rows that it does not keep."""
        lines, names = [], [[*of_key] for of_key in partial]
        for level, (distance, kept) in enumerate(self._halvings()):
            for key, of_key in enumerate(names):
                sums = []
                for index, (name, other) in enumerate(zip(of_key[: kept or 1], of_key[kept:], strict=True)):
                    sums.append(f"e{level}_{index}_{key}")
                    lines.append(f"let {sums[-1]} = {name} + {_shuffled(other, distance)};")
                names[key] = sums
        return [
            *lines,
            *(f"var x{row}_{key} = {name};" for key, of_key in enumerate(names) for row, name in enumerate(of_key)),
        ]

    def _add_up_in_memory(self, partial: Sequence[Sequence[str]]) -> list[str]:
        """All lanes that own a row add up in the same order, so that they find the same score."""
        names = [name for of_key in partial for name in of_key]
        lines = [*(self._stored(slot, name) for slot, name in enumerate(names)), "workgroupBarrier();"]
        for key in range(len(partial)):
            for row in range(self.tile.own):
                terms = [
                    self._stored_at(key * self.tile.each + (row ^ self._own(lane)), lane)
                    for lane in range(self.tile.lanes)
                ]
                while len(terms) > 1:
                    terms = [f"({one} + {other})" for one, other in zip(terms[::2], terms[1::2], strict=True)]
                lines.append(f"var x{row}_{key} = {terms[0]};")
        return lines

    def of_all_rows(self, names: Mapping[str, str]) -> list[str]:
        """Return the statements that name values of all rows, ``{name}{row}``, which their owners have.

        Args:
            names: the names of values, and what their owners call them, which have them for their own rows.
        """
        rows = [(row, *self._owner(row)) for row in range(self.tile.each)]
        if not self.tile.exchanged:
            return [
                f"let {name}{row} = {_shuffled(f'{own}{index}', distance)};"
                for name, own in names.items()
                for row, index, distance in rows
            ]
        first, count = self.tile.at_once * self.tile.each, self.tile.own
        lines = [
            self._stored(first + number * count + index, f"{own}{index}")
            for number, own in enumerate(names.values())
            for index in range(count)
        ]
        lines.append("workgroupBarrier();")
        for number, name in enumerate(names):
            for row, index, distance in rows:
                lines.append(f"let {name}{row} = {self._stored_at(first + number * count + index, distance)};")
        return lines

    def _stored(self, slot: int, value: str) -> str:
        return f"exchanged[{slot * self.tile.threads}u + t] = {value};"

    def _stored_at(self, slot: int, distance: int) -> str:
        """Return the value that the lane at a distance (XOR) has stored."""
        return f"exchanged[{slot * self.tile.threads}u + {f'(t ^ {distance}u)' if distance else 't'}]"

    def _halvings(self) -> list[tuple[int, int]]:
        """Return, for each exchange, the distance of the lanes and the number of rows that a lane keeps."""
        steps, count, distance = [], self.tile.each, self.tile.lanes // 2
        while distance:
            count = count // 2 if count > 1 else 0
            steps.append((distance, count))
            count = max(count, 1)
            distance //= 2
        return steps

    def _own(self, lane: int) -> int:
        """Return a lane's ``own``."""
        return sum(kept for distance, kept in self._halvings() if lane & distance)

    def _owner(self, row: int) -> tuple[int, int]:
        """Return the number that a row has for a lane that owns it, and the distance of that lane."""
        distance = 0
        for step, kept in self._halvings():
            if kept and row >= kept:
                distance, row = distance + step, row - kept
        return row, distance


def _shuffled(value: str, distance: int) -> str:
    """Return the value of the lane at a distance (XOR)."""
    return f"subgroupShuffleXor({value}, {distance}u)" if distance else value
