"""Compare four ways to run a decoder whose cache grows by a position a step.

The table is for docs/proposals/dynamic_shapes_explainer.md.

* fixed: a graph for each length, all built before;
* sizes: one graph, with a dimension that has a largest size;
* names: one graph, with a name that has none, as the explainer of pull request 945 has it;
* operands: the same, and each reshape takes its shape as an operand, computed from ``shape()``, as frameworks draw it.

All must give the same numbers, up to ``MOST_OFF``. Passes over all lengths take turns; the best of each is printed, and
the first.

    python -m spec_tests.labs.benchmarks.dynamic_decoders --backend numpy --clock cpu
    python -m spec_tests.labs.benchmarks.dynamic_decoders --backend wgpu --decoder 2x256:200-231
"""

import argparse
import re
import sys
import time
from pathlib import Path

import numpy as np
import trio

from webnn_py import MLDynamicDimension, open_ml

sys.path.append(str(Path(__file__).parents[3] / "examples"))

from dynamic_decoder import Decoder, Run

DECODERS = ("4x512:64-87", "12x1024:64-87", "2x256:200-231", "2x256:1-64")
CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}
HEADS = 8
MOST_OFF = 1e-5
"""The largest difference of results, as a share of the largest element: a GPU's kernels depend on sizes."""


class ShapesAsOperands(Decoder):
    """Draws each reshape with the shape as an operand, whose first element is read of the operand's own shape."""

    def reshape(self, builder, operand, shape):
        """Return an operand in another shape."""
        first = builder.slice(builder.shape(operand), [0], [1])
        rest = builder.constant(np.array(shape[1:], np.uint32))
        return builder.reshape_dynamic(operand, builder.concat([first, rest], 0))


class Way:
    """One of the four, with its graphs and times."""

    def __init__(self, name, decoder, run):
        self.name, self.decoder, self.run = name, decoder, run
        self.graphs = {}
        self.build_seconds = 0.0
        self.passes = []
        self.compiled = 0

    async def build(self, clock):
        """Build all graphs that there are before the first step."""
        lengths = self.run.lengths
        await self.decoder.load()
        await self.run.open()
        began = clock()
        if self.name == "fixed":
            self.graphs = {length: await self.decoder.build(length) for length in lengths}
        else:
            past = MLDynamicDimension("past", lengths[-1]) if self.name == "sizes" else "past"
            self.graphs = dict.fromkeys(lengths, await self.decoder.build(past))
        self.build_seconds = clock() - began
        self.compiled = len(set(self.graphs.values()))

    async def go(self, clock):
        """Take all steps; return the last state."""
        graph = self.graphs[self.run.lengths[-1]]
        before, began = graph._handle, clock()
        state = await self.run.go(self.graphs.__getitem__)
        self.passes.append((clock() - began) / len(self.run.lengths))
        if graph._handle is not before:
            self.compiled += 1
        return state

    @property
    def variants(self):
        """The sets of kernels; a graph of fixed sizes has one."""
        if self.name == "fixed":
            return len(self.graphs)
        compiled = next(iter(self.graphs.values()))._handle.compiled
        return len(getattr(compiled, "_variants", [None]))


def parsed(text):
    """Return layers, width, and the lengths from the first to the last."""
    found = re.fullmatch(r"(\d+)x(\d+):(\d+)-(\d+)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not LAYERSxWIDTH:FIRST-LAST, as {DECODERS[0]}")
    layers, width, first, last = map(int, found.groups())
    return layers, width, range(first, last + 1)


async def measured(ml, backend, decoder, clock, repeats):
    """Return the four ways to run a decoder, each on a context of its own, so that none finds kernels of another."""
    layers, width, lengths = decoder
    ways, states = [], []
    for name in ("fixed", "sizes", "names", "operands"):
        context = await ml.create_context(backend=backend)
        own = (ShapesAsOperands if name == "operands" else Decoder)(context, layers, HEADS, width)
        way = Way(name, own, Run(own, lengths[0], len(lengths)))
        await way.build(clock)
        states.append(await way.go(clock))
        np.testing.assert_allclose(states[-1], states[0], rtol=0, atol=MOST_OFF * np.abs(states[0]).max())
        ways.append(way)
    for _ in range(repeats):
        for way in ways:
            await way.go(clock)
    return ways


async def main(arguments):
    """Print the table."""
    clock = CLOCKS[arguments.clock]
    print(
        f"| decoder, lengths | way | graphs compiled | variants | build, {arguments.clock} | the first time | later |"
    )
    print("|---|---|---|---|---|---|---|")
    for decoder in arguments.decoder or map(parsed, DECODERS):
        async with open_ml(experimental={"dynamic-shapes-explainer"}) as ml:
            layers, width, lengths = decoder
            for way in await measured(ml, arguments.backend, decoder, clock, arguments.repeats):
                first, *later = (1e3 * seconds for seconds in way.passes)
                print(
                    f"| {layers} layers of {width}, {lengths[0]} to {lengths[-1]} | {way.name} | {way.compiled} | "
                    f"{way.variants} | {way.build_seconds:.2f} s | {first:.1f} ms | {min(later):.1f} ms |",
                    flush=True,
                )


def parser():
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--backend", default="numpy")
    made.add_argument("--decoder", type=parsed, action="append", metavar="LAYERSxWIDTH:FIRST-LAST")
    made.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: the time of all processors together")
    made.add_argument("--repeats", type=int, default=3)
    return made


if __name__ == "__main__":
    trio.run(main, parser().parse_args())
