"""Graph capture: a run whose command is frozen, to be run again on the same tensors."""

from collections.abc import Mapping
from typing import Any

import attrs

from webnn_py.core.errors import InvalidStateError
from webnn_py.runtime.bindings import Feed
from webnn_py.runtime.runs import Enqueued, Request
from webnn_py.runtime.tensor import Tensor


@attrs.frozen(eq=False)
class CapturedRun:
    """A run that was checked once; what is written to its inputs between replays is seen.

    Attributes:
        request: the tensors that were given.
        run: the buffers that it reads and writes, and the tensors that each run returns.
    """

    request: Request
    run: Enqueued

    @staticmethod
    def check_first(request: Request, on_device: frozenset[str]) -> None:
        """Refuse a run that needs the host.

        Raises:
            TypeError: an input or an output is on the host.
        """
        places = {f"input {name!r}": isinstance(feed, Tensor) for name, feed in request.feeds.items()}
        for name in request.fetches.names:
            target = request.fetches.targets.get(name)
            places[f"output {name!r}"] = name in on_device if target is None else isinstance(target, Tensor)
        for what, is_on_device in places.items():
            if not is_on_device:
                raise TypeError(
                    f"run(): {what} is on the host; with enable_graph_capture all must be tensors on the device"
                )

    def is_repeated_by(self, feeds: object, fetches: object) -> bool:
        """Return whether the arguments of a run are this one's tensors, alive; False also if that takes longer."""
        if fetches is None:
            fetches = {}
        return (
            type(feeds) is dict
            and type(fetches) is dict
            and len(self.run.results) == len(self.run.outputs)
            and _are_same(feeds, self.request.feeds)
            and _are_same(fetches, self.request.fetches.targets)
            and not any(tensor.disposed for tensor in self.run.results.values())
        )

    def check(self, request: Request) -> None:
        """Refuse a run that is not this one again.

        Raises:
            TypeError: other tensors are given.
            InvalidStateError: a tensor was disposed of.
        """
        fetches, results = request.fetches, self.run.results
        self._check_same("input", request.feeds, self.request.feeds)
        self._check_same("output", fetches.targets, self.request.fetches.targets)
        if fetches.names != tuple(results):
            raise TypeError(f"run(): fetches has {list(fetches.names)}; the captured run has {list(results)}")
        for name, tensor in results.items():
            if tensor.disposed:
                raise InvalidStateError(f"run(): output {name!r} of the captured run, {tensor!r}, was disposed of")

    @staticmethod
    def _check_same(kind: str, given: Mapping[str, Feed], captured: Mapping[str, Feed]) -> None:
        for name, tensor in captured.items():
            if given.get(name) is not tensor:
                raise TypeError(
                    f"run(): {kind} {name!r} is another tensor than the captured one, {tensor!r}; copy data into that, "
                    "or create another session"
                )
        if given.keys() != captured.keys():
            more = sorted(given.keys() - captured.keys())
            raise TypeError(f"run(): {kind} {more[0]!r} is given a tensor; in the captured run it had none")


def _are_same(given: dict[str, Any], captured: Mapping[str, Feed]) -> bool:
    return len(given) == len(captured) and all(
        given.get(name) is tensor and isinstance(tensor, Tensor) and not tensor.disposed
        for name, tensor in captured.items()
    )
