"""Compute random graphs in several places, and compare.

``python -m spec_tests.labs.oracles --graphs 500 --seed 1``

The places are the devices that are there, and onnxruntime alone, of the exported model: with its default optimizations
and with none. A value on which they disagree by more than its bound allows is told with the fewest calls that show it,
and with who is alone. The status is 1 where there is one.
"""

import argparse
import sys
from pathlib import Path
from unittest.mock import patch

import attrs
import trio

from spec_tests.labs.oracles.aims import AIMS
from spec_tests.labs.oracles.graphs import disagreements, graph, smallest
from spec_tests.labs.oracles.places import PLACES, Refused, opened
from spec_tests.labs.oracles.report import report
from webnn_py.devices.wgpu.codegen.attention import tile


@attrs.define
class GraphsFound:
    """The findings of graphs.

    Attributes:
        count: how many were computed.
        found: the disagreements.
        refused: places and what they said.
    """

    count: int = 0
    found: list = attrs.field(factory=list)
    refused: list = attrs.field(factory=list)


def options():
    parser = argparse.ArgumentParser(prog="python -m spec_tests.labs.oracles", description=__doc__)
    parser.add_argument("--graphs", type=int, default=500, metavar="N", help="how many random graphs")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--aim", choices=AIMS, help="what the graphs are aimed at; default: all categories alike")
    parser.add_argument("--place", choices=PLACES, action="append", help="default: each")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="write the report as Markdown instead of printing it"
    )
    return parser.parse_args()


async def compute_graphs(places, first, count, seed, aim=None):
    """All graphs, small attention in one kernel included."""
    gathered = GraphsFound()
    with patch.object(tile, "LEAST_PRODUCTS", 0):
        async with opened(places) as there:
            for number in range(first, first + count):
                await _compute_graph(there, number, graph(number, seed, aim), gathered)
    return gathered


async def _compute_graph(there, number, program, gathered):
    results = await there.results(program)
    gathered.count += 1
    gathered.refused += [
        (name, f"graph {number}: {rounds.text}") for name, rounds in results.items() if isinstance(rounds, Refused)
    ]
    gathered.found += [await smallest(there, one) for one in disagreements(program, results)]


def main():
    chosen = options()
    places = tuple(chosen.place or PLACES)
    graphs = trio.run(compute_graphs, places, chosen.first, chosen.graphs, chosen.seed, chosen.aim)
    text = report(places, chosen.seed, graphs)
    if chosen.report is None:
        sys.stdout.write(text)
    else:
        chosen.report.write_text(text, encoding="utf-8")
    return 1 if graphs.found or graphs.refused else 0


if __name__ == "__main__":
    sys.exit(main())
