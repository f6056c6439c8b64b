"""A GPU in a process of its own: a driver that fails ends that process, and not the program.

A driver that loses its device ends its process (wgpu-native does so). Here all that needs the GPU runs in a child;
only inputs and outputs cross. When the child ends by itself, another one takes over and the request is repeated.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

import numpy as np
import trio
from numpy.typing import NDArray

import webnn_py

Array = NDArray[np.float32]
SHAPE = (4, 256)


def serve(connection: Connection) -> None:
    """The child: compute ``relu(x) + 1`` of all that comes, until the parent closes the connection."""
    trio.run(_serve, connection)


async def _serve(connection: Connection) -> None:
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="wgpu")
        builder = webnn_py.MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=SHAPE)
        graph = await builder.build({"y": builder.add(builder.relu(x), builder.constant(1, data_type="float32"))})
        source = await context.create_buffer(data_type="float32", shape=SHAPE, writable=True)
        target = await context.create_buffer(data_type="float32", shape=SHAPE, readable=True)
        while True:
            try:
                context.write_buffer(source, await trio.to_thread.run_sync(connection.recv))
            except EOFError:
                return
            context.dispatch(graph, {"x": source}, {"y": target})
            connection.send(await context.read_buffer(target))


class Computer:
    """The program's end of the child.

    Attributes:
        started: how many children there have been.
    """

    def __init__(self, most_children: int = 3) -> None:
        self.started = 0
        self._most_children = most_children
        self._start()

    def _start(self) -> None:
        self.started += 1
        self._connection, theirs = multiprocessing.Pipe()
        # Not a fork: the driver's state is none that two processes could share.
        self._child = multiprocessing.get_context("spawn").Process(target=serve, args=[theirs], daemon=True)
        self._child.start()
        theirs.close()

    def compute(self, x: Array) -> Array:
        """Compute ``relu(x) + 1``, in another child if the present one ends by itself.

        Raises:
            RuntimeError: no child has lived long enough.
        """
        while True:
            try:
                self._connection.send(x)
                result: Array = self._connection.recv()
            except (EOFError, OSError) as error:
                self._child.join()
                if self.started == self._most_children:
                    code = self._child.exitcode
                    raise RuntimeError(f"the child ended by itself {self.started} times, at last by {code}") from error
                self._start()
            else:
                return result

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Any:
        self._connection.close()
        self._child.join()


def main() -> None:
    """Compute a few times."""
    x = np.linspace(-1, 1, 1024, dtype=np.float32).reshape(SHAPE)
    with Computer() as computer:
        for number in range(10):
            y = computer.compute(x * number)
            print(f"{number}: {y.min()} to {y.max()}, by child {computer.started}", flush=True)


if __name__ == "__main__":
    main()
