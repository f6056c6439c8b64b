"""Files that the command writes: refused before the work, and written whole or not at all."""

import errno
import io
import os
import zipfile
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from spec_tests.support.onnx_programs import program

WRITING = {
    "out.npz": ["run", "MODEL", "--shape", "rows=1", "--backend", "numpy", "--save-outputs"],
    "out.svg": ["info", "MODEL", "--graph"],
    "out.onnx": ["convert", "MODEL"],
}


@pytest.fixture(params=WRITING)
def written(request, command, doubled, tmp_path):
    """Call a command that writes this file."""

    def call():
        words = (doubled if word == "MODEL" else word for word in WRITING[request.param])
        return command(*words, tmp_path / request.param)

    return call


@pytest.fixture
def replace_by(monkeypatch):
    """A function that sets what gives a finished file its name."""
    return lambda function: monkeypatch.setattr(Path, "replace", function)


def test_a_folder_that_may_not_be_written_in_is_told_before_the_work(written, tmp_path, monkeypatch, run_by):
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever tests may be root, who may write anywhere
    run_by(None)
    written().assert_refused(f" cannot be written: nothing may be written in {tmp_path}\n")


@pytest.mark.parametrize(
    ("error", "status"), [(OSError(errno.ENOSPC, "No space left on device"), 1), (KeyboardInterrupt(), 130)]
)
def test_nothing_is_left_of_a_file_that_is_not_written_to_its_end(error, status, written, tmp_path, replace_by):
    def fail(self, target):
        assert self.exists()
        assert not target.exists()
        raise error

    replace_by(fail)
    before = {*tmp_path.iterdir()}
    ended = written()
    assert {*tmp_path.iterdir()} == before
    assert ended.status == status
    assert ("No space left" in ended.err) == (status == 1)


@pytest.mark.parametrize("step", ["data", "model"])
@pytest.mark.parametrize(
    ("error", "status"), [(OSError(errno.ENOSPC, "No space left on device"), 1), (KeyboardInterrupt(), 130)]
)
def test_neither_of_two_files_is_left_when_the_other_is_not_written(
    error, status, step, command, picked, *, tmp_path, replace_by, largest_file
):
    real = Path.replace

    def fail(self, target):
        assert {path.name for path in (data, out) if path.with_name(f"{path.name}.part").exists()} >= {out.name}
        if target == {"data": data, "model": out}[step]:
            raise error
        return real(self, target)

    out, data = tmp_path / "out.onnx", tmp_path / "out.onnx.data"
    before = {*tmp_path.iterdir()}
    largest_file(1)
    replace_by(fail)
    assert command("convert", picked, out).status == status
    assert {*tmp_path.iterdir()} == before


def test_two_files_that_are_there_stay_until_the_new_ones_are_written(
    command, picked, tmp_path, monkeypatch, largest_file
):
    def fail(model, path, location):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    out, data = tmp_path / "out.onnx", tmp_path / "out.onnx.data"
    out.write_bytes(b"before")
    data.write_bytes(b"before")
    largest_file(1)
    monkeypatch.setattr("webnn_py.onnx_models.reading.external_data.write_external_data", fail)
    assert command("convert", picked, out, "--overwrite").status == 130
    assert (out.read_bytes(), data.read_bytes()) == (b"before", b"before")
    assert len([*tmp_path.glob("out.*")]) == 2


@pytest.mark.parametrize("operator", ["Split", "SplitToSequence"])
def test_sizes_of_many_parts_are_not_written_beside_the_model(operator, command, model, tmp_path, largest_file):
    """Onnxruntime infers shapes before it reads what lies beside the file."""
    rows = np.arange(1200, dtype=np.float32).reshape(600, 2)
    parts, back = (
        ([f"part{row}" for row in range(600)], "Concat") if operator == "Split" else (["all"], "ConcatFromSequence")
    )
    nodes = [
        (operator, ["x", "sizes"], parts, {"axis": 0}),
        (back, parts, ["z"], {"axis": 0}),
        ("Add", ["z", "w"], ["y"], {}),
    ]
    kind = ("float32", [600, 2])
    weights = {"sizes": np.ones(600, np.int64), "w": rows}
    path, out = model(program(nodes, {"x": kind}, {"y": kind}, weights)), tmp_path / "out.onnx"
    largest_file(1)
    assert command("convert", path, out).status == 0
    assert (tmp_path / "out.onnx.data").stat().st_size == rows.nbytes
    session = onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(["y"], {"x": rows})[0], rows + rows)


def test_a_file_that_is_there_stays_until_the_new_one_is_whole(command, doubled, tmp_path):
    out = tmp_path / "out.npz"
    out.write_bytes(b"before")
    assert command("run", doubled, "--shape", "rows=1", "--backend", "numpy", "--save-outputs", out).status == 0
    assert zipfile.ZipFile(out).namelist() == ["y.npy"]


def test_a_full_disk_behind_the_output_is_told(command, doubled):
    class Full(io.TextIOWrapper):
        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

        def fileno(self):
            raise OSError

    with redirect_stdout(Full(io.BytesIO())):
        ended = command("devices")
    assert ended.status == 1
    assert ended.err == "webnn-py devices: the output cannot be written: No space left on device\n"
