"""``webnn-py convert --js``: a folder that runs a model."""

import numpy as np

from spec_tests.support.saved_js import Player
from webnn_py.web_export.folder import FILES


def test_a_model_becomes_a_folder_that_computes_the_same(command, picked, tmp_path):
    told = command("convert", picked, tmp_path / "picked", "--js", "--json").report()
    assert told["files"] == list(FILES)
    assert told["bytes"] == sum(path.stat().st_size for path in (tmp_path / "picked").iterdir())
    given = {"picked": {"x": np.array([[2, 3]], np.float32)}}
    got = Player(tmp_path).play(given)["picked"]["scores"]
    assert np.frombuffer(got, np.float32).tolist() == [2, 3, -2, 2.5]
    assert "<title>picked</title>" in (tmp_path / "picked" / "index.html").read_text(encoding="utf-8")


def test_open_shapes_are_asked_for_and_then_fixed(command, doubled, tmp_path):
    command("convert", doubled, tmp_path / "out", "--js").assert_refused("--shape rows=1")
    assert command("convert", doubled, tmp_path / "out", "--js", "--shape", "rows=2").status == 0
    assert 'x: {dataType: "float32", shape: [2, 3]}' in (tmp_path / "out" / "model.js").read_text(encoding="utf-8")


def test_files_of_these_names_are_replaced_only_if_that_is_asked_for(command, picked, tmp_path):
    (tmp_path / "model.js").write_text("mine", encoding="utf-8")
    command("convert", picked, tmp_path, "--js").assert_refused("has model.js; --overwrite replaces")
    assert command("convert", picked, tmp_path, "--js", "--overwrite").status == 0
    assert (tmp_path / "model.js").read_text(encoding="utf-8") != "mine"


def test_a_file_is_no_folder(command, picked):
    ended = command("convert", picked, picked, "--js")
    assert (ended.status, "picked.onnx is a file" in ended.err) == (2, True)
