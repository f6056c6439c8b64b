"""Constants that several graphs of a context share: their identities, and their memory.

A constant with a key equals any other of that key, data type and shape. Values that a compiler computes from keyed
constants alone are equal as well: a folded value by its operators and options, a converted constant by the kernel that
writes it. So each gets an *identity*, a digest, and is made and kept once for all graphs that use it. Graphs without
keys have no identities, and nothing is computed for them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from webnn_py.core.device.backend import Memory
from webnn_py.core.graph import Constant, Graph, Node, Value

Identity = bytes
"""A digest."""

LARGEST_UNKEYED: Final = 4096
"""The bytes up to which a constant without a key is identified by its contents, if it is combined with keyed ones."""


class SharedConstants:
    """The memory of constants by their identity, as long as a graph of the context holds it.

    Builds look up and enter memory; the device timeline runs one build at a time, and releases between builds.
    """

    def __init__(self) -> None:
        self._memory: WeakValueDictionary[Hashable, Memory] = WeakValueDictionary()

    def find(self, identity: Hashable | None) -> Memory | None:
        """Return the memory of a constant; None where there is none."""
        memory = None if identity is None else self._memory.get(identity)
        return None if memory is None or memory.data is None else memory  # its last holder may just have released it

    def enter(self, made: Mapping[Any, Memory]) -> None:
        """Offer memory with complete contents to other graphs."""
        self._memory.update(made)


class Identities:
    """The identities of a graph's constants, and of the values that depend on them alone.

    Args:
        graph: the graph.
        folded: its nodes that depend on no input, in an order in which they can run.
    """

    def __init__(self, graph: Graph, folded: Iterable[Node]) -> None:
        self._digests: dict[Value, Identity] = {}
        self._keyed: set[Value] = set()
        constants = {value for node in graph.nodes for value in node.inputs if isinstance(value, Constant)}
        if all(constant.key is None for constant in constants):
            return
        for constant in constants:
            self._add_constant(constant)
        for node in folded:
            self._add_node(node)

    def of(self, value: Value) -> Identity | None:
        """Return the identity of a value; None if it depends on no key, or on a constant that is not hashed."""
        return self._digests[value] if value in self._keyed else None

    def _add_constant(self, constant: Constant) -> None:
        if constant.key is not None:
            self._digests[constant] = digest("constant", constant.descriptor, constant.key)
            self._keyed.add(constant)
            return
        contents = digest_of_contents(constant.data)
        if contents is not None:
            self._digests[constant] = digest("contents", constant.descriptor, contents)

    def _add_node(self, node: Node) -> None:
        inputs = list(node.inputs)
        if not all(value in self._digests for value in inputs):
            return
        # The operand that each is: the lengths of the sequences identify them.
        operands = [(name, len(item) if isinstance(item, tuple) else None) for name, item in node.operands.items()]
        options = sorted(node.options.items())
        of_node = digest("node", node.operator.name, operands, options, *(self._digests[value] for value in inputs))
        is_keyed = not self._keyed.isdisjoint(inputs)
        for result in node.results:
            self._digests[result] = digest("result", result.index, result.descriptor, of_node)
            if is_keyed:
                self._keyed.add(result)


def digest(*parts: object) -> Identity:
    """Return a digest of parts, given reprs that identify them."""
    return blake2b(repr(parts).encode(), digest_size=32).digest()


def digest_of_contents(data: object) -> Identity | None:
    """Return a digest of a small array's bytes; None for a large array, and for any other object."""
    if not isinstance(data, np.ndarray) or data.nbytes > LARGEST_UNKEYED:
        return None
    return digest(data.dtype.str, data.tobytes())
