"""Plays a sequence of events twice, on a context and on the model of one, and compares what can be seen."""

import attrs
import numpy as np
import trio

from spec_tests.support.device_model import Model
from webnn_py import DOMException, InvalidStateError, MLGraphBuilder

DEVICE_STEPS = ["allocate", "write", "dispatch", "read", "compile"]
FAILING = ["dispatch"] * 4 + ["write", "write", "read", "read", "allocate", "compile"]
TYPES = [("float32", (2, 3)), ("int32", (4,)), ("uint8", ())]


@attrs.frozen
class Kind:
    """A kind of graph: how it is drawn, what it computes, and the bytes that it keeps on each backend."""

    type: tuple[str, tuple[int, ...]]
    inputs: str
    outputs: str
    draw: object
    compute: object
    on_numpy: int = 0
    on_wgpu: int = 0
    on_onnxruntime: int = 0

    def byte_length(self, backend):
        return {"numpy": self.on_numpy, "wgpu": self.on_wgpu, "onnxruntime": self.on_onnxruntime}[backend]


def one(builder, operand):
    return builder.constant(1, data_type=operand.data_type)


WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)

KINDS = [
    Kind(TYPES[0], "x", "y", lambda b, x: {"y": b.add(x, one(b, x))}, lambda x: {"y": x + np.float32(1)}, 4, 0, 4),
    Kind(
        TYPES[0],
        "ab",
        "sd",
        lambda b, a, c: {"s": b.add(a, c), "d": b.sub(a, c)},
        lambda a, b: {"s": a + b, "d": a - b},
    ),
    Kind(TYPES[0], "x", "y", lambda b, x: {"y": b.reverse(x)}, lambda x: {"y": x[::-1, ::-1].copy()}),
    Kind(TYPES[1], "x", "y", lambda b, x: {"y": b.mul(x, x)}, lambda x: {"y": x * x}),
    Kind(
        TYPES[1],
        "x",
        "yz",
        lambda b, x: {"y": (y := b.add(b.add(b.sub(x, one(b, x)), x), x)), "z": b.transpose(y)},
        lambda x: {"y": 3 * x - 1, "z": 3 * x - 1},
        4 + 2 * 64,
        0,
        4,
    ),
    Kind(
        TYPES[2],
        "x",
        "y",
        lambda b, x: {"y": b.add(x, one(b, x))},
        lambda x: {"y": np.asarray(x + np.uint8(1))},
        1,
        0,
        1,
    ),
    Kind(
        TYPES[0], "x", "y", lambda b, x: {"y": b.add(x, b.constant(WEIGHTS))}, lambda x: {"y": x + WEIGHTS}, 24, 32, 24
    ),
]


@attrs.define(eq=False)
class Asked:
    """A promise, what should become of it, who waits for it, and the array that it should fill."""

    promise: object
    expected: object
    kind: Kind | None = None
    out: np.ndarray | None = None
    waiters: list[trio.CancelScope] = attrs.field(factory=list)
    heard: list = attrs.field(factory=list)

    async def wait(self, scope):
        with scope:
            try:
                self.heard.append(("fulfilled", await self.promise))
            except DOMException as error:
                self.heard.append(("rejected", error))

    def check(self):
        """Compare the outcome with what was expected; both are settled."""
        assert self.promise.state == self.expected.state
        outcome = self.promise.outcome
        if self.expected.state == "rejected":
            name, text = self.expected.outcome
            assert type(outcome).__name__ == name, f"{outcome!r} where the model has {name}"
            assert text in str(outcome)
            assert self.out is None or (self.out == 99).all(), "out was written although the read was rejected"
        elif isinstance(self.expected.outcome, np.ndarray):
            array = outcome if self.out is None else self.out
            assert array.dtype == self.expected.outcome.dtype
            np.testing.assert_array_equal(array, self.expected.outcome, strict=True)
        for state, heard in self.heard:
            assert state == self.expected.state
            assert heard is outcome if state == "fulfilled" else type(heard) is type(outcome)


