"""External data: tensors whose data are in files next to the model's, read and written.

What is read lies inside the folders that are the model's own and is as long as the shape says, or is not read at all.
"""

import stat
from collections.abc import Iterable, Sequence
from os.path import lexists
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final, Self

import attrs
from onnx import ModelProto, TensorProto

from webnn_py.core.operators.rules import Refused
from webnn_py.onnx_export.shape_inputs import shape_inputs
from webnn_py.onnx_models.limits import Expenses, ModelLimits
from webnn_py.onnx_models.problems import InvalidModelError, Problem, UnsupportedModelError, worded
from webnn_py.onnx_models.reading.contents import initializers_of, nodes_of
from webnn_py.onnx_models.reading.file_kinds import LFS_POINTER, kind_of
from webnn_py.onnx_models.reading.tensors import data_length
from webnn_py.regular_files import open_regular

LONGEST_NUMBER: Final = 20

SMALLEST_BESIDE: Final = 1024
"""Data of fewer bytes always stand in the model's own file."""

ALIGNMENT: Final = 4096
"""The alignment of each tensor's data in bytes: a page, so that they can be mapped into memory."""


@attrs.frozen
class ModelFolders:
    """The folders of a model's file: that of its path and, where this is a link, that of the link's target.

    Attributes:
        searched: where data are looked for, in this order; links resolved.
        own: what these may be below of, and links may lead to.
    """

    searched: tuple[Path, ...]
    own: tuple[Path, ...]

    @classmethod
    def from_path(cls, path: Path) -> Self:
        """Return the folders of a model's file.

        In a cache of Hugging Face's, ``snapshots/<revision>`` has links to ``blobs``; the folder of both is the model's
        own.
        """
        folder = path.parent.resolve()
        if not path.is_symlink():
            return cls((folder,), (folder,))
        target = path.resolve().parent
        is_cached = target.name == "blobs" and folder.is_relative_to(target.parent / "snapshots")
        return cls((folder, target), (folder, target.parent if is_cached else target))

    def has(self, path: Path) -> bool:
        """Return whether a file, links resolved, is the model's own."""
        return any(path.is_relative_to(folder) for folder in self.own)


def is_external(tensor: TensorProto) -> bool:
    """Return whether a tensor's data are in another file."""
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def read_external_data(tensors: Iterable[TensorProto], model: Path, own_size: int, limits: ModelLimits) -> int:
    """Put data of other files into the tensors that they belong to.

    Args:
        tensors: all with data in other files.
        model: the model's file; the data must be in its folder.
        own_size: of the model's file, in bytes.
        limits: what the model may cost.

    Returns:
        The size of the model's file and of those others together.

    Raises:
        InvalidModelError: a place is outside of :class:`ModelFolders`, or no such data are there.
        UnsupportedModelError: the tensors are longer than the limits allow.
        OSError: a file cannot be read.
    """
    folders = ModelFolders.from_path(model)
    sizes: dict[Path, int] = {}
    external = list(tensors)
    places = [_place(tensor, folders, sizes) for tensor in external]
    size = own_size + sum(sizes.values())
    expenses = Expenses(limits, size)
    for tensor, (_, _, length) in zip(external, places, strict=True):
        try:
            expenses.add_bytes(length)
        except Refused as refused:
            raise UnsupportedModelError([Problem(f"tensor {worded(tensor.name)}", str(refused))]) from None
    for tensor, (path, offset, length) in zip(external, places, strict=True):
        with open_regular(path) as file:
            file.seek(offset)
            tensor.raw_data = file.read(length)
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]
    return size


def write_external_data(model: ModelProto, path: Path, location: str) -> None:
    """Write the data of the larger of a model's initializers to a file, and say in the model where they are.

    Args:
        model: the model. Data in typed fields stay, and those on which shapes depend.
        path: of the file.
        location: where the model is to find it, from its own folder on.

    Raises:
        OSError: the file cannot be written.
    """
    stay = {name for node in nodes_of(model) for name in shape_inputs(node.op_type, node.input)}
    with path.open("wb") as file:
        for tensor in initializers_of(model):
            if len(tensor.raw_data) < SMALLEST_BESIDE or tensor.name in stay:
                continue
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
            place = {"location": location, "offset": str(file.tell()), "length": str(len(tensor.raw_data))}
            file.write(tensor.raw_data)
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in place.items():
                tensor.external_data.add(key=key, value=value)


def _place(tensor: TensorProto, folders: ModelFolders, sizes: dict[Path, int]) -> tuple[Path, int, int]:
    """Return the file of a tensor's data, links resolved, where they begin in it, and how many bytes they are."""
    subject = f"tensor {worded(tensor.name)}"
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    path = _inside(subject, location, folders)
    file = worded(location)
    if path not in sizes:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InvalidModelError(f"{subject} has its data in {file}, which is no regular file")
        sizes[path] = status.st_size
        with open_regular(path) as opened:
            head = opened.read(1024)
        if head.startswith(LFS_POINTER):
            raise InvalidModelError(f"{subject} has its data in {file}, which is {kind_of(head)}")
    offset = _number(subject, "offset", entries.get("offset", "0"))
    needed = data_length(tensor)
    length = _number(subject, "length", entries["length"]) if "length" in entries else sizes[path] - offset
    if length != needed:
        raise InvalidModelError(
            f"{subject} has {length:,} bytes of data in {file}; its shape {list(tensor.dims)} needs {needed:,}"
        )
    if offset + length > sizes[path]:
        raise InvalidModelError(
            f"{subject} has its data at {offset:,} to {offset + length:,} of {file}, which has "
            f"{sizes[path]:,} bytes and may be cut"
        )
    return path, offset, length


def _inside(subject: str, location: str, folders: ModelFolders) -> Path:
    """Return the file at a location inside the folders, in any system's notation, links resolved."""
    posix, windows = PurePosixPath(location), PureWindowsPath(location)
    if not location or "\0" in location:
        raise InvalidModelError(f"{subject} has its data in another file, {worded(location)}, which is no name of one")
    if posix.is_absolute() or windows.anchor or ".." in {*posix.parts, *windows.parts}:
        raise InvalidModelError(
            f"{subject} has its data in {worded(location)}; it must be a path inside the model's folder"
        )
    folder = next((each for each in folders.searched if lexists(each / location)), folders.searched[0])
    try:
        path = (folder / location).resolve(strict=True)
    except RuntimeError as error:
        raise InvalidModelError(f"{subject} has its data in {worded(location)}: {error}") from error
    if not folders.has(path):
        link = next(each for each in _prefixes(posix) if not folders.has((folder / each).resolve()))
        by = "" if link == posix else f", by {worded(str(link))}"
        raise InvalidModelError(
            f"{subject} has its data in {worded(location)}{by}, a link that leads out of the model's folder, to "
            f"{worded(str((folder / link).resolve()))}; put the file itself there"
        )
    return path


def _prefixes(path: PurePosixPath) -> Sequence[PurePosixPath]:
    """Return the path itself, and all above it, the highest first."""
    return [*reversed(path.parents), path]


def _number(subject: str, name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        raise InvalidModelError(
            f"{subject}: the {name} of its data is {worded(text)}; it must be an integer, at least 0"
        )
    return int(text)
