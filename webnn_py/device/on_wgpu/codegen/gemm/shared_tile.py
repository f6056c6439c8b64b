"""How the invocations of a workgroup bring a tile of one side into the workgroup's memory, and read it again.

The tile lies there as vec4s along the outer axis, one row of vec4s after the other along the inner axis. Where
neighbouring invocations store on top of each other, rows are stored with their vec4s exchanged, so that neighbours
use different banks of the memory.
"""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.gemm.operand_loader import OperandLoader
from webnn_py.device.on_wgpu.codegen.gemm.tile import GemmTile
from webnn_py.device.on_wgpu.records.element import COMPONENTS, WIDTH

BANKS: Final = 8
"""Vec4s that the memory of a workgroup delivers at once."""


@attrs.frozen
class SharedMemoryTile:
    """The plan for one side.

    Attributes:
        name: the side's.
        loader: reads it.
        tile: what the workgroup computes.
        size: the length of the outer axis of a tile.
        origin: the variable that has the tile's place on the outer axis.
        threads: how many invocations take part.
        base: where the side begins in the workgroup's memory, in vec4s.
        vector: the type of a vec4 there.
        fetched: the type of a vec4 as it is read: its numbers are float16 or those of ``vector``.
    """

    name: str
    loader: OperandLoader
    tile: GemmTile
    size: int
    origin: str
    threads: int
    base: int
    vector: str
    fetched: str

    @property
    def row(self) -> int:
        """Vec4s of a row."""
        return self.size // WIDTH

    @property
    def is_transposed(self) -> bool:
        """Whether an invocation reads four by four elements and transposes them."""
        return self.loader.pattern == "transposed"

    @property
    def units(self) -> int:
        """What there is to read: vec4s, or four by four."""
        return self.row * self.tile.depth // (WIDTH if self.is_transposed else 1)

    @property
    def rounds(self) -> int:
        """How many units an invocation reads at most."""
        return -(-self.units // self.threads)

    @property
    def vec4s(self) -> int:
        """How many vec4s an invocation holds."""
        return self.rounds * (WIDTH if self.is_transposed else 1)

    @property
    def exchange(self) -> int:
        """By how much the mask grows, with which numbers of vec4s are combined, from one inner unit to the next."""
        if not self.loader.follows_inner or self.row % BANKS:
            return 0
        return 2 if self.is_transposed else 1

    @property
    def step(self) -> int:
        """How many rows have the same mask."""
        return WIDTH if self.is_transposed else 1

    # --- bringing in -----------------------------------------------------------------------------------------

    def _unit(self, turn: int) -> tuple[str, str]:
        """The numbers of an invocation's unit on the outer and the inner axis."""
        index, number = f"{self.name}_thread", turn * self.threads
        inner = self.tile.depth // (WIDTH if self.is_transposed else 1)
        size = inner if self.loader.follows_inner else self.row
        if self.threads % size == 0:
            fast, slow = f"{index} % {size}u", f"{index} / {size}u + {number // size}u"
        else:
            fast, slow = f"({index} + {number}u) % {size}u", f"({index} + {number}u) / {size}u"
        return (slow, fast) if self.loader.follows_inner else (fast, slow)

    def _tag(self, turn: int) -> str:
        """The name of what has been prepared for a unit; units at the same place on the outer axis share it."""
        if not self.loader.follows_inner and self.threads % self.row == 0:
            turn = 0
        return f"{self.name}{turn}"

    def prepare(self, first_thread: int = 0) -> list[str]:
        """Return the statements before the loop."""
        lines = [f"let {self.name}_thread = thread - {first_thread}u;"] if first_thread else []
        lines = lines or [f"let {self.name}_thread = thread;"]
        tags = set()
        for turn in range(self.rounds):
            outer, inner = self._unit(turn)
            unit = WIDTH if self.is_transposed else 1
            lines.append(f"let {self.name}_outer{turn} = {outer};")
            lines.append(f"let {self.name}_inner{turn} = ({inner}) * {unit}u;")
            if self._tag(turn) in tags:
                continue
            tags.add(self._tag(turn))
            lines += self.loader.prepare(self.name, self._tag(turn), self._outers(turn))
        return lines

    def _outers(self, turn: int) -> list[str]:
        """Four places on the outer axis; beyond its end, the last one."""
        first = f"({self.origin} + {self.name}_outer{turn} * {WIDTH}u)"
        if self.loader.pattern == "direct":
            return [first if self.loader.outer % self.size == 0 else f"min({first}, {self.loader.outer - WIDTH}u)"]
        places = [first, *(f"({first} + {component}u)" for component in range(1, WIDTH))]
        if self.loader.outer % self.size == 0:
            return places
        return [f"min({place}, {self.loader.outer - 1}u)" for place in places]

    def _guarded(self, turn: int, lines: list[str]) -> list[str]:
        """Statements for those invocations only that have a unit in this turn."""
        if (turn + 1) * self.threads <= self.units:
            return lines
        return [f"if ({self.name}_thread < {self.units - turn * self.threads}u) {{", *lines, "}"]

    def fetch(self, register: int, *, tail: bool) -> list[str]:
        """Read a tile into the variables ``p`` from a number on; in a tail, zeros from the end of the inner axis on."""
        lines = []
        unit = WIDTH if self.is_transposed else 1
        for tag in dict.fromkeys(self._tag(turn) for turn in range(self.rounds)):
            lines += self.loader.enter(self.name, tag, self.tile.depth)
        for turn in range(self.rounds):
            inner = f"first + {self.name}_inner{turn}"
            place = f"min({inner}, {self.loader.inner - unit}u)" if tail else inner
            values = self.loader.fetch(self.name, self._tag(turn), place, self.tile.depth)
            if self.loader.pattern == "scalar":
                values = [f"{self.fetched}({value})" for value in values]
            if tail:
                values = [f"select({self.fetched}(), {value}, {inner} < {self.loader.inner}u)" for value in values]
            first = register + turn * len(values)
            assigned = [f"p{first + component} = {value};" for component, value in enumerate(values)]
            lines += self._guarded(turn, assigned)
        return lines

    def put(self, register: int) -> list[str]:
        """Store the variables ``p`` from a number on in the workgroup's memory."""
        lines = []
        for turn in range(self.rounds):
            outer, inner = f"{self.name}_outer{turn}", f"{self.name}_inner{turn}"
            names = [
                f"p{register + turn * (WIDTH if self.is_transposed else 1) + component}" for component in range(WIDTH)
            ]
            stored = [
                f"{self._place(outer, inner, step)} = {self._widened(names, step)};"
                for step in range(WIDTH if self.is_transposed else 1)
            ]
            lines += self._guarded(turn, stored)
        return lines

    def _widened(self, names: list[str], step: int) -> str:
        """The vec4 to store of those that were read: the first, or the column number ``step`` of all four."""
        value = names[0]
        if self.is_transposed:
            value = f"{self.fetched}({', '.join(f'{name}.{COMPONENTS[step]}' for name in names)})"
        return value if self.fetched == self.vector else f"{self.vector}({value})"

    def _place(self, outer: str, inner: str, step: int) -> str:
        if self.exchange:
            outer = f"({outer} ^ ({inner} / {self.step}u * {self.exchange}u % {BANKS}u))"
        return f"tile[{self.base}u + ({inner} + {step}u) * {self.row}u + {outer}]"

    # --- reading again ---------------------------------------------------------------------------------------

    def _mask(self, inner: int) -> int:
        """The mask of a row of an invocation's slice, less the slice's own."""
        return inner // self.step * self.exchange % BANKS

    def places(self, mine: str, count: int, thread_size: int) -> list[str]:
        """Name where an invocation's vec4s lie in a row; ``count`` invocations stand side by side."""
        first = f"{self.base}u + slice * {self.tile.inner * self.row}u"
        lines = []
        for mask in sorted({self._mask(inner) for inner in range(self.tile.inner)}):
            of_slice = f"({mask}u + slice * {self.tile.inner // self.step * self.exchange}u) % {BANKS}u"
            for group in range(thread_size // WIDTH):
                place = f"({mine} + {group * count}u)"
                place = f"({place} ^ ({of_slice}))" if self.exchange else place
                lines.append(f"let {self.name}_at{group}_{mask} = {first} + {place};")
        return lines

    def take(self, variable: str, inner: int, thread_size: int) -> list[str]:
        """Read an invocation's vec4s of a row."""
        lines = []
        for group in range(thread_size // WIDTH):
            place = f"{self.name}_at{group}_{self._mask(inner)}"
            lines.append(f"  let {variable}{group} = tile[{place} + {inner * self.row}u];")
        return lines
