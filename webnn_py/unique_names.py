"""Names that are each given once."""

from collections.abc import Iterable


class Names:
    """Names, each given once.

    Args:
        taken: those that are given already.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._next: dict[str, int] = dict.fromkeys(taken, 2)

    def new(self, wanted: str) -> str:
        """Return the name that is wanted, or if it is taken, with a number."""
        name = wanted
        while name in self._next:
            name = f"{wanted}_{self._next[wanted]}"
            self._next[wanted] += 1
        self._next[name] = 2
        return name
