"""Choose the cases that a quick run computes on the GPU: ``python -m spec_tests.operators.choose_cases``.

A case is drawn in several ways (:data:`DRAWERS`). Lowering it takes branches of the code that writes kernels, and gives
WGSL. For each operator and each data type of its first operand, the cases are chosen, greedily, that together take
every branch, give every word of WGSL, numbers aside, and have every kind of special value in each operand and output
that all cases do: the words tell of what is decided within a line, the values of what is decided as a kernel runs.
Nothing is compiled for that.
"""

import argparse
import json
import re
import sqlite3
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from unittest.mock import patch

import coverage
import numpy as np
import trio

import webnn_py
from spec_tests.operators.cases import decode, load_all
from spec_tests.operators.choosing import CHOSEN
from webnn_py.devices import wgpu as on_wgpu
from webnn_py.devices.wgpu.backend import WgpuBackend
from webnn_py.devices.wgpu.codegen.gemm import tiled
from webnn_py.devices.wgpu.runtime.context_queue import ContextQueue
from webnn_py.devices.wgpu.runtime.pipelines import Pipelines
from webnn_py.testing.device_cases.graphs import DRAWERS, run

WORD = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|[^\w\s]+")
NUMBER = re.compile(r"(?<!vec)(?<![uif])\d[\w.]*")
CONTEXT = "\t".join
WRITERS = tuple(f"{on_wgpu.__name__}.{part}" for part in ("codegen", "kernels", "lowering", "passes", "records"))
"""The modules that write kernels."""

LETTERS_OF_KERNEL = 500
"""The cost of each kernel, however short."""


class Pipeline:
    """Stands for a pipeline that is never run."""

    _internal = None


def measure(files):
    """Return what the cases reach and the size of their shaders in letters, by operator, drawer and case."""
    reached, costs = defaultdict(set), Counter()
    place = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "coverage")
        # What runs graphs does so beside the lowering of the next one.
        package = Path(on_wgpu.__file__).parent.parent
        written = [f"{package / Path(*name.split('.')[2:])}{end}" for name in WRITERS for end in ("/*", ".py")]
        measured = coverage.Coverage(data_file=data, branch=True, include=written, config_file=False)
        lower, submit = WgpuBackend._compile, ContextQueue._submit

        def measure_lowering(backend, graph, told):
            measured.switch_context(CONTEXT(place))
            try:
                return lower(backend, graph, told)
            finally:
                measured.switch_context("")

        def note_text(_pipelines, kernel):
            reached[tuple(place)].update(WORD.findall(NUMBER.sub("0", kernel.source)))
            costs[tuple(place)] += len(kernel.source) + LETTERS_OF_KERNEL
            future = Future()
            future.set_result(Pipeline)
            return future

        def submit_copies(queue, commands, _finished=()):
            submit(queue, [command for command in commands if not isinstance(command, tuple)])

        with (
            patch.object(WgpuBackend, "_compile", measure_lowering),
            patch.object(Pipelines, "_pipeline", note_text),
            patch.object(ContextQueue, "_submit", submit_copies),
        ):
            measured.start()
            trio.run(_lower_all, files, place)
            measured.stop()
        measured.save()
        with sqlite3.connect(data) as database:
            rows = database.execute(
                "select context.context, file_id, fromno, tono from arc join context on context.id = arc.context_id"
            )
            for context, *branch in rows:
                if context:
                    reached[tuple(context.split("\t"))].add(tuple(branch))
    for file in files:
        for case in file.cases:
            reached[file.operator, "as_written", case.name] |= special_values(case)
    return reached, costs


def special_values(case):
    """Which kinds of special values a case has, and where."""
    places = [
        (name, decode(tensor))
        for name, tensors in case.inputs.items()
        for tensor in (tensors if isinstance(tensors, list) else [tensors])
    ]
    places += [(f"output {index}", array) for index, array in enumerate(case.expected)]
    return {(name, kind) for name, array in places for kind in kinds_of(array)}


