"""Products of a matrix and a few vectors: they wait for memory, so the matrix is read once, by all of the GPU.

The matrix is the side with the long outer axis; the vectors are the other side, of at most :data:`MOST_VECTORS`. Where
the matrix has its outer axis side by side in memory, an invocation has a vec4 of that axis and a part of the inner
axis; where it has its inner axis so, neighbouring invocations share a place on the outer axis. In both cases the
workgroup adds up at the end.
"""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.entry_point import grid
from webnn_py.device.on_wgpu.codegen.epilogue import Epilogue, EpilogueCode, emit_split_k_sum
from webnn_py.device.on_wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.device.on_wgpu.codegen.gemm.operand_loader import bound
from webnn_py.device.on_wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.device.on_wgpu.codegen.gemm.tile_sizes import UNITS
from webnn_py.device.on_wgpu.codegen.gemm.tiled import padded_count
from webnn_py.device.on_wgpu.codegen.module import declare, module
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import COMPONENTS, WIDTH
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.records.lowering import Lowering

MOST_VECTORS: Final = 8
THREADS: Final = 256
MOST_THREADS: Final = 1024
ENOUGH: Final = 2 * THREADS * UNITS
"""Invocations that keep a large GPU busy."""

ADDED_AT_ONCE: Final = 4
"""Vectors whose vec4s of sums have room in a workgroup's memory."""

SHORT: Final = 512
"""Vec4s of an inner axis that larger workgroups read as soon as two kernels read halves and add them."""

MOST_ADDED: Final = 16
"""Sums that one invocation adds up, where a workgroup has more than :data:`THREADS` invocations."""


def emit_gemv(lowering: Lowering, product: GemmProblem, epilogue: Epilogue) -> None:
    """The kernels of a product of which :func:`.is_gemv` is true."""
    plan = GemvPlan.of(product, lowering.features)
    stores = plan.stores_vec4s or epilogue.stores_single_elements
    if plan.splits == 1 and stores:
        end = epilogue.write(vec4s=plan.stores_vec4s)
        lowering.emit(GemvWriter(plan, epilogue.count, end).kernel(epilogue.label))
        return
    sums = Buffer("block", plan.splits * padded_count(epilogue) * 4)
    lowering.emit(GemvWriter(plan, epilogue.count, sums).kernel(f"{epilogue.label} (parts)"))
    emit_split_k_sum(lowering, epilogue, sums, plan.splits)


def share_along(matrix: MatrixLoader, batch: int) -> int:
    """How many invocations to give a place on the outer axis of a matrix with its inner axis side by side."""
    sharers = 16
    while sharers < THREADS and sharers * WIDTH <= matrix.inner // WIDTH and matrix.outer * batch * sharers < ENOUGH:
        sharers *= 2
    return sharers


