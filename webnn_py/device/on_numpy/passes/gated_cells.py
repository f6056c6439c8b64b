"""The cell of an LSTM that is drawn in single operators, in one step: what follows the sums of its gates."""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs
import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_numpy.passes.matching import Matched, UnlikeError, check, single
from webnn_py.device.on_numpy.routines.special import prepare_sigmoid
from webnn_py.device.on_numpy.scratch import LEAST, scratch
from webnn_py.device.on_numpy.table import Array, Kernel, PreparedKernel, Run, in_order, kernel
from webnn_py.graph import Node, Output, Value
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand

GATES: Final = ("input", "output", "forget", "candidate")
CANDIDATE: Final = GATES.index("candidate")


def gated_cell(gates: MLOperand, cell: MLOperand, *, layout: tuple[int, ...]) -> list[MLOperandDescriptor]:
    """The next states of a cell without peepholes, from the sums of its gates.

    Args:
        gates: float32 [batch, 4 · hidden].
        cell: float32 [batch, hidden], the state of the cell.
        layout: where the gates stand: the input gate, the output gate, the forget gate, the candidate.

    Returns:
        The next hidden state, and the next state of the cell.
    """
    del gates, layout
    return [MLOperandDescriptor("float32", cell.shape)] * 2


GATED_CELL: Final = Operator(gated_cell, "lstmCell", {})


def _work(node: Node) -> float:
    return 20 * node.outputs[0].element_count


@kernel(GATED_CELL, work=_work)
def make_gated_cell(node: Node) -> Kernel:
    """The kernel; see the operator."""
    batch, hidden = node.outputs[0].shape
    layout = node.options["layout"]
    *sigmoids, candidate = (slice(place * hidden, (place + 1) * hidden) for place in layout)
    # One pass for three gates; with the candidate's between them, which is not used.
    first, end = min(part.start for part in sigmoids), max(part.stop for part in sigmoids)
    open_ = scratch((batch, end - first))
    input_, output, forget = (open_[:, part.start - first : part.stop - first] for part in sigmoids)

    def prepare(gates: Array, cell: Array, next_hidden: Array, next_cell: Array) -> Run:
        return in_order(
            [
                prepare_sigmoid(gates[:, first:end], open_),
                partial(np.tanh, gates[:, candidate], next_hidden),
                partial(np.multiply, input_, next_hidden, next_hidden),
                partial(np.multiply, forget, cell, next_cell),
                partial(np.add, next_cell, next_hidden, next_cell),
                partial(np.tanh, next_cell, next_hidden),
                partial(np.multiply, output, next_hidden, next_hidden),
            ]
        )

    return PreparedKernel(prepare)


@attrs.frozen
class GatedCell:
    """What a graph says in single operators.

    Attributes:
        gates: the sums.
        cell: the state before.
        following: the state of the cell after it.
        layout: where the gates stand.
        drawn: the places of the operators.
    """

    gates: Value
    cell: Value
    following: Value
    layout: tuple[int, ...]
    drawn: tuple[int, ...]

    @classmethod
    def at(cls, hidden: Node) -> GatedCell:
        """What ends in the product that is the hidden state.

        Raises:
            UnlikeError: the node is none.
        """
        matched = Matched()
        matched.include(hidden)
        output, shown = _factors(matched, hidden, "tanh")
        following = single(shown.operands["input"])
        terms = [single(matched.before(following, "add").operands[name]) for name in "ab"]
        forget, cell, input_, candidate = _terms(matched, terms)
        parts = (input_, output, forget, single(candidate.operands["input"]))
        splits = {part.node for part in parts if isinstance(part, Output)}
        check(len(splits) == 1 and all(isinstance(part, Output) for part in parts))
        split = matched.include(splits.pop())
        layout = tuple(part.index for part in parts if isinstance(part, Output))
        batch, size = _sizes(hidden)
        gates = single(split.operands["input"])
        check(split.operator.name == "split" and sorted(layout) == [0, 1, 2, 3])
        check(gates.descriptor.shape == (batch, 4 * size) and cell.descriptor.shape == (batch, size))
        check(all(piece.shape == (batch, size) for piece in split.outputs))
        check(gates.descriptor.data_type == "float32" and gates.descriptor.byte_length <= LEAST)
        return cls(gates, cell, following, layout, matched.drawn)

    def node(self, label: str) -> Node:
        """The same as one node."""
        operands = {"gates": self.gates, "cell": self.cell}
        outputs = (self.cell.descriptor,) * 2
        return Node(GATED_CELL, operands, {"layout": self.layout}, outputs, label, self.drawn)


def _sizes(hidden: Node) -> tuple[int, ...]:
    shape = hidden.outputs[0].shape
    check(len(shape) == 2)
    return shape


def _factors(matched: Matched, product: Node, other: str) -> tuple[Value, Node]:
    """What a sigmoid is of, and the node of the operator that it is multiplied with."""
    for gate, factor in (("a", "b"), ("b", "a")):
        operands = product.operands
        if _is_by(operands[gate], "sigmoid") and _is_by(operands[factor], other):
            sigmoids = matched.before(operands[gate], "sigmoid")
            return single(sigmoids.operands["input"]), matched.before(operands[factor], other)
    raise UnlikeError


def _terms(matched: Matched, terms: list[Value]) -> tuple[Value, Value, Value, Node]:
    """The forget gate, the cell's state, the input gate, and the candidate's tanh."""
    for kept, added in (terms, terms[::-1]):
        try:
            input_, candidate = _factors(matched, matched.before(added, "mul"), "tanh")
        except UnlikeError:
            continue
        product = matched.before(kept, "mul").operands
        for gate, state in (("a", "b"), ("b", "a")):
            if _is_by(product[gate], "sigmoid"):
                forget = single(matched.before(product[gate], "sigmoid").operands["input"])
                return forget, single(product[state]), input_, candidate
    raise UnlikeError


def _is_by(value: object, operator: str) -> bool:
    return isinstance(value, Output) and value.node.operator.name == operator
