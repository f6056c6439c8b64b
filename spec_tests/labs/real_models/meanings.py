"""The answers that outputs encode: the text, the class, the faces, whether somebody speaks, here and there."""

import operator
from itertools import pairwise

import attrs
import numpy as np
import onnx

import webnn_py
from spec_tests.labs.real_models.comparison import drawn, feeds_of, results_of, session_of
from spec_tests.labs.real_models.questions import asked_of
from spec_tests.support.computing import run_graph

LIKELY = 0.3
"""Points of a map that are text."""
STATES = ("state", "h", "c")
"""Inputs that are, in their order, what a model's further outputs were the time before."""


@attrs.frozen
class Answers:
    """The answer of a model.

    Attributes:
        asked: how many questions.
        same: how many of them had the same answer here and in onnxruntime.
        shown: one of onnxruntime's.
    """

    asked: int
    same: int
    shown: str


def text(outputs, letters):
    """The letters of the likeliest places: number 0 is none, and a letter may take several places."""
    (scores,) = outputs.values()
    best = scores.reshape(-1, scores.shape[-1]).argmax(1).tolist()
    read = [after for before, after in pairwise([0, *best]) if after not in (0, before)]
    return "".join(letters[item] for item in read) if letters else read


def best(outputs, _):
    """The class of the greatest score, at each place."""
    first = np.squeeze(next(iter(outputs.values())))
    return first.argmax(-1).tolist() if first.dtype.kind == "f" else first.tolist()


def decisions(outputs, _):
    """Return where it is likelier than not."""
    return np.flatnonzero(next(iter(outputs.values())) > 1 / 2).tolist()


def lines(outputs, _):
    """The boxes of what hangs together in a map: left, top, right, bottom."""
    (likely,) = outputs.values()
    left = {tuple(point) for point in np.argwhere(np.squeeze(likely) > LIKELY).tolist()}
    boxes = []
    while left:
        found, around = [], [left.pop()]
        while around:
            down, across = point = around.pop()
            found.append(point)
            near = {(down + 1, across), (down - 1, across), (down, across + 1), (down, across - 1)} & left
            left -= near
            around += near
        down, across = zip(*found, strict=True)
        boxes.append([min(across), min(down), max(across), max(down)])
    return sorted(boxes)


def faces(outputs, _):
    """The places where there is likelier a face than not, and the pixels of 320 of their boxes."""
    if "scores" in outputs:
        scores, boxes = outputs["scores"][0, :, 1:].max(-1), {"": outputs["boxes"][0] * 320}
        likely = {"": scores}
    else:
        likely = {size: np.sqrt(outputs[f"cls_{size}"] * outputs[f"obj_{size}"])[0, :, 0] for size in (8, 16, 32)}
        boxes = {size: outputs[f"bbox_{size}"][0] * size for size in likely}
    return [
        (place, *boxes[size][place].round().astype(int).tolist())
        for size, chances in likely.items()
        for place in np.flatnonzero(chances > 1 / 2).tolist()
    ]


def are_same_faces(ours, theirs):
    """Return whether two lists of faces are the same; pixels may be rounded to either side."""
    places = [[place for place, *_ in faces] for faces in (ours, theirs)]
    return places[0] == places[1] and np.abs(np.array(ours) - np.array(theirs)).max(initial=0) <= 1


MEANINGS = {"best": best, "decisions": decisions, "faces": faces, "lines": lines, "text": text}


async def answered(model, path, backend, folder):
    """Ask both the same questions, in their order; what a model remembers of one it is given with the next."""
    session, letters = session_of(str(path)), letters_of(path)
    outputs = [item.name for item in session.get_outputs()]
    mean = MEANINGS[model.meaning]
    are_same = are_same_faces if model.meaning == "faces" else operator.eq
    feeds, known = feeds_of(attrs.evolve(model, inputs={**model.inputs, **_shapes(model.asked)}), session)
    states = dict(zip([name for name in STATES if name in feeds], outputs[1:], strict=False))
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend=backend)
        builder, drawing = drawn(context, model, path, feeds, known)
        graph = await builder.build(drawing)
        before = [{name: np.zeros_like(feeds[name]) for name in states}] * 2
        both = []
        for arrays in asked_of(model, folder):
            asked = {name: array.astype(feeds[name].dtype) for name, array in arrays.items()}
            ours = await run_graph(context, graph, {**feeds, **asked, **before[0]})
            theirs = results_of(session, {**feeds, **asked, **before[1]})
            before = [{name: given[output] for name, output in states.items()} for given in (ours, theirs)]
            both.append((mean(ours, letters), mean(theirs, letters)))
    assert any(theirs for _, theirs in both), "no question has an answer"
    return Answers(len(both), sum(map(are_same, *zip(*both, strict=True))), _shortened([item for _, item in both]))


def _shapes(asked):
    """The contents that stand for questions while a graph is made of their shapes."""
    return {name: " ".join(["zeros", *kind.split()[1:]]) for name, kind in asked.items()}


def letters_of(path):
    """The letters that a model says it knows, if it does."""
    known = [item.value for item in onnx.load(path, load_external_data=False).metadata_props if item.key == "character"]
    return ["", *known[0].split("\n"), " "] if known else None


def _shortened(answers, length=60):
    said = ", ".join(str(item) for item in answers)
    return said if len(said) <= length else f"{said[:length]}…"