def share_across(matrix: MatrixLoader, batch: int) -> int:
    """How many invocations to give a place on the outer axis of a matrix with its outer axis side by side."""
    units = matrix.outer // (WIDTH if matrix.pattern == "direct" else 1) * batch
    side = 8  # vec4s, a line of the cache
    while side < THREADS and (units >= UNITS * 2 * side or THREADS // side > matrix.inner // WIDTH):
        side *= 2
    return THREADS // side


@attrs.frozen
class GemvPlan:
    """How the work is shared out.

    Attributes:
        product: the product.
        matrix: the long side.
        vectors: the short side.
        vectors_are_rows: whether the short side is the left one.
        sharers: invocations that share a place on the outer axis.
        places: places on the outer axis of an invocation, where vec4s do not lie along it.
        splits: into how many parts the inner axis is cut, each for other workgroups.
        threads: invocations of a workgroup.
        unrolled: steps along the inner axis whose elements an invocation reads before it multiplies.
    """

    product: GemmProblem
    matrix: MatrixLoader
    vectors: MatrixLoader
    vectors_are_rows: bool
    sharers: int
    places: int
    splits: int
    threads: int = THREADS
    unrolled: int = 1

    @classmethod
    def of(cls, product: GemmProblem, features: Features) -> GemvPlan:
        """Share out a product."""
        left, right = product.left, product.right
        assert isinstance(left, MatrixLoader)  # noqa: S101 - is_gemv says so
        assert isinstance(right, MatrixLoader)  # noqa: S101
        vectors_are_rows = left.outer <= right.outer
        vectors, matrix = (left, right) if vectors_are_rows else (right, left)
        vectors = attrs.evolve(vectors, forced="transposed" if vectors.can_transpose else "scalar")
        sharers, places = share_along(matrix, product.batch), 1
        if not matrix.follows_inner:
            sharers = share_across(matrix, product.batch)
        elif vectors.outer <= MOST_VECTORS // WIDTH and matrix.outer * product.batch * sharers > ENOUGH * WIDTH:
            places = WIDTH
        plan = cls(product, matrix, vectors, vectors_are_rows, sharers, places, splits=1)
        groups = -(-matrix.outer // plan.per_group) * product.batch
        splits = max(1, min(UNITS // groups, plan.steps // (sharers * WIDTH)))
        if 3 * groups > UNITS and plan.steps <= SHORT and not plan.is_along:
            splits = 1
        plan = attrs.evolve(plan, splits=splits)
        return plan if plan.is_along else plan.hurried(groups, features)

    def hurried(self, groups: int, features: Features) -> GemvPlan:
        """The same with more to read at once, where a processor has but a workgroup or two."""
        plan = self
        each = self.steps // self.splits
        while (
            plan.threads < min(MOST_THREADS, features.max_invocations)
            and groups * self.splits * plan.threads < ENOUGH * 2
            and each >= 4 * plan.sharers
        ):
            plan = attrs.evolve(plan, threads=2 * plan.threads, sharers=2 * plan.sharers)
        most = 4 if self.vectors.outer <= 2 else 1
        while plan.unrolled < most and each >= 4 * plan.unrolled * plan.sharers:
            plan = attrs.evolve(plan, unrolled=2 * plan.unrolled)
        return plan

    @property
    def is_along(self) -> bool:
        """Whether neighbouring invocations have neighbours on the inner axis."""
        return self.matrix.follows_inner

    @property
    def unit(self) -> int:
        """Places on the outer axis that an invocation reads at once, where they lie side by side."""
        return WIDTH if self.matrix.pattern == "direct" else 1

    @property
    def side(self) -> int:
        """Invocations of a workgroup at different places on the outer axis."""
        return self.threads // self.sharers

    @property
    def added_at_once(self) -> int:
        """Vectors whose sums have room in a workgroup's memory."""
        return max(1, ADDED_AT_ONCE * THREADS // self.threads)

    @property
    def per_group(self) -> int:
        """Places on the outer axis of a workgroup."""
        return self.side * (self.places if self.is_along else self.unit)

    @property
    def steps(self) -> int:
        """Vec4s of the inner axis."""
        return -(-self.matrix.inner // WIDTH)

    @property
    def stores_vec4s(self) -> bool:
        """Whether whole vec4s of the output are stored."""
        side_by_side = self.per_group % WIDTH == 0 if self.is_along else self.unit == WIDTH
        return self.vectors_are_rows and self.product.vec4s and side_by_side


class GemvWriter:
    """Writes the kernel: ``m`` are elements of the matrix, ``v`` of the vectors, ``c`` the sums."""

    def __init__(self, plan: GemvPlan, count: int, end: EpilogueCode | Buffer) -> None:
        self._plan = plan
        self._count = count
        self._end = end

    def kernel(self, label: str) -> Kernel:
        """The kernel."""
        plan = self._plan
        tiles = -(-plan.matrix.outer // plan.per_group)
        groups = tiles * plan.product.batch * plan.splits
        workgroups = grid(groups)
        each = -(-plan.steps // plan.splits)
        lines = [
            f"let number = group.x + group.y * {workgroups[0]}u;",
            f"if (number >= {groups}u) {{ return; }}",
            f"let outer0 = number % {tiles}u * {plan.per_group}u;",
            f"let batch = number / {tiles}u / {plan.splits}u;",
            f"let part = number / {tiles}u % {plan.splits}u;",
            f"let begin = part * {each}u;",
            f"let end = min(begin + {each}u, {plan.steps}u);",
            *plan.matrix.begin("matrix"),
            *plan.vectors.begin("vectors"),
            *(self._along() if plan.is_along else self._across()),
        ]
        body = "\n".join(f"  {line}" for line in lines)
        vector = "f32" if plan.is_along or plan.unit == 1 else "vec4<f32>"
        room = plan.vectors.outer * plan.places if plan.is_along else min(plan.vectors.outer, plan.added_at_once)
        reads, functions = bound({"matrix": plan.matrix, "vectors": plan.vectors}, "f32")
        parts = [f"var<workgroup> sums_of: array<{vector}, {room * plan.threads}>;", *functions]
        main = f"""
@compute @workgroup_size({plan.threads})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {{
{body}
}}
"""
        if isinstance(self._end, EpilogueCode):
            return self._end.kernel(label, reads, parts, main, workgroups)
        declared = declare(reads, [(self._end, "sums", "vec4<f32>" if plan.stores_vec4s else "f32")])
        source = module(declared, *parts, main=main)
        return Kernel(label, source, tuple(buffer for buffer, _, _ in reads), (self._end,), workgroups)

    def _vectors(self, step: str, tag: str = "") -> list[str]:
        """Read the step-th vec4 of every vector: ``v``; beyond the end zeros."""
        vectors = self._plan.vectors
        lines = []
        for index in range(vectors.outer):
            base = (
                f"vectors_base + {index * vectors.outer_stride // (WIDTH if vectors.pattern == 'transposed' else 1)}u"
            )
            if vectors.pattern == "transposed":
                lines.append(f"let v{tag}{index} = vectors_at({base} + {vectors.along(f'{step} * {WIDTH}u')});")
                continue
            values = [
                self._checked(f"vectors_at({base} + {{}})", vectors, step, component) for component in range(WIDTH)
            ]
            lines.append(f"let v{tag}{index} = vec4<f32>({', '.join(values)});")
        return lines

    def _checked(self, read: str, source: MatrixLoader, step: str, component: int) -> str:
        """One element of a vec4 along the inner axis; zero beyond the end."""
        inner, size = f"{step} * {WIDTH}u + {component}u", source.inner
        if size % WIDTH == 0:
            return read.format(source.along(inner))
        return f"select(0.0, {read.format(source.along(f'min({inner}, {size - 1}u)'))}, {inner} < {size}u)"

    # --- the outer axis side by side in memory ---------------------------------------------------------------

    def _across(self) -> list[str]:
        plan = self._plan
        kind = "vec4<f32>" if plan.unit == WIDTH else "f32"
        last = plan.matrix.outer - plan.unit
        place = "matrix_base + o / 4u" if plan.unit == WIDTH else f"matrix_base + o * {plan.matrix.outer_stride}u"
        lines = [
            f"let mine = t % {plan.side}u;",
            f"let o = min(outer0 + mine * {plan.unit}u, {last}u);",
            f"let place = {place};",
            *(f"var c{index} = {kind}();" for index in range(plan.vectors.outer)),
        ]
        first = f"begin + t / {plan.side}u"
        if plan.unrolled == 1:
            lines.append(f"for (var step = {first}; step < end; step += {plan.sharers}u) {{")
        else:
            lines += [f"var step = {first};", *self._across_unrolled(kind)]
            lines.append(f"for (; step < end; step += {plan.sharers}u) {{")
        return [*lines, *self._read_across(kind, "step"), *self._multiply_across(kind), "}", *self._add_across()]

    def _across_unrolled(self, kind: str) -> list[str]:
        """The loop over several steps at once: all of them are read before any is multiplied."""
        plan = self._plan
        tags = [f"{'abcd'[turn]}_" for turn in range(plan.unrolled)]
        reach = (plan.unrolled - 1) * plan.sharers
        lines = [f"for (; step + {reach}u < end; step += {plan.unrolled * plan.sharers}u) {{"]
        for turn, tag in enumerate(tags):
            lines += [
                f"  let step_{tag} = step + {turn * plan.sharers}u;",
                *self._read_across(kind, f"step_{tag}", tag),
            ]
        for tag in tags:
            lines += self._multiply_across(kind, tag)
        return [*lines, "}"]

    def _read_across(self, kind: str, step: str, tag: str = "") -> list[str]:
        """Read a step of the matrix and of the vectors."""
        plan = self._plan
        lines = [f"  {line}" for line in self._vectors(step, tag)]
        for component in range(WIDTH):
            inner = f"min({step} * {WIDTH}u + {component}u, {plan.matrix.inner - 1}u)"
            inner = f"{step} * {WIDTH}u + {component}u" if plan.matrix.inner % WIDTH == 0 else inner
            if plan.unit == WIDTH:
                (value,) = plan.matrix.fetch("matrix", "place", inner, 0)
            else:
                value = f"matrix_at(place + {plan.matrix.along(inner)})"
            if plan.matrix.inner % WIDTH:
                value = f"select({kind}(), {value}, {step} * {WIDTH}u + {component}u < {plan.matrix.inner}u)"
            lines.append(f"  let m{tag}{component} = {value};")
        return lines

    def _multiply_across(self, kind: str, tag: str = "") -> list[str]:
        return [
            f"  c{index} = fma(m{tag}{component}, {kind}(v{tag}{index}.{COMPONENTS[component]}), c{index});"
            for index in range(self._plan.vectors.outer)
            for component in range(WIDTH)
        ]

    def _add_across(self) -> list[str]:
        plan = self._plan
        lines = []
        for first in range(0, plan.vectors.outer, plan.added_at_once):
            some = range(first, min(first + plan.added_at_once, plan.vectors.outer))
            if first:
                lines.append("workgroupBarrier();")
            lines += [f"sums_of[{(index - first) * plan.threads}u + t] = c{index};" for index in some]
            lanes = plan.sharers
            while plan.threads > THREADS and lanes > MOST_ADDED:
                lanes //= 2
                lines += ["workgroupBarrier();", f"if (t < {lanes * plan.side}u) {{"]
                for number in range(len(some)):
                    at = f"{number * plan.threads}u + t"
                    lines.append(f"  sums_of[{at}] += sums_of[{at} + {lanes * plan.side}u];")
                lines.append("}")
            lines += [
                "workgroupBarrier();",
                f"for (var item = t; item < {len(some) * plan.side}u; item += {plan.threads}u) {{",
                f"  let first = item / {plan.side}u * {plan.threads}u + item % {plan.side}u;",
                "  var total = sums_of[first];",
                f"  for (var lane = 1u; lane < {lanes}u; lane++) {{",
                f"    total += sums_of[first + lane * {plan.side}u];",
                "  }",
                f"  let v = {first}u + item / {plan.side}u;",
                f"  let o = outer0 + item % {plan.side}u * {plan.unit}u;",
                f"  if (o < {plan.matrix.outer}u) {{",
            ]
            if plan.stores_vec4s:
                lines.append("    " + self._store("finish", "v", "o", "total", WIDTH))
            elif plan.unit == WIDTH:
                for component in range(WIDTH):
                    lines.append(
                        "    "
                        + self._store("finish_one", "v", f"(o + {component}u)", f"total.{COMPONENTS[component]}", 1)
                    )
            else:
                lines.append("    " + self._store("finish_one", "v", "o", "total", 1))
            lines += ["  }", "}"]
        return lines

    # --- the inner axis side by side in memory ---------------------------------------------------------------

    def _along(self) -> list[str]:
        plan = self._plan
        unit = WIDTH if plan.matrix.pattern == "transposed" else 1
        stride = plan.matrix.outer_stride // unit
        sums = [(place, index) for place in range(plan.places) for index in range(plan.vectors.outer)]
        lines = [f"let lane = t % {plan.sharers}u;", f"let mine = t / {plan.sharers}u * {plan.places}u;"]
        for place in range(plan.places):
            outer = f"min(outer0 + mine + {place}u, {plan.matrix.outer - 1}u)"
            lines.append(f"let place{place} = matrix_base + {outer} * {stride}u;")
        lines += [f"var c{place}_{index} = vec4<f32>();" for place, index in sums]
        lines += [
            f"for (var step = begin + lane; step < end; step += {plan.sharers}u) {{",
            *(f"  {line}" for line in self._vectors("step")),
        ]
        for place in range(plan.places):
            if unit == WIDTH:
                value = f"matrix_at(place{place} + {plan.matrix.along(f'step * {WIDTH}u')})"
            else:
                read = f"matrix_at(place{place} + {{}})"
                value = ", ".join(self._checked(read, plan.matrix, "step", component) for component in range(WIDTH))
                value = f"vec4<f32>({value})"
            lines.append(f"  let m{place} = {value};")
        lines += [f"  c{place}_{index} = fma(m{place}, v{index}, c{place}_{index});" for place, index in sums]
        return [*lines, "}", *self._add_along(sums)]

    def _add_along(self, sums: list[tuple[int, int]]) -> list[str]:
        """Add up in halves; the sums of a place on the outer axis end in the memory of its first lane."""
        plan = self._plan
        lines = []
        for number, (place, index) in enumerate(sums):
            lines.append(f"sums_of[{number * THREADS}u + t] = dot(c{place}_{index}, vec4<f32>(1.0));")
        half = plan.sharers // 2
        while half:
            lines += ["workgroupBarrier();", f"if (lane < {half}u) {{"]
            for number in range(len(sums)):
                at = f"{number * THREADS}u + t"
                lines.append(f"  sums_of[{at}] += sums_of[{at} + {half}u];")
            lines.append("}")
            half //= 2
        outputs = plan.vectors.outer * plan.per_group
        unit = WIDTH if plan.stores_vec4s else 1
        lines += [
            "workgroupBarrier();",
            f"for (var item = t; item < {outputs // unit}u; item += {THREADS}u) {{",
            f"  let v = item / {plan.per_group // unit}u;",
            f"  let place = item % {plan.per_group // unit}u * {unit}u;",
            "  let o = outer0 + place;",
            f"  if (o < {plan.matrix.outer}u) {{",
        ]

        def total(place: str) -> str:
            number = f"(({place}) % {plan.places}u * {plan.vectors.outer}u + v)"
            return f"sums_of[{number} * {THREADS}u + ({place}) / {plan.places}u * {plan.sharers}u]"

        if unit == WIDTH:
            totals = ", ".join(total(f"place + {component}u") for component in range(WIDTH))
            lines.append("    " + self._store("finish", "v", "o", f"vec4<f32>({totals})", WIDTH))
        else:
            lines.append("    " + self._store("finish_one", "v", "o", total("place"), 1))
        return [*lines, "  }", "}"]

    def _store(self, function: str, vector: str, outer: str, total: str, unit: int) -> str:
        plan = self._plan
        place = (vector, outer) if plan.vectors_are_rows else (outer, vector)
        number = f"({plan.product.address('batch', *place)})"
        number = number if unit == 1 else f"{number} / {WIDTH}u"
        if isinstance(self._end, EpilogueCode):
            return f"{function}({number}, {total});"
        part = -(-self._count // WIDTH) * WIDTH // unit
        return f"sums[part * {part}u + {number}] = {total};"
