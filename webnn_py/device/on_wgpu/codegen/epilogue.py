"""Epilogues: a node's last step and the element-wise nodes behind it, computed before results are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import attrs

from webnn_py.device.on_wgpu.codegen.bound_operands import BoundOperands
from webnn_py.device.on_wgpu.codegen.elementwise import ElementwiseFunction
from webnn_py.device.on_wgpu.codegen.entry_point import vec4_entry_point
from webnn_py.device.on_wgpu.codegen.module import Binding, declare, module
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import COMPONENTS, WIDTH, Element
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.records.layout import Layout
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.partial_sums import PartialSums
from webnn_py.graph import Node, Output, Value

OWN_BUFFERS = 3
"""What a product binds besides: two operands and the output."""


@attrs.frozen
class EpilogueOperand:
    """An operand of the last step.

    Attributes:
        value: what to read.
        layout: how to look at it, so that it broadcasts to the output.
    """

    value: Value
    layout: Layout


def as_it_is(total: str) -> str:
    """The last step of a producer that has none."""
    return total


class Epilogue:
    """The last step of a node, as WGSL functions that also store the output.

    ``finish(four, totals)`` stores four neighbouring elements, ``finish_one(i, total)`` a single one. Totals are of the
    type in which the node's data type is computed. Both have two halves: ``ended(four, totals)`` is what is stored, and
    ``put(four, …)`` stores it; likewise ``ended_one`` and ``put_one``.
    """

    def __init__(
        self,
        lowering: Lowering,
        node: Node,
        terms: Sequence[EpilogueOperand] = (),
        combine: Callable[..., str] = as_it_is,
        own_buffers: int = OWN_BUFFERS,
    ) -> None:
        """Find what the node's kernel may compute besides.

        Args:
            lowering: the walk.
            node: the producer; it has one output.
            terms: what its last step reads.
            combine: (the total, one expression for each term) → the node's result.
            own_buffers: how many the node's kernel binds besides those of the terms.
        """
        self._lowering = lowering
        self._terms = terms
        self._combine = combine
        (self._value,) = node.results
        spare = lowering.features.max_storage_buffers - own_buffers - len(terms)
        last = lowering.epilogue(self._value, spare)
        self._fused = None if last is None else ElementwiseFunction.of(lowering, last, self._value)
        result = self._value if self._fused is None else self._fused.result
        self.shape = result.descriptor.shape
        self.count = result.descriptor.element_count
        self.output = lowering.element(result)
        place = lowering.transposed_target(result)
        self.target, self._layout = place.buffer, place.layout
        following = "" if self._fused is None else f" {self._fused.label}"
        self.label = f"{node.operator.spec_name} {node.outputs[0].data_type}{following}"

    @property
    def stores_single_elements(self) -> bool:
        """Whether an element has memory of its own, so that ``finish_one`` can be used."""
        return self.output.per_one == 1

    def partial_sums(self, sums: Buffer, parts: int, add_up: Callable[[], None]) -> tuple[Output, PartialSums] | None:
        """What the last of the fused nodes returns, and the parts that another kernel can make it of.

        None where no nodes are fused, there is but one part, or the producer has a last step of its own.
        """
        if self._fused is None or self._terms or parts == 1 or not isinstance(self._fused.result, Output):
            return None
        distance = -(-self.count // WIDTH) * WIDTH
        return self._fused.result, PartialSums(self._value, sums, parts, distance, add_up)

    @property
    def rounds_totals(self) -> bool:
        """Whether totals become float16 before anything else is done with them, or might as well."""
        return self._lowering.element(self._value).one == "f16" and not self._terms and self._combine is as_it_is

    def write(self, *, vec4s: bool, is_rounded: bool = False) -> EpilogueCode:
        """The functions' text and what it binds: for vec4s or single elements, of totals that may be rounded."""
        operands = BoundOperands(self._lowering)
        indices = ["i", *(f"i + {component}u" for component in range(1, WIDTH))] if vec4s else ["i"]
        if vec4s and self.count % WIDTH:
            indices = [f"min({component}, {self.count - 1}u)" for component in indices]
        element = self._lowering.element(self._value)
        leaves = () if self._fused is None else self._fused.leaves[1:]
        loads = [operands.scalars(term.value, self.shape, indices, term.layout) for term in self._terms]
        loads += [operands.scalars(leaf, self.shape, indices) for leaf in leaves]
        terms = [f"t{index}" for index in range(len(self._terms))]
        others = [f"a{index}" for index in range(1, len(leaves) + 1)]
        kinds = [self._lowering.element(value).compute for value in (*(term.value for term in self._terms), *leaves)]
        parameters = [
            f"total: {element.compute}",
            *(f"{name}: {kind}" for name, kind in zip([*terms, *others], kinds, strict=True)),
        ]
        is_rounded_later = is_rounded or self._fused is None or self._fused.rounds_first
        result = element.narrow(self._combine("total", *terms), is_stored=is_rounded_later)
        if self._fused is not None:
            result = f"chain({', '.join([result, *others])})"
        calls = [
            f"compute({', '.join([total, *(scalars[component] for _, scalars in loads)])})"
            for component, total in enumerate(
                [f"totals.{component}" for component in COMPONENTS] if vec4s else ["total"]
            )
        ]
        prepare = "".join(dict.fromkeys(text for text, _ in loads))
        text = "\n".join(
            [
                *([] if self._fused is None else [self._fused.function("chain")]),
                f"fn compute({', '.join(parameters)}) -> {self.output.compute} {{ return {result}; }}",
                self._store_vec4s(prepare, calls, element) if vec4s else self._store_one(prepare, calls[0], element),
            ]
        )
        bindings = [(buffer, name, kind) for (buffer, kind), name in operands.bindings.items()]
        return EpilogueCode(text, bindings, self.target, self.output.vec4 if vec4s else self.output.one)

    def _store_vec4s(self, prepare: str, calls: list[str], element: Element) -> str:
        kind, totals = self.output.vec4, f"vec4<{element.compute}>"
        vec4s = self._layout.vec4s()
        place = "four" if self._layout.is_dense or vec4s is None else vec4s.index("four")
        return f"""fn ended(four: u32, totals: {totals}) -> {kind} {{
  let i = four * {WIDTH}u;
{prepare}  return {self.output.pack(calls)};
}}
fn put(four: u32, ending: {kind}) {{ o[{place}] = ending; }}
fn finish(four: u32, totals: {totals}) {{ put(four, ended(four, totals)); }}"""

    def _store_one(self, prepare: str, call: str, element: Element) -> str:
        kind = self.output.one
        value = f"f16({call})" if kind == "f16" else call
        place = "i" if self._layout.is_dense else self._layout.index("i")
        return f"""fn ended_one(i: u32, total: {element.compute}) -> {kind} {{
{prepare}  return {value};
}}
fn put_one(i: u32, ending: {kind}) {{ o[{place}] = ending; }}
fn finish_one(i: u32, total: {element.compute}) {{ put_one(i, ended_one(i, total)); }}"""


