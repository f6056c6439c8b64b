"""What a file is that is no ONNX model, or no longer a whole one, told by its first bytes and its outer fields."""

from __future__ import annotations

import re
from typing import Final

LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"

_LFS_SIZE: Final = re.compile(rb"^size (\d{1,20})$", re.MULTILINE)

_PAGES: Final = (b"<!doctype html", b"<html", b"<?xml", b"<head", b"<body")

_MARKS: Final[tuple[tuple[int, bytes, str], ...]] = (
    (4, b"ORTM", "an .ort file, onnxruntime's own format; give the .onnx file that it was made from"),
    (4, b"TFL3", "a TensorFlow Lite model; convert it to ONNX (tf2onnx)"),
    (0, b"GGUF", "a GGUF file; only ONNX models can be read"),
    (0, b"\x89HDF", "an HDF5 file, as Keras writes them; convert the model to ONNX (tf2onnx)"),
    (0, b"PK\x03\x04", "a zip archive; unpack it, or, if PyTorch wrote it, export the model by torch.onnx.export()"),
    (0, b"\x1f\x8b", "compressed by gzip; decompress it"),
    (0, b"\xfd7zXZ\x00", "compressed by xz; decompress it"),
    (0, b"(\xb5/\xfd", "compressed by zstd; decompress it"),
    (0, b"BZh", "compressed by bzip2; decompress it"),
    (0, b"\x80\x02", "a pickle; export the model by torch.onnx.export()"),
    (0, b"\x93NUMPY", "an array of numpy (.npy)"),
    (0, b"\x89PNG", "a picture (PNG)"),
    (0, b"\xff\xd8\xff", "a picture (JPEG)"),
    (0, b"\x7fELF", "a program"),
)
"""Where files of other kinds have which bytes, and what they are."""

_MODEL_FIELDS: Final = frozenset({*range(1, 10), 14, 20, 25, 26})
"""The numbers of the fields of a ModelProto."""

_VARINT, _EIGHT, _DELIMITED, _FOUR = 0, 1, 2, 5
"""Wire types of Protocol Buffers."""


def kind_of(data: bytes) -> str | None:
    """Return what a file is that begins so, and what to do about it; None where nothing is known.

    Args:
        data: the contents of the file, or its first few hundred bytes.
    """
    if not data:
        return "empty; download or copy it again"
    if data.startswith(LFS_POINTER):
        size = _LFS_SIZE.search(data[:1024])
        stands = f" to a file of {int(size[1]):,} bytes" if size else ""
        return f"a Git LFS pointer{stands}, not the file itself; fetch it by `git lfs pull`"
    begin = data[:256].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if begin.startswith(_PAGES):
        return "a web page (HTML); download the file itself, not the page that shows it"
    for place, mark, what in _MARKS:
        if data[place : place + len(mark)] == mark:
            return what
    if begin.startswith((b"{", b"[")):
        return "JSON; only ONNX models can be read"
    return None


def missing_bytes(data: bytes) -> tuple[int, int] | None:
    """Return how many bytes a model needs that is cut, and how many there are; None where it is not cut inside a field.

    Args:
        data: the contents of the file.
    """
    at, fields = 0, 0
    while at < len(data):
        tag, at = _number(data, at)
        if tag >> 3 not in _MODEL_FIELDS:
            return None
        kind = tag & 7
        if kind == _DELIMITED:
            length, at = _number(data, at)
            at += length
        elif kind == _VARINT:
            _, at = _number(data, at)
        elif kind in (_EIGHT, _FOUR):
            at += 8 if kind == _EIGHT else 4
        else:
            return None
        fields += 1
    return (at, len(data)) if at > len(data) and fields > 1 else None


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and where the next field begins: behind the end for one that is cut."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            return number, len(data) + 1
        number |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return number, at
    return number, at
