"""Read the text of a picture: PP-OCRv6 finds the lines, turns those that stand on their head, and reads each.

    python examples/read_text.py PICTURE [--backend NAME]

The models come with the package ``rapidocr``, whose code is not used here. Needs ``pip install '.[examples]'``.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import onnx
import real_models
from numpy.typing import NDArray
from PIL import Image

from webnn_py.runtime.blocking import Environment, InferenceSession

LIKELY: Final = 0.3
SURE: Final = 0.5
UPSIDE_DOWN: Final = 0.9
HEIGHT: Final = 48
WIDTH_STEP: Final = 320
"""Lines are read at a multiple of this width, so that few graphs are made."""
MARGIN: Final = 1.6
"""The model marks the core of a line: so much of its area by its circumference is missing on each side."""


class Line(NamedTuple):
    """A line of text, where it stands in pixels (left, top, right, bottom), and how sure its letters are."""

    text: str
    score: float
    box: tuple[int, int, int, int]


class Reader:
    """The three models; ``with`` the environment they are made in."""

    def __init__(self, env: Environment) -> None:
        self._detection = env.create_session(real_models.get("text_detection"))
        self._direction = env.create_session(real_models.get("text_direction"))
        path = real_models.get("text_recognition")
        self._recognition = env.create_session(path)
        self._letters = ["", *letters_of(path), " "]

    def read(self, picture: Image.Image) -> list[Line]:
        """The lines of a picture, from top to bottom."""
        boxes = sorted(find_boxes(*self._text_map(picture)), key=lambda box: box[1])
        return [Line(*self._read_line(picture.crop(box)), box) for box in boxes]

    def _text_map(self, picture: Image.Image) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """How likely it is that a point belongs to text, and the pixels of the picture to a point (across, down)."""
        size = np.array(picture.size)
        wanted = np.maximum(32, (size * min(1, 960 / size.max()) / 32).round() * 32).astype(int)
        points = tensor_of(picture.resize((int(wanted[0]), int(wanted[1]))))
        return only(self._detection, points)[0, 0], size / wanted

    def _read_line(self, line: Image.Image) -> tuple[str, float]:
        _, head_down = only(self._direction, tensor_of(fitted(line, 192)))[0]
        if head_down > UPSIDE_DOWN:
            line = line.transpose(Image.Transpose.ROTATE_180)
        width = -(-HEIGHT * line.width // line.height // WIDTH_STEP) * WIDTH_STEP
        return letters_in(only(self._recognition, tensor_of(fitted(line, width)))[0], self._letters)


def only(session: InferenceSession, x: NDArray[np.float32]) -> NDArray[Any]:
    """The output of a model of one input and one output."""
    (result,) = session.run({session.input_names[0]: x}).values()
    return result.data


def tensor_of(picture: Image.Image) -> NDArray[np.float32]:
    """Blue, green and red from −1 to 1, in planes."""
    points = np.asarray(picture.convert("RGB"), np.float32)[..., ::-1] / 127.5 - 1
    return np.ascontiguousarray(points.transpose(2, 0, 1)[None])


def fitted(line: Image.Image, width: int) -> Image.Image:
    """A line, or as much of it as there is room for, at the left of a grey picture of the height that models want."""
    picture = Image.new("RGB", (width, HEIGHT), (128, 128, 128))
    picture.paste(line.resize((max(1, round(line.width * HEIGHT / line.height)), HEIGHT)))
    return picture


def find_boxes(likely: NDArray[np.float32], scale: NDArray[np.float64]) -> Iterator[tuple[int, int, int, int]]:
    """The pixels (left, top, right, bottom) that the lines of a map take."""
    labels = labelled(likely > LIKELY)
    for label in np.unique(labels[labels >= 0]):
        down, across = np.nonzero(labels == label)
        first, last = np.array([across.min(), down.min()]), np.array([across.max(), down.max()]) + 1
        width, height = last - first
        if min(width, height) < 3 or likely[down, across].mean() < SURE:
            continue
        margin = MARGIN * width * height / (2 * (width + height))
        left, top = np.maximum(0, (first - margin) * scale)
        right, bottom = np.minimum(np.array(likely.shape[::-1]), last + margin) * scale
        yield int(left), int(top), int(right), int(bottom)


def labelled(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each point of a mask the least number among those that hang together with it; −1 outside."""
    outside = mask.size
    labels = np.where(mask, np.arange(mask.size).reshape(mask.shape), outside)
    while True:
        around = np.pad(labels, 1, constant_values=outside)
        least = np.minimum.reduce([around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:], labels])
        least = np.where(mask, np.append(least, outside)[least], outside)  # what the least neighbour has found out
        if np.array_equal(least, labels):
            return np.where(mask, labels, -1)
        labels = least


def letters_in(scores: NDArray[np.float32], letters: Sequence[str]) -> tuple[str, float]:
    """The text of scores [places, letters], and their mean: letter 0 is none, and a letter may take several places."""
    best = scores.argmax(1)
    places = np.flatnonzero((best != 0) & (best != np.append(-1, best[:-1])))
    return "".join(letters[best[place]] for place in places), float(
        scores.max(1)[places].mean()
    ) if places.size else 0.0


def letters_of(path: Path) -> list[str]:
    """The letters that a model knows, by the metadata of its file."""
    (known,) = [item.value for item in onnx.load(path).metadata_props if item.key == "character"]
    return str(known).split("\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read a picture."""
    parser = argparse.ArgumentParser(description="Read the text of a picture.")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--backend")
    given = parser.parse_args(arguments)
    with Environment(given.backend) as env, Image.open(given.picture) as picture:
        for line in Reader(env).read(picture):
            print(f"{line.score:.2f}  {line.box}  {line.text}")


if __name__ == "__main__":
    real_models.run(main)
