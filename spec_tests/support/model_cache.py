"""The layout of a Hugging Face cache: files under the names of their digests, and links to them in snapshots."""

from hashlib import sha256
from pathlib import Path

import onnx


def cached(folder: Path, cache: Path, repository: str = "models--org--name") -> Path:
    """Move the files of a folder into a cache, as ``snapshot_download()`` leaves them; return the snapshot."""
    home = cache / repository
    snapshot = home / "snapshots" / "0123456789abcdef"
    blobs = home / "blobs"
    blobs.mkdir(parents=True)
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        link = snapshot / path.relative_to(folder)
        link.parent.mkdir(parents=True, exist_ok=True)
        blob = blobs / sha256(path.read_bytes()).hexdigest()
        path.rename(blob)
        link.symlink_to(Path(*[".."] * (len(link.relative_to(home).parts) - 1), "blobs", blob.name))
    return snapshot


def with_external_weights(path: Path, location: str) -> None:
    """Put the weights of a model's file into another file."""
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location=location, size_threshold=0)
