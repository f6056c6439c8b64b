"""Files that are cut, of another kind, or no files at all: each is named in one line, with what to do."""

import os

import numpy as np
import onnx
import pytest
from PIL import Image

from spec_tests.support.cells import cells
from spec_tests.support.onnx_programs import program
from webnn_py.onnx_models import InvalidModelError, OnnxModel

KIND = ("float32", [1, 64])
SMALL = program(
    [("MatMul", ["x", "w"], ["y"], {})],
    {"x": ("float32", [1, 4])},
    {"y": ("float32", [1, 4])},
    {"w": np.eye(4, dtype=np.float32)},
)
WHOLE = program([("MatMul", ["x", "w"], ["y"], {})], {"x": KIND}, {"y": KIND}, {"w": np.eye(64, dtype=np.float32)})
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345678\n"
MODELS = {
    "empty": (b"", "it is empty; download or copy it again"),
    "Git LFS": (
        POINTER,
        "it is a Git LFS pointer to a file of 12,345,678 bytes, not the file itself; fetch it by `git lfs pull`",
    ),
    "HTML": (b"\n<!DOCTYPE html><html><body>404</body></html>", "it is a web page (HTML); download the file itself"),
    "ORT": (b"\x20\0\0\0ORTM" + bytes(80), "it is an .ort file, onnxruntime's own format; give the .onnx file"),
    "TensorFlow Lite": (b"\x1c\0\0\0TFL3" + bytes(80), "it is a TensorFlow Lite model; convert it to ONNX"),
    "zip": (b"PK\x03\x04" + bytes(80), "it is a zip archive; unpack it"),
    "gzip": (b"\x1f\x8b\x08" + bytes(80), "it is compressed by gzip"),
    "JSON": (b'{"a": 1}', "it is JSON"),
    "PNG": (b"\x89PNG\r\n\x1a\n" + bytes(80), "it is a picture (PNG)"),
    "cut in its graph": (WHOLE[: len(WHOLE) // 2], " is cut: it has "),
    "cut at its end": (WHOLE[:-1], " is cut: it has "),
    "cut at its beginning": (WHOLE[:2], "no operator set or no outputs, and may be cut"),
    "zeros": (bytes(100), "cannot be read as an ONNX model"),
}


@cells("kind", MODELS)
def test_a_model_of_another_kind_is_named_with_what_to_do(kind, read_by, tmp_path):
    content, text = MODELS[kind]
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    ended = read_by(path)
    ended.assert_refused(text)
    assert str(path) in ended.err
    with pytest.raises(InvalidModelError, match=r"the .* bytes given"):
        OnnxModel.load(content)


def test_every_cut_of_a_model_is_told(tmp_path):
    path = tmp_path / "model.onnx"
    for length in range(len(SMALL)):
        path.write_bytes(SMALL[:length])
        with pytest.raises(InvalidModelError, match=r"cut|empty"):
            OnnxModel.load(path)


def test_data_beside_a_model_that_are_a_pointer_or_cut_are_told(command, tmp_path):
    path = tmp_path / "model.onnx"
    proto = onnx.load_model_from_string(WHOLE)
    onnx.save_model(proto, path, save_as_external_data=True, location="w.bin", size_threshold=1)
    data = (tmp_path / "w.bin").read_bytes()
    (tmp_path / "w.bin").write_bytes(POINTER)
    command("run", path).assert_refused("'w.bin', which is a Git LFS pointer")
    (tmp_path / "w.bin").write_bytes(data[:-1])
    command("run", path).assert_refused("of 'w.bin', which has 16,383 bytes and may be cut")


def _png(path):
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 40, 3), np.uint8)).save(path)


WRITERS = {
    "x.png": _png,
    "x.jpg": _png,
    "x.gif": _png,
    "x.bmp": _png,
    "x.webp": _png,
    "x.npy": lambda path: np.save(path, np.ones((1, 3, 40, 40), np.float32)),
    "x.npz": lambda path: np.savez(path, x=np.ones((1, 3, 40, 40), np.float32)),
}


@pytest.fixture
def pictured(of_node):
    """y = relu(x), of a picture."""
    return of_node("Relu", ["x"], ("float32", [1, 3, 40, 40]))


@cells("part", [0, 3, 20, 40, 0.5, 0.9])
@cells("name", WRITERS)
def test_an_input_file_that_is_cut_is_named(name, part, command, *, pictured, tmp_path):
    path = tmp_path / f"{part} {name}"
    WRITERS[name](path)
    content = path.read_bytes()
    path.write_bytes(content[: part if isinstance(part, int) else int(part * len(content))])
    ended = command("run", pictured, "--input", path, "--backend", "numpy")
    if ended.status == 0:
        assert name in {"x.gif", "x.jpg", "x.webp"}, "Pillow reads what is there"
    else:
        ended.assert_refused(str(path))


@cells("name", [*WRITERS, "labels.txt"])
@cells("kind", ["a folder", "a pipe", "missing", "a text"])
def test_an_input_that_is_no_such_file_is_named(kind, name, command, *, pictured, tmp_path):
    path = tmp_path / f"{kind} {name}"
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a text":
        path.write_bytes(b"\xff no such file \x00" * 9)
    option = "--labels" if name == "labels.txt" else "--input"
    command("run", pictured, option, path, "--backend", "numpy").assert_refused(str(path))
    if name == "x.npy":
        command("run", pictured, "--value", f"x={path}").assert_refused(str(path))


def test_a_pipe_is_no_model_and_nobody_waits_for_it(read_by, tmp_path):
    os.mkfifo(tmp_path / "model.onnx")
    read_by(tmp_path / "model.onnx").assert_refused("model.onnx: not a regular file")


@pytest.mark.parametrize("name", ["x.csv", "x.json", "x.txt"])
def test_a_file_of_another_kind_says_how_to_give_its_numbers(name, command, pictured, tmp_path):
    (tmp_path / name).write_text("1,2,3")
    command("run", pictured, "--input", tmp_path / name).assert_refused(
        f"write what {tmp_path / name} has by numpy.save()"
    )


def test_inputs_beyond_the_memory_are_refused(command, doubled):
    ended = command("run", doubled, "--shape", "rows=100000000000")
    ended.assert_refused("this machine has ")
    assert "'x' of shape [100000000000, 3] most of it" in ended.err


def test_too_little_memory_is_told_without_a_type(command, doubled, monkeypatch):
    def fail(*_):
        raise MemoryError("Unable to allocate 8 TiB")

    monkeypatch.setattr("webnn_py.command.run.make_feeds", fail)
    text = "run: there is not enough memory: Unable to allocate 8 TiB; give smaller sizes by --shape\n"
    command("run", doubled).assert_refused(text, 1)
