"""Find the tile that computes a product fastest on the GPU at hand.

``python -m spec_tests.labs.benchmarks.gpu_tiles [WORD…]``

For the rates in ``webnn_py/devices/wgpu/codegen/gemm/tile_tables.py``. A ``*`` stands before the chosen one.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import trio

import webnn_py
from spec_tests.labs.benchmarks.gpu_cases import CASES, Case
from spec_tests.labs.benchmarks.gpu_contenders import time_ours
from spec_tests.labs.benchmarks.measure import WORDS, is_wanted, parser
from webnn_py.devices.wgpu.codegen.gemm import tiled
from webnn_py.devices.wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.devices.wgpu.codegen.gemm.tile import GemmTile
from webnn_py.devices.wgpu.codegen.gemm.tile_tables import HOPPER, USUAL_TILES, SearchedTiles
from webnn_py.devices.wgpu.records.features import Features

SHAPES = [(128, 128, 8, 8), (128, 128, 8, 16), (128, 128, 16, 8), (128, 256, 8, 16), (256, 128, 16, 8), (64, 64, 8, 8)]
SHAPES += [(128, 64, 8, 8), (64, 128, 8, 8), (64, 64, 8, 4), (64, 64, 4, 8), (64, 64, 4, 4), (32, 32, 4, 4)]
WAYS = [{}, {"inner": 8}, {"inner": 32}]
WAYS += [{"inner": 8, "slices": 2}, {"inner": 8, "slices": 4}]
SEARCHED = [rule.tiles for rule in HOPPER.rules if isinstance(rule.tiles, SearchedTiles)]
LARGE = [rated.tile for tiles in SEARCHED for rated in tiles.tiles]
CANDIDATES = list(dict.fromkeys([*USUAL_TILES, *LARGE, *(GemmTile(*shape, **way) for shape in SHAPES for way in WAYS)]))


@contextmanager
def always(tile: GemmTile | None) -> Iterator[list[GemmTile]]:
    """Cut every product into this tile, or as usual, while entered; give the tiles that are used."""
    choose, used = tiled.choose_work, []

    def chosen(product: GemmProblem, features: Features, accumulate: str) -> tuple:
        taken = choose(product, features, accumulate) if tile is None else (tile, 1)
        used.append(taken[0])
        return taken

    tiled.choose_work = chosen
    try:
        yield used
    finally:
        tiled.choose_work = choose


def shown(tile: GemmTile) -> str:
    """Return a tile in a line."""
    ways = {"inner": tile.inner, "slices": tile.slices}
    return f"{tile.rows}×{tile.columns} by {tile.thread_rows}×{tile.thread_columns}, {ways}"


async def compare(ml: webnn_py.ML, case: Case, best: int) -> None:
    """Time one case with every tile, and print the fastest ones."""
    with always(None) as used:
        seconds = {None: await time_ours(ml, case)}
    for tile in CANDIDATES:
        with always(tile):
            try:
                seconds[tile] = await time_ours(ml, case)
            except webnn_py.OperationError:
                continue  # this adapter cannot run it
    print(f"\n{case.name}: {case.amount / seconds.pop(None):,.1f} {case.unit} with {shown(used[0])}")
    for tile in sorted(seconds, key=seconds.__getitem__)[:best]:
        print(f"{'*' if tile == used[0] else ' '} {case.amount / seconds[tile]:8,.1f} {shown(tile)}", flush=True)


async def main_async(words: Sequence[str], best: int) -> None:
    async with webnn_py.open_ml() as ml:
        for case in CASES:
            is_product = not case.is_bound_by_memory and not {"depthwise", "attention"} & set(case.name.split())
            if is_product and is_wanted(case.name, words):
                await compare(ml, case, best)


def main() -> None:
    arguments = parser("gpu_tiles", __doc__)
    arguments.add_argument("words", **WORDS)
    arguments.add_argument("--best", type=int, default=8, help="how many tiles to print (default: %(default)s)")
    options = arguments.parse_args()
    trio.run(main_async, options.words, options.best)


if __name__ == "__main__":
    main()