@attrs.frozen
class EpilogueCode:
    """The functions that end a kernel.

    Attributes:
        text: the functions; they store in ``o``.
        bindings: what they read: buffer, name, type of the array's elements.
        target: the buffer to store in.
        kind: the type of its array's elements.
    """

    text: str
    bindings: Sequence[Binding]
    target: Buffer
    kind: str

    def kernel(
        self,
        label: str,
        reads: Sequence[Binding],
        parts: Sequence[str],
        main: str,
        workgroups: tuple[int, int, int],
    ) -> Kernel:
        """The kernel whose other parts read ``reads``: buffer, name, type of the array's elements.

        ``main`` calls functions of the parts alone.
        """
        bound = [*reads, *self.bindings]
        declared = declare(bound, [(self.target, "o", self.kind)])
        source = module(declared, self.text, *parts, main=main)
        return Kernel(label, source, tuple(buffer for buffer, _, _ in bound), (self.target,), workgroups)


def emit_split_k_sum(lowering: Lowering, epilogue: Epilogue, sums: Buffer, parts: int, kind: str = "f32") -> None:
    """Add up ``parts`` arrays of sums, one after the other in whole vec4s, and end the operator.

    Where a kernel can do both as it reads the result, it is left to that.

    Args:
        lowering: the walk.
        epilogue: what becomes of the sums.
        sums: the arrays.
        parts: their number.
        kind: the type of a sum; ``f16`` if there is one part only, which is rounded.
    """
    add_up = partial(_emit_sum, lowering, epilogue, sums, parts, kind)
    partial_sums = epilogue.partial_sums(sums, parts, add_up)
    if partial_sums is None or not lowering.leave(*partial_sums):
        add_up()


def _emit_sum(lowering: Lowering, epilogue: Epilogue, sums: Buffer, parts: int, kind: str) -> None:
    finish = epilogue.write(vec4s=True, is_rounded=kind == "f16")
    vec4s = -(-epilogue.count // WIDTH)
    total = " + ".join(["sums[four]", *(f"sums[four + {part * vec4s}u]" for part in range(1, parts))])
    total = total if kind == "f32" else f"vec4<f32>({total})"
    main, workgroups = vec4_entry_point(epilogue.count, f"  finish(four, {total});")
    reads = [(sums, "sums", f"vec4<{kind}>")]
    lowering.emit(finish.kernel(f"{epilogue.label} (sum)", reads, [], main, workgroups))
