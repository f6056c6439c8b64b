"""Run by an interpreter that has pywebnn: reads each graph of a folder, runs it, and prints what went wrong."""

import json
import sys
from pathlib import Path

import numpy as np
import webnn


def run(context, graph, folder):
    """Run one graph on its inputs, and write its results."""
    described = json.loads((folder / f"{graph.stem}.json").read_text())
    given = np.load(folder / f"{graph.stem}.npz")
    loaded = webnn.MLGraph.load(str(graph))
    loaded.save(str(folder / f"{graph.stem}.read"))
    inputs = {}
    for name in given.files:
        array = given[name]
        inputs[name] = context.create_tensor(list(array.shape), str(array.dtype), readable=True, writable=True)
        context.write_tensor(inputs[name], array)
    outputs = {
        name: context.create_tensor(shape, data_type, readable=True, writable=True)
        for name, (data_type, shape) in described.items()
    }
    context.dispatch(loaded, inputs, outputs)
    results = {
        name: np.asarray(context.read_tensor(tensor)).astype(described[name][0]).reshape(described[name][1])
        for name, tensor in outputs.items()
    }
    np.savez(folder / f"{graph.stem}.results.npz", **results)


def main(folder):
    """Run all."""
    context = webnn.ML().create_context(device_type="cpu")
    wrong = {}
    for graph in sorted(folder.glob("*.webnn")):
        try:
            run(context, graph, folder)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            wrong[graph.stem] = f"{type(error).__name__}: {error}"
    print(json.dumps(wrong))


main(Path(sys.argv[1]))
