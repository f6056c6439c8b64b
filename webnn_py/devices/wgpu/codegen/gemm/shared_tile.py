"""Staging of a tile of one operand in workgroup memory, and loads from there into registers.

The tile has a row of vec4s along the outer axis for each inner index. Where adjacent invocations store to the same
column, the vec4s of rows are swizzled to avoid bank conflicts.
"""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.devices.wgpu.codegen.gemm.operand_loader import OperandLoader
from webnn_py.devices.wgpu.codegen.gemm.tile import GemmTile
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH

BANKS: Final = 8
"""The vec4s that workgroup memory delivers at once."""


@attrs.frozen
class SharedMemoryTile:
    """The staging of one operand.

    Attributes:
        name: the operand's name.
        loader: loads the operand.
        tile: the tile of the product.
        size: the outer length of the operand's tile.
        origin: the variable with the outer index of the tile.
        threads: the number of invocations that take part.
        base: the offset of the operand in workgroup memory, in vec4s.
        vector: the type of a vec4 in workgroup memory.
        fetched: the type of a loaded vec4: of float16, or ``vector``.
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
        """The vec4s of a row."""
        return self.size // WIDTH

    @property
    def is_transposed(self) -> bool:
        """True if an invocation loads 4 × 4 blocks and transposes them."""
        return self.loader.pattern == "transposed"

    @property
    def units(self) -> int:
        """The number of vec4s, or 4 × 4 blocks, to load."""
        return self.row * self.tile.depth // (WIDTH if self.is_transposed else 1)

    @property
    def rounds(self) -> int:
        """The most units that an invocation loads."""
        return -(-self.units // self.threads)

    @property
    def vec4s(self) -> int:
        """The loaded vec4s that an invocation holds."""
        return self.rounds * (WIDTH if self.is_transposed else 1)

    @property
    def exchange(self) -> int:
        """The increment of the swizzle mask from one inner unit to the next; 0 without swizzling."""
        if not self.loader.follows_inner or self.row % BANKS:
            return 0
        return 2 if self.is_transposed else 1

    @property
    def step(self) -> int:
        """The number of rows with the same swizzle mask."""
        return WIDTH if self.is_transposed else 1

    # --- staging ---------------------------------------------------------------------------------------------

    def _unit(self, turn: int) -> tuple[str, str]:
        """Return the outer and inner index of an invocation's unit."""
        index, number = f"{self.name}_thread", turn * self.threads
        inner = self.tile.depth // (WIDTH if self.is_transposed else 1)
        size = inner if self.loader.follows_inner else self.row
        if self.threads % size == 0:
            fast, slow = f"{index} % {size}u", f"{index} / {size}u + {number // size}u"
        else:
            fast, slow = f"({index} + {number}u) % {size}u", f"({index} + {number}u) / {size}u"
        return (slow, fast) if self.loader.follows_inner else (fast, slow)

    def _tag(self, turn: int) -> str:
        """Return the tag of a unit's loop-invariant variables; units of the same outer index share them."""
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
        """Return the four outer indices of a unit, clamped to the last one."""
        first = f"({self.origin} + {self.name}_outer{turn} * {WIDTH}u)"
        if self.loader.pattern == "direct":
            return [first if self.loader.outer % self.size == 0 else f"min({first}, {self.loader.outer - WIDTH}u)"]
        places = [first, *(f"({first} + {component}u)" for component in range(1, WIDTH))]
        if self.loader.outer % self.size == 0:
            return places
        return [f"min({place}, {self.loader.outer - 1}u)" for place in places]

    def _guarded(self, turn: int, lines: list[str]) -> list[str]:
        """Guard statements so that only invocations with a unit in this turn run them."""
        if (turn + 1) * self.threads <= self.units:
            return lines
        return [f"if ({self.name}_thread < {self.units - turn * self.threads}u) {{", *lines, "}"]

    def fetch(self, register: int, *, tail: bool) -> list[str]:
        """Load a tile into the registers ``p`` from ``register`` on; a tail is zero-padded along the inner axis."""
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
        """Store the registers ``p`` from ``register`` on in workgroup memory."""
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
        """Return the vec4 to store: the first loaded one, or the column ``step`` of a 4 × 4 block."""
        value = names[0]
        if self.is_transposed:
            value = f"{self.fetched}({', '.join(f'{name}.{COMPONENTS[step]}' for name in names)})"
        return value if self.fetched == self.vector else f"{self.vector}({value})"

    def _place(self, outer: str, inner: str, step: int) -> str:
        if self.exchange:
            outer = f"({outer} ^ ({inner} / {self.step}u * {self.exchange}u % {BANKS}u))"
        return f"tile[{self.base}u + ({inner} + {step}u) * {self.row}u + {outer}]"

    # --- loads from workgroup memory -------------------------------------------------------------------------

    def _mask(self, inner: int) -> int:
        """Return the swizzle mask of a row, relative to the invocation's slice."""
        return inner // self.step * self.exchange % BANKS

    def places(self, mine: str, count: int, thread_size: int) -> list[str]:
        """Name the offsets of an invocation's vec4s in a row that ``count`` invocations share."""
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
        """Load an invocation's vec4s of a row."""
        lines = []
        for group in range(thread_size // WIDTH):
            place = f"{self.name}_at{group}_{self._mask(inner)}"
            lines.append(f"  let {variable}{group} = tile[{place} + {inner * self.row}u];")
        return lines
