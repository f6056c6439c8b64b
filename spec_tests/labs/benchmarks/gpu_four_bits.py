"""Products of a few rows with weights of four bits, float16 and float32 of the same shapes, by the GPU's clock.

``python -m spec_tests.labs.benchmarks.gpu_four_bits [WORD…] [--rows 1 2 4 8] [--megabytes 160] [--variants]``

Each graph is a chain of products through matrices of K × N and N × K, so many that caches hold no weight until it is
read again. The table has the time of a product, the rate at which its weights are read (with the scales of blocks of
32), and how many times as long float16 and float32 take. WORDs choose shapes.

With ``--variants`` the kernel is measured with each of ``VARIANTS``; this takes about a second each.
"""

import argparse
import math
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np
import trio
from onnx import helper

import webnn_py
from spec_tests.labs.benchmarks.built import Built
from spec_tests.labs.benchmarks.measure import WORDS, as_text, head, is_wanted, parser, row
from spec_tests.support.onnx_programs import make_model
from webnn_py import MLContext, MLGraph, MLGraphBuilder, profiling
from webnn_py.devices.wgpu.codegen.gemm import four_bit_plan
from webnn_py.devices.wgpu.codegen.gemm.four_bit_plan import FourBitTuning
from webnn_py.onnx_models import OnnxModel

BLOCK = 32

SHAPES = {
    "0.5 B, up and down": (896, 4864),
    "0.5 B, queries and output": (896, 896),
    "7 B, queries and output": (4096, 4096),
    "7 B, up and down": (4096, 14336),
    "7 B, of LLaMA, up and down": (4096, 11008),
    "words": (896, 151936),
}

TYPES = ("int4", "float16", "float32")

WHOLE = FourBitTuning(least_groups=0)


def _registers(rows: int, words: int, lanes: int = 256, **others: Any) -> FourBitTuning:
    return attrs.evolve(WHOLE, is_staged=False, rows=rows, words=words, lanes=lanes, **others)


VARIANTS: dict[str, FourBitTuning | None] = {
    "as chosen": None,
    "registers, rows 4, words 1, ahead 2": _registers(4, 1, ahead=2),
    "registers, rows 2, words 1, ahead 2": _registers(2, 1, ahead=2),
    "registers, rows 4, words 1, lanes 128, ahead 4": _registers(4, 1, 128, threads=128, ahead=4),
    "registers, rows 4, words 2, lanes 128, ahead 2": _registers(4, 2, 128, threads=128, ahead=2),
    "rows 1": attrs.evolve(WHOLE, rows=1),
    "rows 1, lanes 16": attrs.evolve(WHOLE, lanes=16, rows=1),
    "rows 2, lanes 16, ahead 2": attrs.evolve(WHOLE, lanes=16, rows=2, ahead=2),
    "rows 4": WHOLE,
    "rows 4, words 2": attrs.evolve(WHOLE, words=2),
    "rows 8, words 2": attrs.evolve(WHOLE, rows=8, words=2),
}
"""Tunings of the kernel by name."""

MOST_OFF = 1e-4
"""The largest difference of results of two variants, as a share of the largest element."""

ROUNDS = 3
"""How often variants are measured; the least time counts."""


