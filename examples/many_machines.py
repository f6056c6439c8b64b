"""Run a model over a data set on many machines, with Ray Data: an actor a GPU, or actors on CPUs.

python examples/many_machines.py model.onnx rows.parquet results [--actors 4 | --gpus 2]

(pip install '.[ray]'; on a cluster, ``ray job submit``.) Each actor holds one blocking session. Without --actors
there are as many as leave a CPU for reading the data set; where there is one CPU, one shares it. Ray hands
batches to whichever actor is free, restarts one that dies and repeats its batches; every row is in the results once, in
the order of the data set. Columns are the model's inputs; outputs become columns.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
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
        backend: a device, ``"wgpu"`` for the GPU that Ray has given to the actor; None for the best without a GPU.
        options: further options of the environment.
    """

    def __init__(self, model: bytes, backend: str | None, **options: Any) -> None:
        if backend == "wgpu" and "adapter" not in options and (gpus := ray.get_gpu_ids()):
            options["adapter"] = int(gpus[0])
        self._environment = Environment(backend or without_gpu(), **options)
        self._session = self._environment.create_session(model)

    def __call__(self, batch: Batch) -> Batch:
        """Add the outputs to a batch, which may have other columns beside the inputs."""
        feeds = {}
        for name in self._session.input_names:
            wanted = self._session.input_descriptors[name].data_type
            feeds[name] = np.ascontiguousarray(np.stack(list(batch[name])), dtype=wanted)
        outputs = self._session.run(feeds)
        return batch | {name: tensor.data for name, tensor in outputs.items()}


def without_gpu() -> str:
    """The device on which actors compute that have no GPU: onnxruntime where it is installed, else numpy."""
    return "numpy" if find_spec("onnxruntime") is None else "onnxruntime"


def places(actors: int | None) -> tuple[int, int]:
    """How many actors there are, and how many CPUs each of them takes.

    Args:
        actors: the number that is asked for; None for as many as leave a CPU.

    Raises:
        ValueError: they would leave none of the CPUs, so that nothing could read the data set, and all would wait.
    """
    cpus = int(ray.cluster_resources().get("CPU", 0))
    if actors is None:
        return max(1, cpus - 1), 1 if cpus > 1 else 0
    if actors < 1:
        raise ValueError(f"{actors} actors; it must be at least 1")
    if actors < cpus:
        return actors, 1
    if actors == cpus == 1:
        return 1, 0
    raise ValueError(
        f"{actors} actors take all of Ray's CPUs, {cpus}, and leave none for reading the data set: at most "
        f"{max(1, cpus - 1)} can be had here"
    )


def predict(
    data: ray.data.Dataset,
    model: bytes,
    *,
    actors: int | None = None,
    gpus: int = 0,
    rows: int = 256,
    **options: Any,
) -> ray.data.Dataset:
    """A data set with the model's outputs as further columns; computed when it is read.

    Args:
        data: its columns are the model's inputs.
        model: the bytes of an ONNX model.
        actors: so many processes, each with a CPU, where ``gpus`` is 0; None for as many as leave a CPU.
        gpus: so many GPUs, each with a process of its own.
        rows: of a batch.
        **options: of the environment; by default the backend is WebGPU on GPUs, else onnxruntime or numpy.

    Raises:
        ValueError: the actors would leave no CPU for reading the data set, or there are not so many GPUs.
    """
    data.context.execution_options.preserve_order = True
    if not ray.is_initialized():
        ray.init()
    resources: dict[str, Any] = {"num_gpus": 1}
    size = gpus
    if gpus > (there := int(ray.cluster_resources().get("GPU", 0))):
        raise ValueError(f"{gpus} GPUs are asked for; Ray has {there}")
    if not gpus:
        size, resources["num_cpus"] = places(actors)
        del resources["num_gpus"]
    return data.map_batches(
        Predictor,
        fn_constructor_args=(model, options.pop("backend", None) or ("wgpu" if gpus else None)),
        fn_constructor_kwargs=options,
        batch_size=rows,
        batch_format="numpy",
        compute=ray.data.ActorPoolStrategy(size=size),
        **resources,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Read Parquet, predict, write Parquet."""
    parser = argparse.ArgumentParser(description="Run a model over a data set with Ray Data.")
    parser.add_argument("model", type=Path)
    parser.add_argument("data", help="Parquet files; the columns are the model's inputs")
    parser.add_argument("results", help="a folder to write to")
    parser.add_argument("--actors", type=int, help="processes, where there are no GPUs (default: a CPU is left)")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs, each with a process")
    parser.add_argument("--backend", help="a device of webnn-py devices (default: the best there is)")
    given = parser.parse_args(arguments)
    data = ray.data.read_parquet(given.data)
    try:
        results = predict(data, given.model.read_bytes(), actors=given.actors, gpus=given.gpus, backend=given.backend)
    except ValueError as error:
        parser.error(str(error))
    results.write_parquet(given.results)


if __name__ == "__main__":
    main()
