"""Compare the verdicts about graphs for Chromium's onnxruntime backends with the engines themselves.

``python -m spec_tests.labs.differential.engine_verdicts --browser chromium-windows-webgpu --graphs 1000 --seed 1``

The verdict about a graph, which comes from where onnxruntime places each node while the CPU may help out, is compared
with a session of the whole graph in which it may not: that is made, or it is not. A second line tells how often asking
about each operator alone would have given the same, a third whether all operators were found: without those that the
verdict names, the rest of a graph has to run on the provider alone. Graphs that the profile's limits refuse are passed
over. The status is 1 where fewer than 95 % of the verdicts agree.
"""

import argparse
import sys
from collections import Counter

import attrs
import trio

from spec_tests.labs.differential import graphs
from spec_tests.support.random_graphs.program import Program
from webnn_py import MLGraphBuilder, open_ml
from webnn_py.browser_profiles import find
from webnn_py.browser_profiles.engines import ENGINES
from webnn_py.device.on_onnxruntime.as_chromium import asking
from webnn_py.device.on_onnxruntime.as_chromium.engine_process import ENGINES_PROCESS
from webnn_py.graph import Graph, Input, Node, Output
from webnn_py.operators.declaration import of_operands
from webnn_py.script.builder import drawing_of

WANTED = 0.95


def options():
    parser = argparse.ArgumentParser(prog="python -m spec_tests.labs.differential.engine_verdicts", description=__doc__)
    parser.add_argument("--browser", choices=ENGINES, default="chromium-windows-webgpu")
    parser.add_argument("--graphs", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first graph")
    return parser.parse_args()


def graph_of(context, number, seed, profile):
    """Draw a random graph; None if the profile's limits refuse it."""
    drawer = graphs.drawn(number, seed, profile)
    read = drawer.read
    ends = [value for call in drawer.calls for value in call.results if number % 2 == 0 or value.name not in read]
    program = Program.of(drawer.sources, drawer.calls, ends)
    builder = MLGraphBuilder(context)
    graph = drawing_of("verdict", program.draw(builder))
    refused = any(profile.refusal_of_node(node) is not None for node in graph.nodes)
    return None if refused else graph


def without(graph, places):
    """Return a graph in which the results of the operators at some places are inputs; None if no other is left."""
    made, outputs = {}, {}

    def current(value):
        return made.get(value, value)

    for place, node in enumerate(graph.nodes):
        if place in places:
            made |= {result: Input(result.descriptor, f"cut {place} {result.index}") for result in node.results}
            outputs |= {f"read {place} {index}": current(value) for index, value in enumerate(node.inputs)}
        else:
            operands = of_operands(node.operands, current)
            kept = Node(node.operator, operands, node.options, node.outputs, node.label)
            made |= dict(zip(node.results, kept.results, strict=True))
    outputs |= {name: current(value) for name, value in graph.outputs.items()}
    computed = {value: name for name, value in outputs.items() if isinstance(value, Output)}
    return Graph.reaching({name: value for value, name in computed.items()}) if computed else None


def engine_says(browser, graph):
    """Return "" if the engine makes a session of the whole graph with CPU fallback disabled, otherwise its error."""
    engine = ENGINES[browser]
    return ENGINES_PROCESS.placements(engine, asking.model_of(graph, engine), has_fallback=False).error


@attrs.define
class Tally:
    """The agreement so far."""

    count: Counter = attrs.field(factory=Counter)
    left: Counter = attrs.field(factory=Counter)
    differing: list = attrs.field(factory=list)

    def add(self, number, verdict, error, each, rest):
        """Add a graph: its number, the verdict, the engine's error, each operator's alone, and that of the rest."""
        runs = not error
        agrees = verdict.runs_whole == runs
        self.count.update(graphs=1, agree=agrees, run=runs, build=verdict.builds, alone=each == runs)
        if rest is not None:
            self.count.update(rests=1, whole_rests=not rest)
        self.count["operators"] += len(verdict.operators)
        self.left.update(f"{one.operator} ({one.outcome}): {one.reason}" for one in verdict.operators)
        if not agrees:
            self.differing.append((number, verdict, error))


async def main():
    chosen = options()
    profile, tally, number = find(chosen.browser), Tally(), chosen.first - 1
    async with open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        while tally.count["graphs"] < chosen.graphs:
            number += 1
            graph = graph_of(context, number, chosen.seed, profile)
            if graph is None:
                tally.count["passed over"] += 1
                continue
            verdict = asking.ask(chosen.browser, graph)
            if verdict.not_asked:
                sys.exit(verdict.found)
            each = all(asking.ask(chosen.browser, asking.alone(node)).runs_whole for node in graph.nodes)
            cut = without(graph, {one.place for one in verdict.operators}) if verdict.operators else None
            rest = None if cut is None else engine_says(chosen.browser, cut)
            tally.add(number, verdict, engine_says(chosen.browser, graph), each, rest)
    count = tally.count
    print(f"{chosen.browser}: {verdict.found}")
    print(
        f"{count['graphs']} graphs ({count['passed over']} more were beyond the limits): {count['build']} build, "
        f"{count['run']} run on the provider alone; {count['agree']} verdicts agree with the engine"
    )
    print(f"asked about each operator alone, {count['alone']} would agree")
    print(
        f"without the operators that are not taken, the rest of {count['whole_rests']} of {count['rests']} graphs runs"
    )
    for number, verdict, error in tally.differing:
        print(f"  graph {number}: verdict {verdict.error or verdict.operators or 'runs'}; engine {error or 'runs'}")
    print(f"{count['operators']} operators are not taken:")
    for words, times in tally.left.most_common(25):
        print(f"  {times} × {words}")
    return 0 if count["agree"] >= WANTED * count["graphs"] else 1


if __name__ == "__main__":
    sys.exit(trio.run(main))
