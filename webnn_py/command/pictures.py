"""A picture as a model's input: resized, cropped and normalized by Pillow, of the extra ``cli``, and numpy."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from webnn_py.command.declared import Array, DeclaredInput
from webnn_py.command.failures import BadInputError, needed
from webnn_py.command.loading import opened

SUFFIXES: Final = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp"})

MODES: Final[Mapping[int | str, str]] = {3: "RGB", 1: "L", 4: "RGBA"}
"""Pillow's modes by the number of channels, the likeliest one first."""


def read_picture(
    path: Path, declared: DeclaredInput, shape: Sequence[int | str] | None, options: argparse.Namespace
) -> tuple[Array, str]:
    """Return a picture for an input, and a description of what was done to it.

    Args:
        path: the file.
        declared: the input.
        shape: what is known of its shape.
        options: of the command line.

    Raises:
        BadInputError: the file is no picture, or the input is none of a picture's.
        CommandFailedError: Pillow is not installed.
    """
    if shape is None or len(shape) not in (3, 4):
        way_out = ": give its --shape" if shape is None else ""
        raise BadInputError(f"input {declared.name!r} is {declared}; a picture needs three or four dimensions{way_out}")
    places = [place for channels in MODES for place in (-3, -1) if shape[place] == channels]
    if not places:
        raise BadInputError(
            f"input {declared.name!r} is {declared}; a picture needs 1, 3 or 4 channels: give its --shape"
        )
    channels = places[0]
    height, width = shape[-2:] if channels == -3 else shape[-3:-1]
    picture, own = _read(path, MODES[shape[channels]], (width, height))
    array, scaled = _normalized(np.atleast_3d(np.asarray(picture)), declared, options)
    if channels == -3:
        array = array.transpose(2, 0, 1)
    if len(shape) == 4:
        array = np.broadcast_to(array, (shape[0] if isinstance(shape[0], int) else 1, *array.shape))
    fitted = "" if picture.size == own else ", resized and cropped to {} × {}".format(*picture.size)
    description = f"{path}, {own[0]} × {own[1]}{fitted}, {picture.mode.lower()}, {scaled}"
    return np.ascontiguousarray(array), description


def _read(path: Path, mode: str, size: tuple[int | str, int | str]) -> tuple[Any, tuple[int, int]]:
    """Return a picture in a mode of Pillow's and of a size, where that is given; and its own size, the right way up."""
    operations, pillow = needed("PIL.ImageOps", "reading pictures"), needed("PIL.Image", "reading pictures")
    with opened(path, "a picture and may be cut") as file:
        try:
            picture = operations.exif_transpose(pillow.open(file)).convert(mode)
        except pillow.UnidentifiedImageError as error:
            raise BadInputError(f"{path} is no picture that can be read") from error
    wanted = tuple(given if isinstance(given, int) else own for given, own in zip(size, picture.size, strict=True))
    return operations.fit(picture, wanted, pillow.Resampling.BILINEAR), picture.size


def _normalized(pixels: Array, declared: DeclaredInput, options: argparse.Namespace) -> tuple[Array, str]:
    """Return the pixels as numbers of the input's type, and these in words."""
    is_plain = (options.scale, options.mean, options.std) == (None, None, None)
    if declared.dtype.kind != "f":
        if not is_plain:
            raise BadInputError(
                f"input {declared.name!r} is {declared}; its pixels can only stay as they are, 0 to 255"
            )
        return pixels, "0 to 255"
    scale = 1 / 255 if options.scale is None else options.scale
    mean, std = options.mean or (0.0,), options.std or (1.0,)
    for name, numbers in (("mean", mean), ("std", std)):
        if len(numbers) not in (1, pixels.shape[-1]):
            raise BadInputError(f"--{name} has {len(numbers)} numbers; input {declared.name!r} is {declared}")
    if 0.0 in std:
        raise BadInputError("--std has a 0; pixels are divided by it")
    array = ((pixels * scale - np.array(mean)) / np.array(std)).astype(declared.dtype)
    return array, "0 to 1" if is_plain else "normalized"
