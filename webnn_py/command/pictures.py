"""A picture as a model's input; needs Pillow, of the extra ``cli``."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

from webnn_py.command.declared import Array, DeclaredInput
from webnn_py.command.failures import BadInputError, needed
from webnn_py.command.loading import opened

SUFFIXES: Final = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp"})

CHANNELS: Final[Mapping[int, str]] = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's modes by the number of channels."""

LIKELY: Final = (3, 1, 4)
"""Numbers of channels, by how likely it is that a dimension of that size is the channels."""


FIT: Final = "crop"
"""How a picture is fitted where ``--fit`` does not say."""


@attrs.frozen
class Preprocessing:
    """Conversion of pixels, which are from 0 to 255: (pixel × scale − mean) ÷ std."""

    scale: float
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


NAMED: Final[Mapping[str, Preprocessing]] = {
    "0-1": Preprocessing(1 / 255),
    "signed": Preprocessing(1 / 127.5, (1.0,)),
    "imagenet": Preprocessing(1 / 255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "raw": Preprocessing(1.0),
}


@attrs.frozen
class PictureShape:
    """The position of a picture in an input.

    Attributes:
        batch: how often it is there; None where the input has no such dimension.
        channels: 1, 3 or 4.
        height: None where the picture decides.
        width: None where the picture decides.
        channels_last: whether the channels are the last dimension.
    """

    batch: int | None
    channels: int
    height: int | None
    width: int | None
    channels_last: bool


def read_picture(
    path: Path, declared: DeclaredInput, shape: Sequence[int | str] | None, options: argparse.Namespace
) -> tuple[Array, str]:
    """Return a picture for an input, and what was done to it.

    Args:
        path: the file.
        declared: the input.
        shape: what is known of its shape.
        options: of the command line.

    Raises:
        BadInputError: the file is no picture, or the input is none of a picture's.
        CommandFailedError: Pillow is not installed.
    """
    wanted = _shape_of(declared, shape, options.layout)
    picture = _opened(path, CHANNELS[wanted.channels])
    own = f"{picture.width} × {picture.height}"
    size = (wanted.width or picture.width, wanted.height or picture.height)
    fitted = _fitted(picture, size, options.fit or FIT)
    pixels = np.asarray(fitted).reshape(size[1], size[0], wanted.channels)
    if options.bgr and wanted.channels == 3:
        pixels = pixels[:, :, ::-1]
    name, array = _preprocessed(pixels, declared, options)
    if not wanted.channels_last:
        array = array.transpose(2, 0, 1)
    if wanted.batch is not None:
        array = np.broadcast_to(array, (wanted.batch, *array.shape))
    done = "" if (picture.width, picture.height) == size else f", {options.fit or FIT} to {size[0]} × {size[1]}"
    return np.ascontiguousarray(array), f"{path}, {own}{done}, {'bgr' if options.bgr else fitted.mode.lower()}, {name}"


def _shape_of(declared: DeclaredInput, shape: Sequence[int | str] | None, layout: str | None) -> PictureShape:
    """Return the axes of channels, height and width, by the sizes that are known."""
    if shape is None or len(shape) not in (3, 4):
        way_out = ": give its --shape" if shape is None else ""
        raise BadInputError(f"input {declared.name!r} is {declared}; a picture needs three or four dimensions{way_out}")
    first, second, third = shape[-3:]
    if layout is None:
        likely = [name for size in LIKELY for name, own in (("nchw", first), ("nhwc", third)) if own == size]
        if not likely:
            raise BadInputError(
                f"input {declared.name!r} is {declared}: which are the channels? Give its --shape, or --layout"
            )
        layout = likely[0]
    channels, height, width = (first, second, third) if layout == "nchw" else (third, first, second)
    if isinstance(channels, str):
        channels = 3
    if channels not in CHANNELS:
        raise BadInputError(f"input {declared.name!r} is {declared}; a picture has 1, 3 or 4 channels, not {channels}")
    batch = None if len(shape) == 3 else shape[0] if isinstance(shape[0], int) else 1
    return PictureShape(batch, channels, _known(height), _known(width), layout == "nhwc")


def _known(size: int | str) -> int | None:
    return size if isinstance(size, int) else None


def _opened(path: Path, mode: str) -> Any:
    """Return the picture the right way up, in a mode of Pillow's."""
    pillow = needed("PIL.Image", "reading pictures")
    operations = needed("PIL.ImageOps", "reading pictures")
    with opened(path, "a picture and may be cut") as file:
        try:
            return operations.exif_transpose(pillow.open(file)).convert(mode)
        except pillow.UnidentifiedImageError as error:
            raise BadInputError(f"{path} is no picture that can be read") from error


def _fitted(picture: Any, size: tuple[int, int], fit: str) -> Any:
    """Return the picture in another size: cut at two sides, stretched, or with black at two sides."""
    if picture.size == size:
        return picture
    pillow = needed("PIL.Image", "reading pictures")
    operations = needed("PIL.ImageOps", "reading pictures")
    smooth = pillow.Resampling.BILINEAR
    if fit == "stretch":
        return picture.resize(size, smooth)
    return (operations.fit if fit == "crop" else operations.pad)(picture, size, smooth)


def _preprocessed(
    pixels: Array, declared: DeclaredInput, options: argparse.Namespace
) -> tuple[str, np.ndarray[Any, Any]]:
    """Return the pixels as numbers of the input's type, and what that is called."""
    name = options.preprocess or ("0-1" if declared.dtype.kind == "f" else "raw")
    chosen = NAMED[name]
    given = {key: getattr(options, key) for key in ("scale", "mean", "std") if getattr(options, key) is not None}
    if given:
        chosen = attrs.evolve(chosen if options.preprocess else NAMED["raw"], **given)
        name = f"({chosen.scale:g} × pixel − {_listed(chosen.mean)}) ÷ {_listed(chosen.std)}"
    for key, numbers in (("mean", chosen.mean), ("std", chosen.std)):
        if len(numbers) not in (1, pixels.shape[-1]):
            raise BadInputError(
                f"the {key} has {len(numbers)} numbers; input {declared.name!r} has {pixels.shape[-1]} channels"
            )
    if 0.0 in chosen.std:
        raise BadInputError("--std has a 0; pixels are divided by it")
    if declared.dtype.kind != "f":
        if chosen != NAMED["raw"]:
            raise BadInputError(f"input {declared.name!r} is {declared}; its pixels can only stay as they are (raw)")
        return name, pixels
    array = (pixels * chosen.scale - np.array(chosen.mean)) / np.array(chosen.std)
    return name, array.astype(declared.dtype)


def _listed(numbers: Sequence[float]) -> str:
    return ",".join(f"{number:g}" for number in numbers)
