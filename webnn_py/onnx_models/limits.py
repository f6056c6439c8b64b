"""Limits on what a model may cost, and what one has cost so far."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time
from typing import Final, final

import attrs

from webnn_py.core.operators.rules import Refused

SMALLEST_ALLOWANCE: Final = 256 << 20
ALLOWANCE_PER_BYTE: Final = 16
"""A weight of four bits that becomes a float32 is eight times as long, and may be copied once into another layout."""

STEPS_PER_SECOND: Final = 200_000
"""A low guess of how many elements a second an operator computes that goes through them one by one in Python."""


@attrs.frozen(kw_only=True)
class ModelLimits:
    """Limits on what a model may cost beyond its own size; a model that costs more is refused, if possible beforehand.

    Attributes:
        nodes: the nodes of the model, those of a function (the model's own, or one by which ONNX defines an operator)
            counted at each call of it, those of a loop's body at each iteration.
        bytes: of the tensors that are read from other files, together; and again, in each conversion, of
            those that are computed while building. None: 256 MiB and 16 times the size of the model, which is that
            of its file and of those files.
        seconds: processor time that computing values while building takes in each conversion, together.
    """

    nodes: int = attrs.field(default=100_000, validator=attrs.validators.ge(0))
    bytes: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(0)))
    seconds: float = attrs.field(default=60.0, validator=attrs.validators.ge(0))


@final
class Expenses:
    """The costs of one model so far, and its limits.

    Args:
        limits: how much is allowed.
        own_size: of the model, in bytes.
    """

    def __init__(self, limits: ModelLimits, own_size: int) -> None:
        self._nodes = limits.nodes
        self._spent_nodes = 0
        self._seconds = limits.seconds
        self._bytes = SMALLEST_ALLOWANCE + ALLOWANCE_PER_BYTE * own_size if limits.bytes is None else limits.bytes
        self._spent_bytes = 0
        self._spent_seconds = 0.0

    def check_bytes(self, needed: int) -> None:
        """Refuse what would take more bytes than are left.

        Raises:
            Refused: it would.
        """
        if self._spent_bytes + needed > self._bytes:
            raise Refused(
                f"it takes up to {needed:,} bytes beside {self._spent_bytes:,} so far; limits.bytes allows "
                f"{self._bytes:,} for what is read from other files and computed while building"
            )

    def add_bytes(self, spent: int) -> None:
        """Add bytes to what the model has cost.

        Raises:
            Refused: so many are not left.
        """
        self.check_bytes(spent)
        self._spent_bytes += spent

    def add_nodes(self, count: int) -> None:
        """Add converted nodes to what the model has cost.

        Raises:
            Refused: so many are not left.
        """
        self._spent_nodes += count
        if self._spent_nodes > self._nodes:
            raise Refused(
                f"with its iterations and functions the model has more nodes than limits.nodes allows, {self._nodes:,}"
            )

    @contextmanager
    def refunded(self) -> Iterator[None]:
        """Take back what the block adds, if it refuses something."""
        before = self._spent_nodes, self._spent_bytes
        try:
            yield
        except Refused:
            self._spent_nodes, self._spent_bytes = before
            raise

    def check_steps(self, steps: int) -> None:
        """Refuse what would take longer than is left, steps being elements that are computed one by one.

        Raises:
            Refused: it would.
        """
        seconds = steps / STEPS_PER_SECOND
        if self._spent_seconds + seconds > self._seconds:
            raise Refused(
                f"it takes up to {seconds:.0f} seconds beside {self._spent_seconds:.0f} so far; limits.seconds allows "
                f"{self._seconds:g} for what is computed while building"
            )

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Spend the processor time that the block takes."""
        started = thread_time()
        try:
            yield
        finally:
            self._spent_seconds += thread_time() - started
