"""Constants that several graphs of a context share: their identities, and their memory.

A constant with a key equals any other of that key, data type and shape. Values that a compiler computes from keyed
constants alone are equal as well: a folded value by its operators and options, a converted constant by the kernel that
writes it. So each gets an *identity*, and is made and kept once for all graphs that use it. Graphs without keys have no
identities, and nothing is computed for them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final, final
from weakref import WeakValueDictionary

import numpy as np

from webnn_py.core.device.backend import Memory
from webnn_py.core.graph import Constant, Graph, Node, Value

LARGEST_UNKEYED: Final = 4096
"""The bytes up to which a constant without a key is identified by its contents, if it is combined with keyed ones."""


@final
class Identity:
    """The contents of constants of a context: there is one for all that are equal, made by :class:`.SharedConstants`.

    Args:
        text: a repr of how they are made.
        sources: what they are made of: keys, digests, and other identities.
        digest: their digest, if it is known.
    """

    __slots__ = ("__weakref__", "_digest", "_sources", "_text")

    def __init__(self, text: str, sources: tuple[Hashable, ...], digest: bytes | None = None) -> None:
        self._text = text
        self._sources = sources
        self._digest = digest

    @property
    def digest(self) -> bytes | None:
        """A digest that is the same in all processes; None where an array that a key was made of is gone."""
        waiting = [self]  # not by recursion, since values may be computed in any number of steps
        while waiting:
            identity = waiting[-1]
            unknown = [one for one in identity._sources if isinstance(one, Identity) and one._digest is None]
            if unknown and identity._digest is None:
                waiting += unknown
                continue
            waiting.pop()
            if identity._digest is None:
                sources = [one._digest if isinstance(one, Identity) else one for one in identity._sources]
                try:
                    identity._digest = digest(identity._text, *sources)
                except ReferenceError:
                    return None
        return self._digest


class SharedConstants:
    """The identities of constants, and their memory, as long as a graph of the context holds it.

    Builds look up and enter memory; the device timeline runs one build at a time, and releases between builds.
    """

    def __init__(self) -> None:
        self._memory: WeakValueDictionary[Hashable, Memory] = WeakValueDictionary()
        self._identities: WeakValueDictionary[Hashable, Identity] = WeakValueDictionary()
        self._saved: WeakValueDictionary[bytes, Identity] = WeakValueDictionary()

    def identity(self, text: str, *sources: Hashable) -> Identity:
        """Return the identity of values that are made in one way from the same sources."""
        known = self._identities.get((text, sources))
        if known is None:
            known = Identity(text, sources)
            if self._saved and (made := known.digest) is not None:
                known = self._saved.setdefault(made, known)
            self._identities[text, sources] = known
        return known

    def saved_identity(self, saved: bytes, byte_length: int) -> Identity:
        """Return the identity of a digest; those of memory of its size are compared with it."""
        known = self._saved.get(saved)
        if known is None:
            alike = [one for one, memory in self._memory.items() if memory.byte_length == byte_length]
            found = (one for one in alike if isinstance(one, Identity) and one.digest == saved)
            known = self._saved[saved] = next(found, None) or Identity("saved", (), saved)
        return known

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
        shared: makes them.
    """

    def __init__(self, graph: Graph, folded: Iterable[Node], shared: SharedConstants) -> None:
        self._shared = shared
        self._known: dict[Value, Identity | bytes] = {}
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
        known = self._known[value] if value in self._keyed else None
        return known if isinstance(known, Identity) else None

    def _add_constant(self, constant: Constant) -> None:
        if constant.key is not None:
            self._known[constant] = self._shared.identity(repr(("constant", constant.descriptor)), constant.key)
            self._keyed.add(constant)
            return
        contents = digest_of_contents(constant.data)
        if contents is not None:
            self._known[constant] = digest("contents", constant.descriptor, contents)

    def _add_node(self, node: Node) -> None:
        inputs = list(node.inputs)
        if not all(value in self._known for value in inputs):
            return
        # The operand that each is: the lengths of the sequences identify them.
        operands = [(name, len(item) if isinstance(item, tuple) else None) for name, item in node.operands.items()]
        options = sorted(node.options.items())
        is_keyed = not self._keyed.isdisjoint(inputs)
        sources = [self._known[value] for value in inputs]
        for result in node.results:
            text = repr(("node", node.operator.name, operands, options, result.index, result.descriptor))
            if is_keyed:
                self._known[result] = self._shared.identity(text, *sources)
                self._keyed.add(result)
            else:
                self._known[result] = digest(text, *sources)


def digest(*parts: object) -> bytes:
    """Return a digest of parts, given reprs that identify them."""
    return blake2b(repr(parts).encode(), digest_size=32).digest()


def digest_of_contents(data: object) -> bytes | None:
    """Return a digest of a small array's bytes; None for a large array, and for any other object."""
    if not isinstance(data, np.ndarray) or data.nbytes > LARGEST_UNKEYED:
        return None
    return digest(data.dtype.str, data.tobytes())
