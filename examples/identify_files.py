"""Identify files by their content: magika's trained model, read from its ONNX file and run by webnn_py.

The model comes with the package ``magika``, whose code is not used here: ``pip install '.[examples]'``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import trio
from numpy.typing import NDArray

import webnn_py

if TYPE_CHECKING:
    from webnn_py.onnx_models import OnnxModel

Tokens = NDArray[np.int32]


class Magika(NamedTuple):
    """The contents of the package ``magika``: the model, its configuration, and what it knows of each content type."""

    model: OnnxModel
    config: dict[str, Any]
    content_types: dict[str, dict[str, Any]]


class Identified(NamedTuple):
    """A file's content type; the model was not asked where there is no time."""

    path: Path
    label: str
    score: float
    milliseconds: float | None = None


async def identify(paths: Iterable[Path], magika: Magika, backend: str | None = None) -> tuple[list[Identified], str]:
    """Identify files one by one, and say what ran the model."""
    identified = []
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend=backend)
        builder = webnn_py.MLGraphBuilder(context)
        shape = [1, magika.config["beg_size"] + magika.config["end_size"]]
        graph = await builder.build(magika.model.convert(builder, {"bytes": shape}))
        tokens = await context.create_buffer(data_type="int32", shape=shape, writable=True)
        scores = await context.create_buffer(
            data_type="float32", shape=graph.output_descriptors["target_label"].shape, readable=True
        )
        for path in paths:
            content = await trio.to_thread.run_sync(look_at, path, magika.config)
            if isinstance(content, str):
                identified.append(Identified(path, content, 0.0 if content.endswith("_error") else 1.0))
                continue
            start = time.perf_counter()
            context.write_buffer(tokens, content)
            context.dispatch(graph, {"bytes": tokens}, {"target_label": scores})
            result = await context.read_buffer(scores)
            milliseconds = (time.perf_counter() - start) * 1000
            identified.append(Identified(path, *decide(result[0], magika), milliseconds))
        return identified, str(context.backend)


def look_at(path: Path, config: dict[str, Any]) -> Tokens | str:
    """Return the bytes of a file for the model, or the label of a file that it is not asked about."""
    try:
        if not path.exists():
            return "file_not_found_error"
        if not path.is_file():
            return "directory" if path.is_dir() else "unknown"
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            block = min(size, config["block_size"])
            file.seek(0)
            first = file.read(block)
            file.seek(size - block)
            last = file.read(block)
    except OSError as error:
        return "permission_error" if isinstance(error, PermissionError) else "read_error"
    return tokens_of(first, last, config) if first else "empty"


def tokens_of(first: bytes, last: bytes, config: dict[str, Any]) -> Tokens | str:
    """The bytes that a file begins and ends with, white space aside, as tokens; the label if they are too few."""
    begin, end = first.lstrip()[: config["beg_size"]], last.rstrip()[-config["end_size"] :]
    if len(begin) < config["min_file_size_for_dl"]:
        return few_bytes_label(first)
    tokens = np.full([1, config["beg_size"] + config["end_size"]], config["padding_token"], np.int32)
    tokens[0, : len(begin)] = np.frombuffer(begin, np.uint8)
    tokens[0, tokens.size - len(end) :] = np.frombuffer(end, np.uint8)
    return tokens


def few_bytes_label(content: bytes) -> str:
    """The label of too few bytes for the model: text if they can be read as such."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "unknown"
    return "txt"


def decide(scores: NDArray[np.float32], magika: Magika) -> tuple[str, float]:
    """The label to tell and its score; a best guess that is not good enough becomes just text, or unknown."""
    config = magika.config
    best = int(scores.argmax())
    guess, score = config["target_labels_space"][best], float(scores[best])
    label = config["overwrite_map"].get(guess, guess)
    if score < config["thresholds"].get(guess, config["medium_confidence_threshold"]):
        label = "txt" if magika.content_types[label]["is_text"] else "unknown"
    return label, score


def load_magika() -> Magika:
    """Load the model and its configuration from the installed package.

    Raises:
        ImportError: it, or what reads ONNX files, is not installed.
    """
    from webnn_py.onnx_models import OnnxModel  # noqa: PLC0415 - belongs to the extra, too

    package = importlib.util.find_spec("magika")
    if package is None or package.origin is None:
        raise ImportError("the package magika is not installed")
    folder = Path(package.origin).parent
    trained = folder / "models" / "standard_v3_3"
    return Magika(
        OnnxModel.load(trained / "model.onnx"),
        json.loads((trained / "config.min.json").read_text(encoding="utf-8")),
        json.loads((folder / "config" / "content_types_kb.min.json").read_text(encoding="utf-8")),
    )


def walk(path: Path) -> Iterator[Path]:
    """The file itself, or the files in the folder and below, hidden folders left out."""
    if not path.is_dir():
        yield path
        return
    try:
        entries = sorted(path.iterdir())
    except PermissionError:
        yield path
        return
    for entry in entries:
        if entry.is_symlink() or not entry.is_dir():
            yield entry
        elif not entry.name.startswith("."):
            yield from walk(entry)


def print_table(identified: Sequence[Identified]) -> None:
    """One line for each file."""
    names = ["".join(c if c.isprintable() else "?" for c in str(item.path)) for item in identified]
    width = max(map(len, ["path", *names]))
    print(f"{'path':{width}}  {'label':20}  score  {'ms':>6}")
    for name, item in zip(names, identified, strict=True):
        milliseconds = "-" if item.milliseconds is None else f"{item.milliseconds:.1f}"
        print(f"{name:{width}}  {item.label:20}  {item.score:.3f}  {milliseconds:>6}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Identify the files named on the command line; 1 if one of them cannot be read."""
    parser = argparse.ArgumentParser(prog="identify_files.py", description="Identify files by their content.")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file, or a folder to walk")
    parser.add_argument("--backend", help="the device that runs the model (default: the best that is there)")
    options = parser.parse_args(arguments)
    paths = [file for path in options.paths for file in walk(path)]
    try:
        magika = load_magika()
    except ImportError as error:
        print(f"identify_files.py: {error}; pip install '.[examples]'", file=sys.stderr)
        return 1
    identified, backend = trio.run(identify, paths, magika, options.backend)
    print_table(identified)
    print(f"{len(identified)} files, identified on {backend}")
    failed = [item for item in identified if item.label.endswith("_error")]
    for item in failed:
        print(f"identify_files.py: {item.path}: {item.label.replace('_', ' ')}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