def kinds_of(array):
    """The kinds of special values in an array."""
    zero = array == 0
    if array.dtype.kind != "f":
        limits = np.iinfo(array.dtype)
        found = {"zero": zero, "lowest": array == limits.min, "highest": array == limits.max}
    else:
        found = {
            "zero": zero & ~np.signbit(array),
            "negative zero": zero & np.signbit(array),
            "subnormal": ~zero & (abs(array) < np.finfo(array.dtype).smallest_normal),
            "infinity": np.isposinf(array),
            "negative infinity": np.isneginf(array),
            "NaN": np.isnan(array),
        }
    return {kind for kind, where in found.items() if where.any()}


def _forget():
    """Let each case write its texts anew, whatever the cases before it have left in caches."""
    tiled._MAINS.clear()
    for function in _caching(len(sys.modules)):
        function.cache_clear()


@cache
def _caching(_modules):
    """Return the functions of the writers that keep results; there may be more when more modules are imported."""
    things = [
        thing
        for name, module in list(sys.modules.items())
        if name.startswith(WRITERS)
        for thing in vars(module).values()
        if hasattr(thing, "cache_clear")
    ]
    return {id(thing): thing for thing in things}.values()


async def _lower_all(files, place):
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="wgpu")
        for file in files:
            for name, drawer in DRAWERS.items():
                for case in file.cases:
                    place[:] = file.operator, name, case.name
                    _forget()
                    await run(context, case, drawer)


def data_type_of(case):
    """The data type of a case's first operand."""
    first = next(iter(case.inputs.values()))
    return (first[0] if isinstance(first, list) else first)["data_type"]


def groups(files):
    """The operator, drawer and case of each operator and data type."""
    found = defaultdict(list)
    for file in files:
        for name in DRAWERS:
            for case in file.cases:
                found[file.operator, data_type_of(case)].append((file.operator, name, case.name))
    return found


def chosen_of(files, reached, costs):
    """The chosen cases by operator and drawer: always the one that adds most for its cost, without what is needless."""
    chosen = {file.operator: {} for file in files}
    for members in groups(files).values():
        missing, kept = set().union(*(reached[member] for member in members)), []
        while missing:
            best = max(members, key=lambda member: len(reached[member] & missing) / (costs[member] + 1))
            missing -= reached[best]
            kept.append(best)
        for operator, drawer, case in _needed(kept, reached, costs):
            chosen[operator].setdefault(drawer, []).append(case)
    return chosen


def _needed(kept, reached, costs):
    """Those without which less is reached; the costliest are dropped first."""
    times = Counter(thing for member in kept for thing in reached[member])
    needed = set(kept)
    for member in sorted(kept, key=lambda member: costs[member], reverse=True):
        if all(times[thing] > 1 for thing in reached[member]):
            times.subtract(reached[member])
            needed.remove(member)
    return [member for member in kept if member in needed]


def what_is_missing(files, reached, chosen):
    """Return how much all cases reach that the chosen ones do not, by operator and data type."""
    missing = Counter()
    for group, members in groups(files).items():
        everything = set().union(*(reached[member] for member in members))
        kept = [reached[m] for m in members if m[2] in chosen.get(m[0], {}).get(m[1], [])]
        missing[group] = len(everything.difference(*kept))
    return +missing


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", nargs="*", metavar="OPERATOR", help="only say what the chosen cases do not reach")
    names = parser.parse_args().check
    files = [file for file in load_all() if not names or file.operator in names]
    reached, costs = measure(files)
    if names is not None:
        missing = what_is_missing(files, reached, json.loads(CHOSEN.read_text(encoding="utf-8")))
        for (operator, data_type), count in missing.items():
            sys.stdout.write(
                f"{operator} of {data_type}: {count} branches, words or special values are in no chosen case\n"
            )
        sys.exit(1 if missing else 0)
    chosen = chosen_of(files, reached, costs)
    CHOSEN.write_text(json.dumps(chosen, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{sum(len(c) for d in chosen.values() for c in d.values())} of {len(reached)} are chosen\n")


if __name__ == "__main__":
    main()
