"""Staging of tiles of keys and values in workgroup memory, for the kernel whose lanes share rows."""

from __future__ import annotations

from webnn_py.device.on_wgpu.codegen.attention.lanes import LanePlan
from webnn_py.device.on_wgpu.codegen.attention.operands import AttentionMatrix, AttentionOperands


class LaneTiles:
    """Writes the statements that stage tiles."""

    def __init__(self, plan: LanePlan, operands: AttentionOperands) -> None:
        self._plan = plan
        self._operands = operands
        self._is_whole = plan.shape.keys % plan.keys == 0

    def _sides(self) -> list[tuple[str, int, AttentionMatrix, int]]:
        """Return, for keys and values: name, offset in workgroup memory, operand, and vec4s per row."""
        plan, operands = self._plan, self._operands
        values = plan.keys * plan.depth
        return [("k", 0, operands.keys, plan.depth), ("v", values, operands.values, plan.columns)]

    def _items(self) -> list[str]:
        """Declare the indices of an invocation's vec4s of a tile, and their registers."""
        plan, lines = self._plan, []
        for name, _, side, size in self._sides():
            count = plan.keys * size
            for turn in range(-(-count // plan.threads)):
                lines.append(f"let {name}_item{turn} = min(t + {turn * plan.threads}u, {count - 1}u);")
                lines.append(f"var {name}_next{turn}: {side.element.vec4};")
        return lines

    def _load_tile(self, step: str) -> list[str]:
        """Load a tile of keys and values into registers."""
        plan, lines = self._plan, []
        for name, _, side, size in self._sides():
            for turn in range(-(-plan.keys * size // plan.threads)):
                item = f"{name}_item{turn}"
                row = f"{step} * {plan.keys}u + {item} / {size}u"
                bounded = row if self._is_whole else f"min({row}, {plan.shape.keys - 1}u)"
                place = f"{name}_base + {side.row(bounded)} + {item} % {size}u"
                lines.append(f"{name}_next{turn} = {name}_at({place});")
        return lines

    def prologue(self, each: int) -> list[str]:
        """Return the statements before the loop over the tiles of a part."""
        if self._plan.is_direct:
            return []
        if not self._plan.is_ahead:
            return self._items()
        first = f"part * {each}u"
        return [*self._items(), f"if ({first} < end) {{", *self._load_tile(f"({first})"), "}"]

    def _store_tile(self) -> list[str]:
        """Store the loaded tile in workgroup memory."""
        plan, lines = self._plan, []
        for name, base, _, size in self._sides():
            for turn in range(-(-plan.keys * size // plan.threads)):
                item, value = f"{name}_item{turn}", f"{name}_wide({name}_next{turn})"
                if name == "v" and not self._is_whole:
                    value = f"select(vec4<f32>(), {value}, first + {item} / {size}u < {plan.shape.keys}u)"
                lines.append(f"brought[{base}u + {item}] = {value};")
        return lines

    def stage(self) -> list[str]:
        """Stage a tile of keys and values, and prefetch the next one if the plan says so."""
        begin = ["workgroupBarrier();", *self._store_tile(), "workgroupBarrier();"]
        if not self._plan.is_ahead:
            return [*self._load_tile("step"), *begin]
        return [*begin, "if (step + 1u < end) {", *self._load_tile("(step + 1u)"), "}"]
