"""Ensembles of decision trees on the onnxruntime device and on numpy, beside onnxruntime itself.

``python -m spec_tests.labs.benchmarks.trees``: random full trees of 20 features, as ``engine`` has it, from host to
host, all of one row in turn, medians; and the builds, without the conversion.
"""

import argparse
from functools import partial

import numpy as np
import trio
from onnx import TensorProto, helper

from spec_tests.labs.benchmarks.engine import row
from spec_tests.labs.benchmarks.measure import table
from webnn_py import open_ml
from webnn_py.onnx_models import OnnxModel

FEATURES = 20
CASES = [(1, 7, 1), (100, 3, 1), (100, 6, 1), (100, 6, 1000), (500, 5, 1), (500, 5, 1000)]
"""Trees, levels of each, and rows."""


def ensemble(trees, levels, rows):
    """A TreeEnsembleRegressor of one target as a model."""
    rng = np.random.default_rng(3)
    of_one = np.arange(2 ** (levels + 1) - 1)
    is_leaf = of_one >= 2**levels - 1
    nodes, tree = np.tile(of_one, trees), np.repeat(np.arange(trees), len(of_one))
    leaf = np.tile(is_leaf, trees)
    lists = {
        "nodes_treeids": tree,
        "nodes_nodeids": nodes,
        "nodes_featureids": np.where(leaf, 0, rng.integers(FEATURES, size=len(nodes))),
        "nodes_values": np.where(leaf, 0, rng.random(len(nodes), np.float32)),
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ"),
        "nodes_truenodeids": np.where(leaf, 0, 2 * nodes + 1),
        "nodes_falsenodeids": np.where(leaf, 0, 2 * nodes + 2),
        "target_treeids": tree[leaf],
        "target_nodeids": nodes[leaf],
        "target_ids": np.zeros(leaf.sum(), np.int64),
        "target_weights": rng.normal(size=leaf.sum()),
    }
    given = {name: array.tolist() for name, array in lists.items()}
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, **given)
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, size])
        for name, size in (("x", FEATURES), ("y", 1))
    )
    graph = helper.make_graph([node], "trees", [x], [y])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def drawn(model, builder):
    return OnnxModel.load(model).convert(builder)


async def measure(arguments):
    results = []
    async with open_ml() as ml:
        for trees, levels, rows in CASES:
            model = ensemble(trees, levels, rows)
            name = f"{trees} trees of {levels} levels, rows: {rows}"
            runs = 30 if rows > 1 else 1000
            results += await row(ml, name, partial(drawn, model), model, runs=runs, threads=arguments.threads)
    print(table(results))


def main():
    parser = argparse.ArgumentParser(prog="python -m spec_tests.labs.benchmarks.trees", description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    trio.run(measure, parser.parse_args())


if __name__ == "__main__":
    main()
