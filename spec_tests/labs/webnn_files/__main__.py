"""Random graphs as ``.webnn`` files: there and back here, and as pywebnn (RustNN) reads and runs them.

``python -m spec_tests.labs.webnn_files --graphs 100 --seed 1 --pywebnn PYTHON3.12``. Each graph is written, read into
another builder and run: the results must have the same bits. Then pywebnn reads the same files: the inputs, constants,
operators, their required operands and the outputs must be the same; what it computes is compared, too, within the bound
of each value.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import trio

from spec_tests.labs.differential.graphs import UnwantedError
from spec_tests.labs.oracles.graphs import graph
from spec_tests.support.random_graphs.program import what_is_wrong
from webnn_py import MLGraphBuilder, load_webnn, open_ml, save_webnn
from webnn_py.webnn_files.text import read_text


class FromFile:
    """A program whose graph comes from a file."""

    def __init__(self, program, path):
        self._program = program
        self._path = path

    async def run(self, context):
        """The outputs of each round."""

        class Read(type(self._program)):
            __slots__ = ()

            def build(read, context):
                builder = MLGraphBuilder(context)
                return builder.build(load_webnn(builder, self._path))

        program = self._program
        return await Read(program.sources, program.calls, program.outputs).run(context)


async def there_and_back(program, path, ml):
    """Write a program's graph and read it again; the results of both, which must have the same bits."""
    context = await ml.create_context(backend="numpy")
    builder = MLGraphBuilder(context)
    save_webnn(program.draw(builder), path)
    expected = await program.run(context)
    actual = await FromFile(program, path).run(context)
    context.destroy()
    same = all(
        ours.tobytes() == theirs.tobytes()
        for before, after in zip(expected, actual, strict=True)
        for ours, theirs in zip(before, after, strict=True)
    )
    return expected[0], same


async def write_all(folder, count, seed):
    """Write the graphs, their inputs and what their outputs are; return the programs and results by name."""
    found = {}
    number = 0
    async with open_ml() as ml:
        while len(found) < count:
            number += 1
            try:
                program = graph(number, seed)
            except UnwantedError:
                continue
            if not program.calls:
                continue
            path = folder / f"{number:04}.webnn"
            results, same = await there_and_back(program, path, ml)
            assert same, f"graph {number} of seed {seed} has other results when it is read again: {program}"
            given = {one.value.name: one.data(0) for one in program.sources if one.is_input}
            np.savez(path.with_suffix(".npz"), **given)
            outputs = {f"y{at}": [value.data_type, list(value.shape)] for at, value in enumerate(program.outputs)}
            path.with_suffix(".json").write_text(json.dumps(outputs), encoding="utf-8")
            found[path.stem] = program, results
    return found


def as_read_here(path):
    """Return the parts of a graph as it is read here, without optional operands, which pywebnn 0.5.12 drops."""
    text = read_text(path.read_text(encoding="utf-8"))
    inputs = {name: [descriptor.data_type, list(descriptor.shape)] for name, descriptor in text.inputs.items()}
    constants = {name: [one.descriptor.data_type, list(one.descriptor.shape)] for name, one in text.constants.items()}
    calls = [[call.operator, [one.text for one in call.positional], list(call.outputs)] for call in text.calls]
    return inputs, constants, calls, sorted(text.outputs)


def as_read_there(path):
    """Return the parts of a graph as pywebnn has saved it."""
    saved = json.loads(path.read_text(encoding="utf-8"))
    kinds = [{n: [one["dataType"], one["shape"]] for n, one in saved[kind].items()} for kind in ("inputs", "consts")]
    calls = [[node["op"], node["inputs"], node["outputs"]] for node in saved["nodes"]]
    return *kinds, calls, sorted(saved["outputs"])


def compare(folder, found, interpreter):
    """Have pywebnn read and run all graphs, and print how its results differ."""
    script = Path(__file__).with_name("peer.py")
    answer = subprocess.run([interpreter, script, folder], check=True, capture_output=True, text=True)
    errors = json.loads(answer.stdout.splitlines()[-1])
    verdicts = Counter()
    for name, (program, ours) in found.items():
        operators = ", ".join(sorted({call.method for call in program.calls}))
        read = folder / f"{name}.read"
        verdicts["read alike"] += read.exists() and as_read_here(folder / f"{name}.webnn") == as_read_there(read)
        if name in errors:
            verdicts["refused there"] += 1
            print(f"{name}: {errors[name][:200]} ({operators})")
            continue
        theirs = np.load(folder / f"{name}.results.npz")
        wrong = [
            words
            for at, value in enumerate(program.outputs)
            if (words := what_is_wrong(value, theirs[f"y{at}"], ours[at], "pywebnn"))
        ]
        verdicts["other results there" if wrong else "the same there"] += 1
        if wrong:
            print(f"{name}: {wrong[0][:200]} ({operators})")
    print(dict(verdicts))


def main():
    """Write, read and compare."""
    parser = argparse.ArgumentParser(prog="python -m spec_tests.labs.webnn_files", description=__doc__)
    parser.add_argument("--graphs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pywebnn", metavar="PYTHON", help="a Python 3.12 interpreter that has pywebnn")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        found = trio.run(write_all, folder, options.graphs, options.seed)
        print(f"{len(found)} graphs have the same results there and back")
        if options.pywebnn:
            compare(folder, found, options.pywebnn)


if __name__ == "__main__":
    sys.exit(main())
