"""Inputs of models: pictures, noise, words; the same in every run."""

import ast
import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

TYPES = {
    "tensor(bool)": np.bool_,
    "tensor(double)": np.float64,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
}
FACE = (
    (0, -0.08, 0.36, 0.42, (60, 40, 30)),
    (0, 0.02, 0.30, 0.40, (224, 180, 150)),
    *((x, -0.13, 0.07, 0.012, (60, 40, 30)) for x in (-0.12, 0.12)),
    *((x, -0.06, 0.055, 0.03, (250, 250, 250)) for x in (-0.12, 0.12)),
    *((x, -0.06, 0.025, 0.028, (40, 30, 30)) for x in (-0.12, 0.12)),
    (0, 0.06, 0.03, 0.07, (205, 155, 130)),
    (0, 0.12, 0.05, 0.025, (190, 140, 115)),
    (0, 0.23, 0.1, 0.03, (170, 70, 70)),
)
"""Ellipses: middle, half axes and colour, of a face of the height 1: hair, skin, brows, eyes, nose, mouth."""
WORDS = ("WebNN 2026", "numpy", "graph 17", "trio", "42.5 ms")


def content(text, element_type):
    """An array of what a text of the list says, and whether it is known while building.

    Args:
        text: a kind, with what belongs to it, and the shape.
        element_type: onnxruntime's name of the input's type.
    """
    data_type = np.dtype(TYPES[element_type])
    kind, *rest = text.split()
    if kind in ("known", "value"):
        return np.array(ast.literal_eval(" ".join(rest)), data_type), kind == "known"
    shape = [int(size) for size in rest]
    return np.asarray(KINDS[kind](shape)).astype(data_type, order="C"), False


def noise(shape):
    """Return normal noise, for sounds and states."""
    return np.random.default_rng(7).standard_normal(shape) * 0.5


def picture(shape):
    """Words in black on white, from -1 to 1: channels first, or last where there are one or three."""
    last = shape[-1] in (1, 3)
    batch, height, width, channels = shape if last else (shape[0], *shape[2:], shape[1])
    image = Image.new("L", (width, height), 255)
    draw = ImageDraw.Draw(image)
    size = max(10, min(height * 2 // 3, 40))
    for index, top in enumerate(range(height % (size * 2) // 4, height - size, size * 2)):
        draw.text((width // 20, top), WORDS[index % len(WORDS)], fill=0, font=ImageFont.load_default(size))
    pixels = np.asarray(image, np.float32) / 127.5 - 1
    stacked = np.broadcast_to(pixels[:, :, np.newaxis], (batch, height, width, channels))
    return stacked if last else np.moveaxis(stacked, -1, 1)


def face(shape):
    """Three faces of different sizes: blue, green, red, from 0 to 255."""
    batch, _, height, width = shape
    image = Image.new("RGB", (width, height), (90, 120, 150))
    draw = ImageDraw.Draw(image)
    side = min(height, width)
    for x, y, size in ((0.6, 0.5, 0.75), (0.12, 0.2, 0.2), (0.12, 0.75, 0.08)):
        _draw_face(draw, (x * width, y * height), size * side)
    pixels = np.asarray(image.filter(ImageFilter.GaussianBlur(side / 320)), np.float32)
    return np.broadcast_to(np.moveaxis(pixels, -1, 0)[::-1], (batch, 3, height, width))


def _draw_face(draw, middle, size):
    for x, y, across, down, colour in FACE:
        corners = [(x - across, y - down), (x + across, y + down)]
        draw.ellipse([(middle[0] + left * size, middle[1] + top * size) for left, top in corners], fill=colour)


def words(shape):
    """Numbers that every vocabulary has."""
    return np.random.default_rng(7).integers(1, 8, shape)


def data(shape):
    """Bytes."""
    return np.random.default_rng(7).integers(0, 256, shape)


def positions(shape):
    """0, 1, 2 and so on, along the last axis."""
    return np.broadcast_to(np.arange(shape[-1]), shape)


def edges(shape):
    """Pairs of nodes of a graph: a ring."""
    first = np.arange(math.prod(shape) // 2)
    return np.stack([first, np.roll(first, 1)])


KINDS = {
    "bytes": data,
    "edges": edges,
    "face": face,
    "noise": noise,
    "ones": np.ones,
    "picture": picture,
    "positions": positions,
    "words": words,
    "zeros": np.zeros,
}
