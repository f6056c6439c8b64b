"""The graph of some operands, before it is built: for tools that write it down."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webnn_py.core.api.argument_checks import named
from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.descriptors import DATA_TYPES, MLOperandDescriptor
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.graph import Constant, Graph
from webnn_py.core.message_text import shown
from webnn_py.core.operators.operand import MLOperand


def refuse_proposals(method: str, descriptors: Iterable[MLOperandDescriptor]) -> None:
    """Refuse data types of proposals, of which a method knows nothing."""
    for descriptor in descriptors:
        if descriptor.data_type not in DATA_TYPES:
            raise NotSupportedError(
                f"{method}(): an operand is {descriptor}; this takes graphs of the specification's data types only"
            )


def builder_of(method: str, outputs: object) -> MLGraphBuilder:
    """Return the builder of some operands, by name.

    Raises:
        TypeError: ``outputs`` is no mapping of names to operands, or is empty, or the builder is gone.
    """
    operands = named(f"{method}(): outputs", MLOperand, "operands", outputs)
    if not operands:
        raise TypeError(f"{method}(): outputs is empty; a graph needs at least one")
    name, operand = next(iter(operands.items()))
    builder = operand.builder
    if not isinstance(builder, MLGraphBuilder):
        raise TypeError(f"{method}(): the builder of outputs[{shown(name)}] is gone; keep it")
    return builder


def drawing_of(method: str, outputs: object) -> Graph:
    """Return the graph of some outputs, for tools that write it down; their builder keeps it.

    Raises:
        TypeError: the outputs are refused, as by ``build()``, or their builder is gone.
        InvalidStateError: the builder has built, or the context is lost.
        NotSupportedError: the drawing has data types of proposals.
    """
    graph = builder_of(method, outputs).graph_of(method, outputs)
    refuse_proposals(method, graph.descriptors)
    return graph


def elements_of(method: str, constant: Constant) -> NDArray[Any]:
    """Return the elements of a constant as files have them: little-endian, in row-major order.

    Raises:
        ValueError: it is a constant buffer.
    """
    array = constant.data
    if not isinstance(array, np.ndarray):
        raise ValueError(  # noqa: TRY004 - what is wrong is not the type of an argument
            f"{method}(): a constant {constant.descriptor} is a constant buffer, whose contents only its device has; "
            "draw it from an array"
        )
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