@attrs.frozen
class Chain:
    """Products one behind the other.

    Attributes:
        data_type: of the weights.
        sides: K and N.
        rows: the rows of the first factor.
        megabytes: the least bytes of all weights, in MB.
    """

    data_type: str
    sides: tuple[int, int]
    rows: int
    megabytes: float

    @property
    def bytes_of_one(self) -> int:
        """The bytes of one matrix, with its scales."""
        count = math.prod(self.sides)
        return {"int4": count // 2 + 4 * count // BLOCK, "float16": 2 * count, "float32": 4 * count}[self.data_type]

    @property
    def count(self) -> int:
        """How many products there are; an even number."""
        return 2 * max(1, math.ceil(self.megabytes * 1e6 / self.bytes_of_one / 2))

    @property
    def float_type(self) -> type[np.floating]:
        """The type of what is multiplied."""
        return np.float16 if self.data_type == "float16" else np.float32

    def steps(self) -> Iterator[tuple[int, int]]:
        """Yield the inner length and the columns of each product."""
        for index in range(self.count):
            yield self.sides[index % 2], self.sides[1 - index % 2]

    def model(self) -> bytes:
        """Return the chain as an ONNX model with random weights."""
        rng = np.random.default_rng(3)
        nodes, weights = [], {}
        for index, (inner, columns) in enumerate(self.steps()):
            names = [f"y{index - 1}" if index else "x", f"w{index}"]
            if self.data_type == "int4":
                blocks = inner // BLOCK
                halves = rng.integers(1, 16, (2, columns, blocks, BLOCK // 2), np.uint8)  # of a mean of 8, which is 0
                weights[f"w{index}"] = halves[0] | halves[1] << 4
                weights[f"s{index}"] = np.full((columns, blocks), 0.2 / inner**0.5, np.float32)
                how = {"K": inner, "N": columns, "bits": 4, "block_size": BLOCK, "domain": "com.microsoft"}
                nodes.append(helper.make_node("MatMulNBits", [*names, f"s{index}"], [f"y{index}"], **how))
                continue
            matrix = rng.random((inner, columns), np.float32) - 0.5
            weights[f"w{index}"] = (matrix * (3.4 / inner**0.5)).astype(self.float_type)
            nodes.append(helper.make_node("MatMul", names, [f"y{index}"]))
        return make_model(nodes, {"x": self.feed, **weights}, [f"y{self.count - 1}"], weights, opset=21)

    @property
    def feed(self) -> np.ndarray:
        """The first factor."""
        return np.random.default_rng(4).standard_normal((self.rows, self.sides[0])).astype(self.float_type)


async def seconds_of(context: MLContext, chain: Chain) -> float:
    """Return the seconds of one product, by the kernels' clock: the mean over the chain."""
    builder = MLGraphBuilder(context)
    graph = await builder.build(OnnxModel.load(chain.model()).convert(builder))
    seconds = await seconds_on_gpu(graph, chain)
    graph.destroy()
    return seconds


async def seconds_on_gpu(graph: MLGraph, chain: Chain) -> float:
    """Return the seconds of one product of a chain, by the kernels' clock."""
    profile = await profiling.profile(graph, {"x": chain.feed}, repeat=20)
    return sum(kernel.seconds for kernel in profile.kernels) / chain.count


@contextmanager
def tuned(tuning: FourBitTuning | None) -> Iterator[None]:
    """Build graphs with a tuning in place of the chosen one."""
    tuning_of = four_bit_plan.tuning_of
    if tuning is not None:
        four_bit_plan.tuning_of = lambda _: tuning  # type: ignore[assignment]
    try:
        yield
    finally:
        four_bit_plan.tuning_of = tuning_of


async def compare_variants(context: MLContext, name: str, rows: int, megabytes: float) -> None:
    """Print the table of a shape and a number of rows, fastest first."""
    chains = {kind: Chain(kind, SHAPES[name], rows, megabytes) for kind in ("int4", "float16")}
    chain, model = chains["int4"], OnnxModel.load(chains["int4"].model())
    keeper = await Built.of_model(context, chain.model(), chain.feed)  # while it lives, weights stay on the device
    (result,) = await keeper.trip()
    built = {}
    for variant, tuning in VARIANTS.items():
        with tuned(tuning):
            builder = MLGraphBuilder(context)
            one = await Built.of(context, builder, model.convert(builder), {"x": chain.feed})
        off = np.abs((await one.trip())[0] - result).max() / np.abs(result).max()
        if off > MOST_OFF:
            raise AssertionError(f"{variant} is off by {off:.1e}")
        built[variant] = one
    other = await Built.of_model(context, chains["float16"].model(), chains["float16"].feed)
    taken, expected = dict.fromkeys(built, math.inf), math.inf
    for _ in range(ROUNDS):  # in turn, as the GPU's clock changes
        expected = min(expected, await seconds_on_gpu(other.graph, chains["float16"]))
        for variant, one in built.items():
            taken[variant] = min(taken[variant], await seconds_on_gpu(one.graph, chain))
    for one in (keeper, other, *built.values()):
        one.destroy()
    print(f"\n{name}, {' × '.join(map(str, chain.sides))}, rows: {rows}; float16 takes {as_text(expected)}\n")
    print(head("variant", "a product", "reads", "float16 / int4"))
    for variant, seconds in sorted(taken.items(), key=lambda item: item[1]):
        rate = f"{chain.bytes_of_one / seconds / 1e9:.0f} GB/s"
        print(row(variant, as_text(seconds), rate, f"{expected / seconds:.2f}"), flush=True)


async def measure(options: argparse.Namespace) -> None:
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="wgpu")
        print(f"{context.backend.adapter}, Python {platform.python_version()}\n")
        if options.variants:
            for name in filter(lambda name: is_wanted(name, options.words), SHAPES):
                for rows in options.rows:
                    await compare_variants(context, name, rows, options.megabytes)
            context.destroy()
            return
        print(head("weights", "K × N", "rows", *TYPES, "int4 reads", "float16 / int4", "float32 / int4"))
        for name, sides in SHAPES.items():
            if not is_wanted(name, options.words):
                continue
            for rows in options.rows:
                chains = {kind: Chain(kind, sides, rows, options.megabytes) for kind in TYPES}
                seconds = {kind: await seconds_of(context, chain) for kind, chain in chains.items()}
                ours = seconds["int4"]
                times = [as_text(seconds[kind]) for kind in TYPES]
                rate = f"{chains['int4'].bytes_of_one / ours / 1e9:.0f} GB/s"
                ratios = [f"{seconds[kind] / ours:.2f}" for kind in TYPES[1:]]
                print(row(name, f"{sides[0]} × {sides[1]}", rows, *times, rate, *ratios), flush=True)
        context.destroy()


def main() -> None:
    arguments = parser("gpu_four_bits", __doc__)
    arguments.add_argument("words", **WORDS)
    arguments.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 8], help="rows of the first factor")
    arguments.add_argument("--variants", action="store_true", help="compare tunings of the kernel")
    arguments.add_argument("--megabytes", type=float, default=160, help="least size of a graph's weights")
    trio.run(measure, arguments.parse_args())


if __name__ == "__main__":
    main()
