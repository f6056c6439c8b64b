"""How tiles of keys and values come into the workgroup's memory, in the kernel whose rows are shared by lanes."""

from __future__ import annotations

from webnn_py.device.on_wgpu.codegen.attention.lanes import LanePlan
from webnn_py.device.on_wgpu.codegen.attention.operands import AttentionOperands, AttentionSide


class LaneTiles:
    """Writes what brings tiles in.

    Args:
        plan: how the work is shared out.
        operands: what is read.
    """

    def __init__(self, plan: LanePlan, operands: AttentionOperands) -> None:
        self._plan = plan
        self._operands = operands
        self._is_whole = plan.shape.keys % plan.keys == 0

    def _sides(self) -> list[tuple[str, int, AttentionSide, int]]:
        """Of keys and values: name, where they begin in the workgroup's memory, where they lie, vec4s of a row."""
        plan, operands = self._plan, self._operands
        values = plan.keys * plan.depth
        return [("k", 0, operands.keys, plan.depth), ("v", values, operands.values, plan.columns)]

    def _items(self) -> list[str]:
        """Name an invocation's vec4s of a tile, and what it has read of them."""
        plan, lines = self._plan, []
        for name, _, side, size in self._sides():
            count = plan.keys * size
            for turn in range(-(-count // plan.threads)):
                lines.append(f"let {name}_item{turn} = min(t + {turn * plan.threads}u, {count - 1}u);")
                lines.append(f"var {name}_next{turn}: {side.element.vec4};")
        return lines

    def _fetch_tile(self, step: str) -> list[str]:
        """Read a tile of keys and values."""
        plan, lines = self._plan, []
        for name, _, side, size in self._sides():
            for turn in range(-(-plan.keys * size // plan.threads)):
                item = f"{name}_item{turn}"
                row = f"{step} * {plan.keys}u + {item} / {size}u"
                bounded = row if self._is_whole else f"min({row}, {plan.shape.keys - 1}u)"
                place = f"{name}_base + {side.row(bounded)} + {item} % {size}u"
                lines.append(f"{name}_next{turn} = {name}_at({place});")
        return lines

    def first(self, each: int) -> list[str]:
        """What stands before the loop over a part's tiles."""
        if self._plan.is_direct:
            return []
        if not self._plan.is_ahead:
            return self._items()
        first = f"part * {each}u"
        return [*self._items(), f"if ({first} < end) {{", *self._fetch_tile(f"({first})"), "}"]

    def _store_tile(self) -> list[str]:
        """Store it in the workgroup's memory."""
        plan, lines = self._plan, []
        for name, base, _, size in self._sides():
            for turn in range(-(-plan.keys * size // plan.threads)):
                item, value = f"{name}_item{turn}", f"{name}_wide({name}_next{turn})"
                if name == "v" and not self._is_whole:
                    value = f"select(vec4<f32>(), {value}, first + {item} / {size}u < {plan.shape.keys}u)"
                lines.append(f"brought[{base}u + {item}] = {value};")
        return lines

    def bring(self) -> list[str]:
        """Bring a tile of keys and values into the workgroup's memory, and begin to read the next one."""
        begin = ["workgroupBarrier();", *self._store_tile(), "workgroupBarrier();"]
        if not self._plan.is_ahead:
            return [*self._fetch_tile("step"), *begin]
        return [*begin, "if (step + 1u < end) {", *self._fetch_tile("(step + 1u)"), "}"]