class Player:
    """Does everything twice: to a context and to the model.

    Attributes:
        device: what stands before the context's device: it logs the steps, makes them fail or wait, and is lost.
    """

    def __init__(self, ml, context, device, nursery):
        self.ml, self.context, self.device, self.nursery = ml, context, device, nursery
        self.backend = context.backend.name
        self.model = Model(ends_builds=self.backend == "wgpu")
        self.created, self.built, self.others = [], [], []
        self.failures = self.resumed = 0
        self.gone = False

    async def play(self, chosen):
        for kind in (0, 0, 0, 0, 1, 1, 1, 2):
            self.create_buffer(kind, 0)
        for number in range(len(KINDS)):
            self.build(number, 0)
        await self.turn()
        for number in range(8):
            self.write_buffer(number, 10 * number + 1)
        for name, a, b in chosen:
            done = getattr(self, name)(a, b)
            if done is not None:
                await done
        self.unblock(0, 0)
        if len(chosen) % 4:
            await self.resume(0, 0)
            await self.resume_script(0, 0)
        await self.turn()

    # --- what a script does -----------------------------------------------------------------------------------

    def create_buffer(self, a, b):
        data_type, shape = TYPES[a % len(TYPES)]
        promise = self.context.create_buffer(data_type=data_type, shape=shape, readable=True, writable=True)
        self.created.append(Asked(promise, self.model.create_buffer(data_type, shape)))

    def build(self, a, b):
        kind = KINDS[a % len(KINDS)]
        if self.model.lost is not None:
            return
        builder = MLGraphBuilder(self.context)
        operands = [builder.input(name, data_type=kind.type[0], shape=kind.type[1]) for name in kind.inputs]
        promise = builder.build(kind.draw(builder, *operands))
        self.built.append(Asked(promise, self.model.build(kind.compute, kind.byte_length(self.backend)), kind))

    def write_buffer(self, a, b):
        if buffer := self.pick(self.buffers(alive=b % 8), a):
            array = np.full(buffer[1].shape, b, buffer[1].data_type)
            array.reshape(-1)[0] += a
            expected = self.model.write_buffer(buffer[1], array)
            self.call(expected, self.context.write_buffer, buffer[0], array)
            array[...] = 55

    def dispatch(self, a, b):
        graphs = [asked for asked in self.fulfilled(self.built) if b % 8 == 0 or not asked.expected.outcome.destroyed]
        if not (asked := self.pick(graphs, a)):
            return
        kind = asked.kind
        candidates = self.buffers(alive=b % 7, type_=kind.type)
        names = kind.inputs + kind.outputs
        if len(candidates) < len(names):
            return
        chosen = [candidates[(b + index) % len(candidates)] for index in range(len(names))]
        if b % 13 == 0:
            chosen[0] = chosen[-1]
        real, modelled = (dict(zip(names, [pair[side] for pair in chosen], strict=True)) for side in (0, 1))
        inputs, outputs = (
            [{name: side[name] for name in which} for side in (real, modelled)] for which in (kind.inputs, kind.outputs)
        )
        expected = self.model.dispatch(asked.expected.outcome, inputs[1], outputs[1])
        self.call(expected, self.context.dispatch, asked.promise.outcome, inputs[0], outputs[0])

    def read_buffer(self, a, b):
        if buffer := self.pick(self.buffers(alive=b % 8), a):
            out = np.full(buffer[1].shape, 99, buffer[1].data_type) if b % 2 else None
            promise = self.context.read_buffer(buffer[0], out=out)
            asked = Asked(promise, self.model.read_buffer(buffer[1]), out=out)
            self.others.append(asked)
            if b % 3:
                self.wait_for(asked)

    def wait_for_any(self, a, b):
        if asked := self.pick([*self.created, *self.built, *self.others], a):
            self.wait_for(asked)

    def wait_for(self, asked):
        scope = trio.CancelScope()
        asked.waiters.append(scope)
        self.nursery.start_soon(asked.wait, scope)

    def cancel_waiter(self, a, b):
        if asked := self.pick([asked for asked in [*self.created, *self.built, *self.others] if asked.waiters], a):
            asked.waiters.pop(b % len(asked.waiters)).cancel()

    def destroy_buffer(self, a, b):
        if buffer := self.pick(self.buffers(alive=b % 4), a):
            buffer[0].destroy()
            self.model.destroy_buffer(buffer[1])

    def destroy_graph(self, a, b):
        if asked := self.pick(self.fulfilled(self.built), a):
            asked.promise.outcome.destroy()
            self.model.destroy_graph(asked.expected.outcome)

    def destroy_context(self, a, b):
        self.context.destroy()
        self.model.lose("destroy() was called on the context")

    # --- what a device does -----------------------------------------------------------------------------------

    def fail(self, a, b):
        self.failures += 1
        text = f"failure number {self.failures} of the device"
        step = FAILING[a]
        self.device.failing[step] = RuntimeError(text)
        self.model.failing[step] = text

    def block(self, a, b):
        step = DEVICE_STEPS[a % len(DEVICE_STEPS)]
        self.device.waiting[step] = trio.Event()
        self.model.waiting.add(step)

    def unblock(self, a, b):
        self.device.let_go()
        self.model.unblock()

    async def device_lost(self, a, b):
        if self.backend == "wgpu":
            if self.gone:
                return  # a GPU is lost once
            self.gone = True
            await self.let_it_be_known()
        await self.turn()
        self.model.device_lost(self.device.reason)
        await self.device.lose()
        await self.turn()

    async def let_it_be_known(self):
        """Release all operations when a GPU is really lost, so that the script is told before more runs on it.

        What fails first on a GPU that is gone depends on what had been collected or compiled by then; what is common
        to everything that may be first has a test of its own.
        """
        self.unblock(0, 0)
        await self.resume_script(0, 0)

    # --- time -------------------------------------------------------------------------------------------------

    def pause(self, a, b):
        self.context.device_timeline.pause()
        if self.model.permits is None:
            self.model.permits = 0

    async def resume(self, a, b):
        await self.turn()
        self.context.device_timeline.resume()
        self.resumed += 1
        self.model.permits = None
        await self.turn()

    async def step(self, a, b):
        await self.turn()
        if self.model.permits is not None and not self.model.stepping:
            count = 1 + a % 5
            self.nursery.start_soon(self.compare_step, count, self.model.step(count))
            await self.turn()

    async def compare_step(self, count, expected):
        resumed = self.resumed
        ran = await self.context.device_timeline.step(count)
        if self.resumed == resumed:
            assert ran == expected, f"step({count}) returned {ran}, the model ran {expected}"

    async def pause_script(self, a, b):
        await self.turn()
        self.ml.script_timeline.pause()
        self.model.script_permits = 0

    async def resume_script(self, a, b):
        await self.turn()
        self.ml.script_timeline.resume()
        self.model.script_permits = None
        await self.turn()

    async def step_script(self, a, b):
        await self.turn()
        if self.model.script_permits is not None:
            count = 1 + a % 5
            expected = self.model.script_permits = min(count, len(self.model.script))
            assert await self.ml.script_timeline.step(count) == expected
            await self.turn()

    async def turn(self, a=0, b=0):
        """Let everything run that can run, and compare."""
        await self.device.quiet()
        self.model.turn()
        self.compare()

    # --- comparison -------------------------------------------------------------------------------------------

    def compare(self):
        assert self.device.log == self.model.log
        assert attrs.astuple(self.context.statistics())[:5] == self.model.statistics  # what is compiled is not modelled
        for asked in [*self.created, *self.built, *self.others]:
            assert asked.promise.state == asked.expected.state
            if asked.expected.state != "pending":
                asked.check()

    def call(self, expected, method, *arguments):
        raised = None
        try:
            method(*arguments)
        except (TypeError, InvalidStateError) as error:
            raised = type(error).__name__
        assert raised == expected, f"{method.__name__}() raised {raised}, the model {expected}"

    # --- choice -----------------------------------------------------------------------------------------------

    def fulfilled(self, asked):
        return [each for each in asked if each.promise.state == each.expected.state == "fulfilled"]

    def buffers(self, *, alive, type_=None):
        """Pairs of a buffer and its model; destroyed ones too if ``alive`` is 0."""
        pairs = [(asked.promise.outcome, asked.expected.outcome) for asked in self.fulfilled(self.created)]
        return [
            (real, modelled)
            for real, modelled in pairs
            if not (alive and modelled.destroyed) and type_ in (None, (modelled.data_type, modelled.shape))
        ]

    def pick(self, things, number):
        return things[number % len(things)] if things else None
