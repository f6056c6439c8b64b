"""Epilogues: a producer's final step and the element-wise nodes fused behind it, applied before the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import attrs

from webnn_py.core.graph import Node, Output, Value
from webnn_py.devices.wgpu.codegen.bound_operands import BoundOperands
from webnn_py.devices.wgpu.codegen.elementwise import ElementwiseFunction
from webnn_py.devices.wgpu.codegen.entry_point import Dispatch, vec4_entry_point, vec4_indices
from webnn_py.devices.wgpu.codegen.module import Binding, bound_kernel
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH, Element
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.left_to_readers import PartialSums
from webnn_py.devices.wgpu.records.lowering import Lowering

OWN_BUFFERS = 3
"""The buffers that a matrix product binds without an epilogue: two operands and the output."""


def unchanged(total: str) -> str:
    """Return the total: the final step of producers that have none."""
    return total


class Epilogue:
    """A node's final step and the nodes fused behind it, as WGSL functions that also store the output.

    ``finish(four, totals)`` stores a vec4, ``finish_one(i, total)`` a single element. Totals have the compute type of
    the node's data type. ``finish`` is split for callers that compute several vec4s before they store any:
    ``ended(four, totals)`` returns the result and ``put(four, …)`` stores it; so are ``ended_one`` and ``put_one``.
    """

    def __init__(
        self,
        lowering: Lowering,
        node: Node,
        terms: Sequence[tuple[Value, Layout]] = (),
        combine: Callable[..., str] = unchanged,
        own_buffers: int = OWN_BUFFERS,
    ) -> None:
        """Find the nodes that are fused behind a producer.

        Args:
            lowering: the lowering.
            node: the producer; it has one output.
            terms: the operands of its final step, each with the view of it that broadcasts to the output.
            combine: (the total, an expression for each term) → the node's result.
            own_buffers: the buffers that the node's kernel binds, without those of the terms.
        """
        self._lowering = lowering
        self._terms = terms
        self._combine = combine
        (self._value,) = node.results
        spare = lowering.features.max_storage_buffers - own_buffers - len(terms)
        last = lowering.epilogue(self._value, spare)
        self._fused = None if last is None else ElementwiseFunction.ending_at(lowering, last, self._value)
        result = self._value if self._fused is None else self._fused.result
        self.shape = result.descriptor.shape
        self.count = result.descriptor.element_count
        self.output = lowering.element(result)
        place = lowering.transposed_target(result)
        self.target, self._layout = place.buffer, place.layout
        following = "" if self._fused is None else f" {self._fused.label}"
        self.label = f"{node.operator.spec_name} {node.outputs[0].data_type}{following}"

    @property
    def padded_count(self) -> int:
        """The number of output elements, padded to whole vec4s."""
        return -(-self.count // WIDTH) * WIDTH

    @property
    def stores_single_elements(self) -> bool:
        """True if no two elements share a word, so that ``finish_one`` can be used."""
        return self.output.per_one == 1

    def partial_sums(self, sums: Buffer, parts: int, add_up: Callable[[], None]) -> tuple[Output, PartialSums] | None:
        """Return the result of the fused nodes, and the partial sums that its reader can compute it from.

        None if no nodes are fused, there is only one part, or the producer has a final step of its own.
        """
        if self._fused is None or self._terms or parts == 1 or not isinstance(self._fused.result, Output):
            return None
        return self._fused.result, PartialSums(self._value, sums, parts, self.padded_count, add_up)

    @property
    def rounds_totals(self) -> bool:
        """True if totals may be rounded to float16 before the epilogue."""
        return self._lowering.element(self._value).one == "f16" and not self._terms and self._combine is unchanged

    def write(self, *, vec4s: bool, is_rounded: bool = False) -> EpilogueCode:
        """Return the functions for vec4s or single elements.

        Args:
            vec4s: whether they store vec4s.
            is_rounded: whether totals are rounded to float16 already.
        """
        operands = BoundOperands(self._lowering)
        indices = vec4_indices(self.count) if vec4s else ["i"]
        element = self._lowering.element(self._value)
        leaves = () if self._fused is None else self._fused.leaves[1:]
        loads = [operands.load(value, self.shape, indices, layout) for value, layout in self._terms]
        loads += [operands.load(leaf, self.shape, indices) for leaf in leaves]
        terms = [f"t{index}" for index in range(len(self._terms))]
        others = [f"a{index}" for index in range(1, len(leaves) + 1)]
        kinds = [self._lowering.element(value).compute for value in (*(term for term, _ in self._terms), *leaves)]
        parameters = [
            f"total: {element.compute}",
            *(f"{name}: {kind}" for name, kind in zip([*terms, *others], kinds, strict=True)),
        ]
        is_rounded_later = is_rounded or self._fused is None or self._fused.rounds_first
        result = element.narrow(self._combine("total", *terms), is_stored=is_rounded_later)
        if self._fused is not None:
            result = f"chain({', '.join([result, *others])})"
        totals = [f"totals.{component}" for component in COMPONENTS] if vec4s else ["total"]
        calls = [f"compute({', '.join(elements)})" for elements in zip(totals, *loads, strict=True)]
        prepare = "".join(f"  {line}\n" for line in operands.statements)
        text = "\n".join(
            [
                *([] if self._fused is None else [self._fused.function("chain")]),
                f"fn compute({', '.join(parameters)}) -> {self.output.compute} {{ return {result}; }}",
                self._store_vec4s(prepare, calls, element) if vec4s else self._store_one(prepare, calls[0], element),
            ]
        )
        output = (self.target, "o", self.output.vec4 if vec4s else self.output.one)
        return EpilogueCode([output], list(operands.bindings), text)

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
    """The end of a kernel: the functions of an epilogue, or bare buffers for partial results.

    Attributes:
        writes: the bindings that are stored to.
        reads: the bindings that the functions read.
        text: the functions; "" where partial results are stored.
    """

    writes: Sequence[Binding]
    reads: Sequence[Binding] = ()
    text: str = ""

    @property
    def is_partial(self) -> bool:
        """True if the kernel stores partial results, to which another kernel applies the epilogue."""
        return not self.text

    def kernel(
        self, label: str, reads: Iterable[Binding], parts: Sequence[str], main: str, workgroups: Dispatch
    ) -> Kernel:
        """Return the kernel whose ``parts`` read ``reads``; ``main`` calls no helper functions itself."""
        texts = [self.text, *parts] if self.text else parts
        return bound_kernel(label, [*reads, *self.reads], self.writes, texts, workgroups, main)


def emit_split_k_sum(lowering: Lowering, epilogue: Epilogue, sums: Buffer, parts: int, kind: str = "f32") -> None:
    """Add up the partial sums of a split-K product and apply its epilogue.

    This is left to the kernel that reads the result if it can do both.

    Args:
        lowering: the lowering.
        epilogue: the epilogue.
        sums: the partial sums: ``parts`` arrays one after the other, each padded to whole vec4s.
        parts: the number of arrays.
        kind: the type of a sum; ``f16`` for a single part that is rounded.
    """
    add_up = partial(_emit_sum, lowering, epilogue, sums, parts, kind)
    partial_sums = epilogue.partial_sums(sums, parts, add_up)
    if partial_sums is None or not lowering.leave(*partial_sums):
        add_up()


def _emit_sum(lowering: Lowering, epilogue: Epilogue, sums: Buffer, parts: int, kind: str) -> None:
    finish = epilogue.write(vec4s=True, is_rounded=kind == "f16")
    vec4s = epilogue.padded_count // WIDTH
    total = " + ".join(["sums[four]", *(f"sums[four + {part * vec4s}u]" for part in range(1, parts))])
    total = total if kind == "f32" else f"vec4<f32>({total})"
    main, workgroups = vec4_entry_point(epilogue.count, [f"finish(four, {total});"])
    reads = [(sums, "sums", f"vec4<{kind}>")]
    lowering.emit(finish.kernel(f"{epilogue.label} (sum)", reads, [], main, workgroups))
