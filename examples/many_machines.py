"""Run a model over a data set on many machines, with Ray Data: an actor a GPU, or actors on CPUs.

python examples/many_machines.py model.onnx rows.parquet results [--actors 4 | --gpus 2]

(pip install '.[ray]'; on a cluster, ``ray job submit``.) Each actor holds one blocking session. Ray hands
batches to whichever actor is free, restarts one that dies and repeats its batches; every row is in the results once, in
the order of the data set. Columns are the model's inputs; outputs become columns.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import ray
import ray.data

from webnn_py.runtime.blocking import Environment

Batch = dict[str, np.ndarray[Any, Any]]


class Predictor:
    """A session in a process of its own, for ``map_batches``.

    Args:
        model: the bytes of an ONNX model whose first dimension is left open.
        backend: ``"numpy"``, or ``"wgpu"`` for the GPU that Ray has given to the actor.
        options: further options of the environment.
    """

    def __init__(self, model: bytes, backend: str, **options: Any) -> None:
        if backend == "wgpu" and "adapter" not in options and (gpus := ray.get_gpu_ids()):
            options["adapter"] = int(gpus[0])
        self._environment = Environment(backend, **options)
        self._session = self._environment.create_session(model)

    def __call__(self, batch: Batch) -> Batch:
        """Add the outputs to a batch, which may have other columns beside the inputs."""
        feeds = {}
        for name in self._session.input_names:
            wanted = self._session.input_descriptors[name].data_type
            feeds[name] = np.ascontiguousarray(np.stack(list(batch[name])), dtype=wanted)
        outputs = self._session.run(feeds)
        return batch | {name: tensor.data for name, tensor in outputs.items()}


def predict(
    data: ray.data.Dataset, model: bytes, *, actors: int = 2, gpus: int = 0, rows: int = 256, **options: Any
) -> ray.data.Dataset:
    """A data set with the model's outputs as further columns; computed when it is read.

    Args:
        data: its columns are the model's inputs.
        model: the bytes of an ONNX model.
        actors: so many processes, each with a CPU, where ``gpus`` is 0.
        gpus: so many GPUs, each with a process of its own.
        rows: of a batch.
        **options: of the environment.
    """
    data.context.execution_options.preserve_order = True
    resources: dict[str, Any] = {"num_gpus": 1} if gpus else {"num_cpus": 1}
    return data.map_batches(
        Predictor,
        fn_constructor_args=(model, "wgpu" if gpus else "numpy"),
        fn_constructor_kwargs=options,
        batch_size=rows,
        batch_format="numpy",
        compute=ray.data.ActorPoolStrategy(size=gpus or actors),
        **resources,
    )


def main() -> None:
    """Read Parquet, predict, write Parquet."""
    parser = argparse.ArgumentParser(description="Run a model over a data set with Ray Data.")
    parser.add_argument("model", type=Path)
    parser.add_argument("data", help="Parquet files; the columns are the model's inputs")
    parser.add_argument("results", help="a folder to write to")
    parser.add_argument("--actors", type=int, default=2, help="processes, where there are no GPUs")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs, each with a process")
    arguments = parser.parse_args()
    data = ray.data.read_parquet(arguments.data)
    model = arguments.model.read_bytes()
    predict(data, model, actors=arguments.actors, gpus=arguments.gpus).write_parquet(arguments.results)


if __name__ == "__main__":
    main()
