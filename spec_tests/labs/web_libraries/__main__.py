"""Real models in onnxruntime-web on ``webnn-py node``, compared with native onnxruntime.

``python -m spec_tests.labs.web_libraries PROJECT [NAME …]``: PROJECT is a folder in which
``npm install onnxruntime-web`` was run, of any version; the library is used as it is. Models are those of
``real_models``, whose inputs' sizes are written into them, as onnxruntime advises for WebNN. Prints for each model
the nodes that WebNN has of all, the largest difference relative to an output's largest value, and a count at the end:
models that agree, those of them that have no node on WebNN, and the rest; it fails where ``differences.toml`` does not
list those that do not agree, each with the reason.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import numpy as np
import onnx

from spec_tests.labs.real_models.comparison import farthest, feeds_of, results_of, session_of
from spec_tests.labs.real_models.listed import listed
from spec_tests.labs.real_models.packages import NotHadError, path_of

BOUND = 1e-4
NODES = re.compile(r"number of nodes in the graph: (\d+) number of nodes supported by WebNN: (\d+)")
PLAYER = Path(__file__).with_name("play.mjs")
DIFFERENCES = Path(__file__).with_name("differences.toml")
AGREE, AGREE_WITHOUT = "agree", "agree without WebNN"


def prepare(model, path, job):
    """Write a job, and return what native onnxruntime makes of it."""
    session = session_of(str(path))
    feeds, _ = feeds_of(model, session)
    wanted = results_of(session, feeds)
    proto = onnx.load(path)
    for value in proto.graph.input:
        if value.name in feeds:
            dims = value.type.tensor_type.shape.dim
            del dims[:]
            for size in feeds[value.name].shape:
                dims.add().dim_value = size
    forget_sizes(proto.graph)
    job.mkdir()
    onnx.save(proto, job / "model.onnx")
    inputs = {}
    for index, (name, value) in enumerate(feeds.items()):
        (job / f"input{index}").write_bytes(np.ascontiguousarray(value).tobytes())
        inputs[name] = {"type": str(value.dtype), "dims": list(value.shape), "file": f"input{index}"}
    (job / "job.json").write_text(json.dumps({"inputs": inputs}), encoding="utf-8")
    return wanted


def forget_sizes(graph):
    """Clear the declared sizes of the outputs of a graph and its bodies, and of all values in between."""
    for value in graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    del graph.value_info[:]
    for body in (item.g for node in graph.node for item in node.attribute if item.HasField("g")):
        forget_sizes(body)


def reasons():
    """Return why listed models do not agree."""
    listing = tomllib.loads(DIFFERENCES.read_text(encoding="utf-8"))["reason"]
    return {name: entry["text"] for entry in listing for name in entry["models"]}


def logged(folder):
    """Return what onnxruntime logged, by job."""
    if not (folder / "log").exists():  # there was no job
        return {}
    text = (folder / "log").read_text(encoding="utf-8", errors="replace")
    _, *parts = re.split(r"^job (\d+)\n", text, flags=re.MULTILINE)
    return dict(zip(map(int, parts[::2]), parts[1::2], strict=True))


def outcome(job, wanted, log):
    """Return the line of a job that has been played, and which count it goes into."""
    try:
        result = json.loads((job / "result.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "the process ended, or took too long", "failed"
    if "error" in result:
        return f"{' '.join(result['error'].split())[:900]}", "failed"
    ours = {
        name: np.frombuffer((job / output["file"]).read_bytes(), output["type"]).reshape(output["dims"])
        for name, output in result["outputs"].items()
    }
    apart = farthest(ours, wanted)
    (counted,) = NODES.findall(log)[:1] or [(0, 0)]
    total, here = map(int, counted)
    line = f"{here:5} of {total:5} nodes  {result['milliseconds']:8.0f} ms  {apart:8.1e}"
    if not apart <= BOUND:
        return line, "differ"
    return line, AGREE if here else AGREE_WITHOUT


def play(folder, number, options):
    """Play the jobs from a number on, in one process for as many as it lives."""
    command = [sys.executable, "-m", "webnn_py", "node", "--backend", options.backend, "--"]
    node = [
        options.node,
        "--liftoff-only",
        str(PLAYER),
        str(folder),
        str(number),
        str(options.project),
        options.provider,
    ]
    try:
        with (folder / "log").open("ab") as log:
            subprocess.run(command + node, timeout=options.seconds, check=False, stderr=log)
    except subprocess.TimeoutExpired:
        print("    took too long", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Run real models in onnxruntime-web.")
    parser.add_argument("project", type=Path, metavar="PROJECT", help="folder with node_modules/onnxruntime-web")
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of names; all by default")
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--provider", default="webnn", help="onnxruntime-web's execution provider")
    parser.add_argument("--node", default="node", help="the Node to run it in")
    parser.add_argument("--batch", type=int, default=8, help="number of models prepared at a time")
    parser.add_argument("--seconds", type=float, default=600, help="limit for a batch")
    parser.add_argument("--logs", type=Path, help="folder for onnxruntime's log of each model")
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "webnn_py" / "real_models")
    options = parser.parse_args()
    options.project = options.project.resolve()
    models = [model for model in listed() if not options.names or any(name in model.name for name in options.names)]
    counts, known, unlisted = {}, reasons(), []
    for start in range(0, len(models), options.batch):
        folder = Path(tempfile.mkdtemp())
        jobs = []
        for model in models[start : start + options.batch]:
            try:
                path = path_of(model, options.folder)
                jobs.append((model, prepare(model, path, folder / f"{len(jobs)}")))
            except NotHadError as error:
                print(f"{model.name}: {error}", flush=True)
        number = 0
        while number < len(jobs):
            play(folder, number, options)
            played = [(folder / f"{index}" / "result.json").exists() for index in range(len(jobs))]
            number = max(number + 1, [*played, False].index(False))  # the one that it died of is tried a second time
        logs = logged(folder)
        for index, (model, wanted) in enumerate(jobs):
            line, count = outcome(folder / f"{index}", wanted, logs.get(index, ""))
            if options.logs is not None:
                name = model.name.replace("/", "+")
                (options.logs / f"{name}.log").write_text(logs.get(index, ""), encoding="utf-8")
            counts[count] = counts.get(count, 0) + 1
            if count not in {AGREE, AGREE_WITHOUT}:
                line += f": {known.get(model.name, 'NOT LISTED')}"
                unlisted += [] if model.name in known else [model.name]
            print(f"{count:20} {model.name:60} {line}", flush=True)
        shutil.rmtree(folder)
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    sys.exit(f"not listed: {', '.join(unlisted)}" if unlisted else 0)


if __name__ == "__main__":
    main()
