"""A saved graph's file: a header, then JSON, then bytes, sealed with the folder's secret.

::

    "WebNN-py"                      magic
    4 bytes, little-endian          the length of the label
    32 bytes                        the seal: keyed BLAKE2b of the label
    the label, JSON                 versions, device, key, the lengths and the digest of what follows
    the document, JSON              inputs, outputs, and the compiled graph
    the blobs                       each from a multiple of 64 bytes on, counted from the document's end

The label alone says what a file is, so a list of files reads no more of each. What a seal does not fit is not looked
at any further: kernels from a file run on the GPU without checks of their indices.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from hmac import compare_digest
from io import BufferedReader
from typing import Final

import attrs
import numpy as np

from webnn_py.devices.saved_code import Bytes, SavedCode, UnusableFileError
from webnn_py.saved_graphs.record import SavedGraph, as_json, from_json
from webnn_py.version import __version__

MAGIC: Final = b"WebNN-py"
FORMAT: Final = 3
DIGEST_BYTES: Final = 32
ALIGNMENT: Final = 64
LONGEST_LABEL: Final = 2**20

_START: Final = len(MAGIC) + 4 + DIGEST_BYTES


@attrs.frozen
class Label:
    """The kind of a file.

    Attributes:
        key: what the graph was saved under.
        device: what it was compiled for, in words that another device does not have.
        document_length: bytes of the document.
        blob_lengths: bytes of each blob.
        digest: of document and blobs.
        format: the version of the file's form.
        package: the version of this package.
        byte_order: that of the blobs' elements.
    """

    key: str
    device: str
    document_length: int
    blob_lengths: tuple[int, ...]
    digest: str
    format: int = FORMAT
    package: str = __version__
    byte_order: str = sys.byteorder

    def check(self, device: str) -> None:
        """Refuse what another package, another version of this one, or another device has written."""
        for name, wanted in (("format", FORMAT), ("package", __version__), ("byte_order", sys.byteorder)):
            if getattr(self, name) != wanted:
                raise UnusableFileError(
                    f"it was written by another version: {name} {getattr(self, name)}, not {wanted}"
                )
        if self.device != device:
            raise UnusableFileError("it was compiled for another device, or by another driver")

    @property
    def content_length(self) -> int:
        """Bytes of document and blobs."""
        *_, end = _offsets(self.document_length, self.blob_lengths)
        return end


def _offsets(document_length: int, blob_lengths: Sequence[int]) -> Iterator[int]:
    """Return the offset of each blob after the label, and that of the end of the file."""
    end = document_length
    for length in blob_lengths:
        begin = -(-end // ALIGNMENT) * ALIGNMENT
        yield begin
        end = begin + length
    yield end


def pack(graph: SavedGraph, key: str, device: str, secret: bytes) -> list[bytes | Bytes]:
    """Return the pieces of a file, one after the other."""
    document = json.dumps(
        {
            "inputs": [[name, *as_json(descriptor)] for name, descriptor in graph.inputs.items()],
            "outputs": [[name, *as_json(descriptor)] for name, descriptor in graph.outputs.items()],
            "operators": graph.operator_count,
            "form": graph.code.form,
            "code": graph.code.document,
        },
        separators=(",", ":"),
    ).encode()
    contents: list[bytes | Bytes] = [document]
    lengths = [blob.nbytes for blob in graph.code.blobs]
    end = len(document)
    for begin, blob in zip(_offsets(len(document), lengths), graph.code.blobs, strict=False):
        contents += [bytes(begin - end), blob]
        end = begin + blob.nbytes
    digest = blake2b(digest_size=DIGEST_BYTES)
    for piece in contents:
        digest.update(piece)
    label = Label(key, device, len(document), tuple(lengths), digest.hexdigest())
    text = json.dumps(attrs.asdict(label), separators=(",", ":")).encode()
    if len(text) > LONGEST_LABEL:
        raise UnusableFileError(f"the file's label has {len(text)} bytes; it must have at most {LONGEST_LABEL}")
    return [MAGIC, len(text).to_bytes(4, "little"), _seal(text, secret), text, *contents]


def _seal(text: bytes, secret: bytes) -> bytes:
    return blake2b(text, digest_size=DIGEST_BYTES, key=secret).digest()


def read_label(file: BufferedReader, secret: bytes) -> Label:
    """Return the kind of a file, and leave it at the start of its document.

    Raises:
        UnusableFileError: it is no saved graph, or none that was sealed with this secret.
    """
    start = file.read(_START)
    if len(start) != _START or not start.startswith(MAGIC):
        raise UnusableFileError("it is no saved graph")
    length = int.from_bytes(start[len(MAGIC) : len(MAGIC) + 4], "little")
    text = file.read(length) if length <= LONGEST_LABEL else b""
    if len(text) != length or not compare_digest(_seal(text, secret), start[-DIGEST_BYTES:]):
        raise UnusableFileError("its seal is not this folder's, or it is damaged")
    try:
        written = json.loads(text)
        return Label(**{**written, "blob_lengths": tuple(written["blob_lengths"])})
    except (TypeError, KeyError, ValueError) as error:  # sealed by a version whose labels differ
        raise UnusableFileError(f"its label is another version's: {error}") from None


def read_contents(file: BufferedReader, label: Label) -> SavedGraph:
    """Return the document after the label; its blobs are read-only views of one piece of memory.

    Raises:
        UnusableFileError: it is damaged.
    """
    *begins, end = _offsets(label.document_length, label.blob_lengths)
    view = np.empty(end, np.uint8).data  # numpy's memory, which is aligned for every data type
    done = 0
    while done < end and (count := file.readinto(view[done:])):
        done += count
    if done < end or file.read(1) or blake2b(view, digest_size=DIGEST_BYTES).hexdigest() != label.digest:
        raise UnusableFileError("it is damaged: its contents are not those that were written")
    contents = view.toreadonly()
    blobs = tuple(contents[begin : begin + length] for begin, length in zip(begins, label.blob_lengths, strict=True))
    written = json.loads(bytes(contents[: label.document_length]))
    return SavedGraph(
        {name: from_json(descriptor) for name, *descriptor in written["inputs"]},
        {name: from_json(descriptor) for name, *descriptor in written["outputs"]},
        written["operators"],
        SavedCode(written["form"], written["code"], blobs),
    )
