"""Run the example of many machines on local clusters, and print JSON.

With a folder: ``predict()`` on three nodes of one processor, where one of two actors dies. With a number of processors,
too: ``main()`` on one node that has so many.
"""

import contextlib
import importlib.util
import io
import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import ray
import ray.data
from ray import cloudpickle
from ray.cluster_utils import Cluster

from spec_tests.support.onnx_programs import product
from webnn_py.runtime.blocking import Environment

W = np.arange(12, dtype=np.float32).reshape(4, 3)
ROWS, BLOCKS = 600, 12


def load_example():
    path = Path(__file__).parents[2] / "examples" / "many_machines.py"
    specification = importlib.util.spec_from_file_location("many_machines", path)
    module = importlib.util.module_from_spec(specification)
    sys.modules["many_machines"] = module
    specification.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)
    return module


def on_one_node(folder, cpus):
    """Run the example as a command: by itself, and with as many actors as there are processors."""
    example, folder = load_example(), Path(folder)
    x = np.random.default_rng(1).random((ROWS, 4), np.float32)
    (folder / "model.onnx").write_bytes(product(W))
    ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False)
    table = ray.data.from_items([{"x": row, "number": number} for number, row in enumerate(x)])
    table.write_parquet(str(folder / "rows"))
    command = [str(folder / "model.onnx"), str(folder / "rows"), str(folder / "results")]
    with contextlib.redirect_stderr(io.StringIO()) as told:
        try:
            example.main([*command, "--actors", str(cpus + 1)])
        except SystemExit as end:
            refused = end.code
    example.main(command)
    rows = ray.data.read_parquet(str(folder / "results")).take_all()
    ray.shutdown()
    with Environment(example.without_gpu()) as env, env.create_session(product(W)) as session:
        expected = session.run({"x": x})["y"].data
    different = sum((row["y"] != expected[row["number"]]).any() for row in rows)
    numbers = sorted(int(row["number"]) for row in rows)
    return {
        "refused": refused,
        "why": told.getvalue().splitlines()[-1].partition("error: ")[2],
        "rows": numbers == list(range(ROWS)),
        "differing rows": int(different),
    }


def main(folder):
    example = load_example()

    class Fragile(example.Predictor):
        """Says where it is, and dies once, in the midst of its work."""

        batches = 0

        def __call__(self, batch):
            self.batches += 1
            mark = Path(folder) / "died"
            if self.batches == 2 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            size = len(batch["number"])
            node = ray.get_runtime_context().get_node_id()
            return super().__call__(batch) | {"node": np.full(size, node), "process": np.full(size, os.getpid())}

    x = np.random.default_rng(1).random((ROWS, 4), np.float32)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(2):  # one reads the data set
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        items = [{"x": row, "number": number} for number, row in enumerate(x)]
        data = ray.data.from_items(items, override_num_blocks=BLOCKS)
        example.Predictor = Fragile
        rows = example.predict(data, product(W), actors=2, rows=10, backend="numpy").take_all()
    finally:
        ray.shutdown()
        cluster.shutdown()
    with Environment("numpy") as env, env.create_session(product(W)) as session:
        expected = session.run({"x": x})["y"].data
    print(
        json.dumps(
            {
                "numbers in order": [int(row["number"]) for row in rows] == list(range(ROWS)),
                "differing rows": int(sum((row["y"] != expected[row["number"]]).any() for row in rows)),
                "nodes": len({row["node"] for row in rows}),
                "processes": len({int(row["process"]) for row in rows}),
                "died": (Path(folder) / "died").exists(),
            }
        )
    )


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(on_one_node(sys.argv[1], int(sys.argv[2]))))
    else:
        main(sys.argv[1])
