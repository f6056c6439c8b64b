"""Data for every input: arrays of files, pictures, or generated numbers."""

import argparse
import math
import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import numpy as np

from webnn_py.command import pictures
from webnn_py.command.declared import (
    Array,
    DeclaredInput,
    Shapes,
    array_names,
    checked,
    loaded,
    named,
    parsed_number,
    worded_shape,
)
from webnn_py.command.failures import BadInputError
from webnn_py.command.layout import in_bytes
from webnn_py.core.message_text import shown

RANDOM: Final = "random"

ARRAYS: Final = frozenset({".npy", ".npz"})
"""The suffixes of files of arrays."""


@attrs.frozen
class GivenInput:
    """Data for one input.

    Attributes:
        array: of the input's type; booleans are ``bool``.
        source: where it comes from, in words.
    """

    array: Array
    source: str


def make_feeds(
    inputs: Mapping[str, DeclaredInput], shapes: Shapes, options: argparse.Namespace
) -> dict[str, GivenInput]:
    """Return the data for every input, in the model's order.

    Args:
        inputs: the inputs that are not frozen.
        shapes: what is known of their shapes; learns those of files.
        options: of the command line.

    Raises:
        BadInputError: a source does not fit its input, or a shape is open that nothing says.
    """
    sources = _sources(options.input, inputs)
    given: dict[str, GivenInput] = {}
    for name, source in sources.items():
        if _suffix(source) in ARRAYS:
            array = loaded(Path(source), name)
            shapes.bind(name, array.shape, source)
            given[name] = GivenInput(checked(inputs[name], array, source), source)
    # After arrays, which may say sizes that the others need.
    for name, source in sources.items():
        if _suffix(source) in pictures.SUFFIXES:
            array, description = pictures.read_picture(Path(source), inputs[name], shapes.of(name), options)
            shapes.bind(name, array.shape, source)
            given[name] = GivenInput(checked(inputs[name], array, source), description)
    made = [name for name in inputs if name not in given]
    fixed = shapes.all_fixed(made)
    _check_fits_memory({name: inputs[name] for name in made}, fixed)
    generator = np.random.default_rng(options.seed)
    for name in made:
        given[name] = _made_up(inputs[name], sources.get(name, RANDOM), fixed[name], generator)
    return {name: given[name] for name in inputs}


def _sources(texts: Iterable[str], inputs: Mapping[str, DeclaredInput]) -> dict[str, str]:
    """Return the source of each input that was named."""
    with_names = [text for given in texts for text in _with_names(given, inputs)]
    sources = named("--input", with_names, inputs, "the model's inputs are")
    for name, source in sources.items():
        _check_kind(name, source)
    return sources


def _with_names(text: str, inputs: Mapping[str, DeclaredInput]) -> list[str]:
    """Return a value of ``--input`` that has no name with that of the only input, or of each array of an .npz file."""
    if any(text.startswith(f"{name}=") for name in inputs) or ("=" in text and not Path(text).exists()):
        return [text]
    if _suffix(text) == ".npz":
        return [f"{name}={text}" for name in array_names(Path(text))]
    if len(inputs) != 1:
        raise BadInputError(
            f"--input {text}: say for which input, NAME={text}; there are {', '.join(inputs) or 'none'}"
        )
    return [f"{next(iter(inputs))}={text}"]


def _check_kind(name: str, source: str) -> None:
    if _suffix(source) in ARRAYS | pictures.SUFFIXES or source.partition(":")[0] == RANDOM:
        return
    try:
        parsed_number(source)
    except ValueError:
        other = f"; write what {source} has by numpy.save()" if Path(source).is_file() else ""
        raise BadInputError(
            f"--input {name}={source}: it must be a file (.npy, .npz or a picture), random, random:LOW,HIGH or a number"
            f"{other}"
        ) from None


def _suffix(source: str) -> str:
    return Path(source).suffix.lower()


def _check_fits_memory(inputs: Mapping[str, DeclaredInput], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse inputs that are longer than the machine's memory: the system may end a process that fills it."""
    if not hasattr(os, "sysconf"):
        return
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    lengths = {name: math.prod(shapes[name]) * item.dtype.itemsize for name, item in inputs.items()}
    if sum(lengths.values()) > there:
        name = max(lengths, key=lambda name: lengths[name])
        raise BadInputError(
            f"the inputs take {in_bytes(sum(lengths.values()))}, {shown(name)} of shape {worded_shape(shapes[name])} "
            f"most of it; this machine has {in_bytes(there)}: give smaller sizes by --shape"
        )


# --- numbers made up ------------------------------------------------------------------------------------------


def _made_up(
    declared: DeclaredInput, source: str, shape: tuple[int, ...], generator: np.random.Generator
) -> GivenInput:
    kind, _, bounds = source.partition(":")
    if kind == RANDOM:
        return _random(declared, bounds, shape, generator)
    what = f"--input {declared.name}={source}"
    return GivenInput(checked(declared, np.full(shape, parsed_number(source)), what), source)


def _random(declared: DeclaredInput, bounds: str, shape: tuple[int, ...], generator: np.random.Generator) -> GivenInput:
    """Return numbers from 0 to 1, integers 0 or 1: these suit indices and masks, too."""
    what = f"--input {declared.name}=random:{bounds}"
    try:
        low, high = map(float, bounds.split(",")) if bounds else (0.0, 1.0)
    except ValueError:
        low, high = 1.0, 0.0
    if not low <= high:
        raise BadInputError(f"{what}: it must be random:LOW,HIGH")
    if declared.dtype.kind == "f":
        draw = partial(generator.uniform, low, high)
    elif low.is_integer() and high.is_integer():
        draw = partial(generator.integers, int(low), int(high), endpoint=True)
    else:
        raise BadInputError(f"{what}: the bounds must be whole numbers, as {declared.name!r} is {declared.type_name}")
    try:
        array = checked(declared, np.asarray(draw(size=shape)), what)
    except (OverflowError, ValueError) as error:
        raise BadInputError(f"{what}: {error}") from error
    return GivenInput(array, f"random, {low:g} to {high:g}")
