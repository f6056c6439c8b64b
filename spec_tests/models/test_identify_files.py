import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import magika
import numpy as np
import onnx
import onnxruntime
import pytest
import trio
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from spec_tests.models.kinds_of_file import make_folder
from spec_tests.support.depth import amount
from spec_tests.support.examples import EXAMPLES, load_example
from webnn_py import MLGraphBuilder

TRAINED = Path(magika.__file__).parent / "models" / "standard_v3_3"
EXAMPLE = EXAMPLES / "identify_files.py"

example = load_example("identify_files")


@pytest.fixture(scope="module")
def trained():
    return example.load_magika()


@pytest.fixture(scope="module")
def oracle():
    return magika.Magika()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("kinds"))


class GlobalMaxPool(OpRun):
    """The reference implementation has it for images only."""

    op_domain = ""

    def _run(self, x):
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


@pytest.fixture(scope="module")
def exact():
    """The model in float64: it subtracts nearly equal numbers, so that for files of almost nothing float32 is rough."""
    model = onnx.load(TRAINED / "model.onnx")
    for item in model.graph.initializer:
        if item.data_type == TensorProto.FLOAT:
            item.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(item).astype(np.float64), item.name))
    for attribute in (attribute for node in model.graph.node for attribute in node.attribute):
        if attribute.name == "to" and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.DOUBLE
    evaluator = ReferenceEvaluator(model, new_ops=[GlobalMaxPool])
    return lambda tokens: evaluator.run(None, {"bytes": tokens})[0]


def assert_close_or_closer(ours, theirs, exactly):
    """Within 1e-4 of what onnxruntime says; or else nearer to the exact scores than that."""
    if np.abs(ours - theirs).max() > 1e-4:
        scores = exactly()
        assert np.abs(ours - scores).max() < np.abs(theirs - scores).max()


def run_example(paths, trained):
    identified, _ = trio.run(example.identify, paths, trained, "numpy")
    return identified


ILL_CONDITIONED = {"padded.txt", "text.zlib", "utf-16.txt"}
"""Files on which onnxruntime's own scores are off by more than 1e-4: their variance cancels in float32."""


def test_every_kind_of_file_gets_the_label_and_the_score_that_magika_gives(files, trained, oracle, exact):
    identified = run_example(files, trained)
    for item, theirs in zip(identified, oracle.identify_paths(files), strict=True):
        assert item.label == theirs.output.label, item.path.name
        if item.path.name in ILL_CONDITIONED:
            exactly = exact(example.look_at(item.path, trained.config)).max()
            assert abs(item.score - exactly) < abs(theirs.score - exactly), item.path.name
        else:
            assert item.score == pytest.approx(theirs.score, abs=1e-4), item.path.name
    assert len(identified) >= 50
    assert len({item.label for item in identified}) >= 30  # or the test would show little


def assert_as_magika_says(identified, oracle, trained, exact):
    for item, theirs in zip(identified, oracle.identify_paths([item.path for item in identified]), strict=True):
        assert item.label == theirs.output.label, item.path.name
        tokens = example.look_at(item.path, trained.config)
        assert_close_or_closer(item.score, theirs.score, lambda tokens=tokens: exact(tokens).max())


def test_this_repository_gets_the_labels_that_magika_gives(trained, oracle, exact, pytestconfig):
    paths = [path for name in ("webnn_py", "spec_tests") for path in example.walk(EXAMPLE.parents[1] / name)]
    sources = [path for path in paths if path.suffix != ".pyc"]
    parts = amount(pytestconfig, quick=40, full=10, thorough=1)
    assert_as_magika_says(run_example(sources[::parts], trained), oracle, trained, exact)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 1023, 1024, 1025, 2048, 4095, 4096, 4097, 8192, 9000])
@pytest.mark.parametrize("blanks", ["", "  \n", " " * 5000])
def test_files_of_sizes_near_the_limits_are_read_alike(size, blanks, tmp_path, trained, oracle):
    text = "".join(chr(33 + index % 90) for index in range(size))
    path = tmp_path / "text"
    path.write_text(blanks + text + blanks, encoding="utf-8")
    label, features = oracle._get_result_or_features_from_path(path)
    content = example.look_at(path, trained.config)
    if features is None:
        assert content == label.output.label
    else:
        np.testing.assert_array_equal(content[0], features.beg + features.end)


async def test_raw_scores_are_those_of_onnxruntime(numpy_context, files, trained, exact):
    session = onnxruntime.InferenceSession(TRAINED / "model.onnx", providers=["CPUExecutionProvider"])
    builder = MLGraphBuilder(numpy_context)
    graph = await builder.build(trained.model.convert(builder, {"bytes": [1, 2048]}))
    tokens = await numpy_context.create_buffer(data_type="int32", shape=[1, 2048], writable=True)
    scores = await numpy_context.create_buffer(data_type="float32", shape=[1, 214], readable=True)
    for path in files:
        content = example.look_at(path, trained.config)
        if not isinstance(content, str):
            numpy_context.write_buffer(tokens, content)
            numpy_context.dispatch(graph, {"bytes": tokens}, {"target_label": scores})
            (expected,) = session.run(None, {"bytes": content})
            ours = await numpy_context.read_buffer(scores)
            assert_close_or_closer(ours, expected, lambda tokens=content: exact(tokens))
    numpy_context.destroy()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_other_than_plain_files_get_the_label_that_magika_gives(tmp_path, trained, oracle, exact):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("def f():\n    return [x for x in range(10)]\n" * 5, encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "link to a folder").symlink_to(tmp_path / "folder")
    os.mkfifo(tmp_path / "pipe")
    identified = run_example(sorted(tmp_path.iterdir()), trained)
    assert_as_magika_says(identified, oracle, trained, exact)
    assert [item.label for item in identified] == ["python", "directory", "python", "directory", "unknown"]


def test_a_link_to_nothing_is_a_missing_file(tmp_path, trained, oracle, exact):
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    (identified,) = run_example([tmp_path / "link"], trained)
    assert identified.label == str(oracle.identify_path(tmp_path / "link").status)


def test_a_file_without_permission_has_magika_s_status(tmp_path, trained, monkeypatch):
    def refuse(self, mode):
        raise PermissionError(self)

    monkeypatch.setattr(Path, "open", refuse)
    (identified,) = run_example([EXAMPLE], trained)
    assert identified.label == str(magika.types.Status.PERMISSION_ERROR)


def test_folders_are_walked_but_hidden_ones_are_not(tmp_path):
    for name in ("b/file", "a/c/file", ".hidden/file", ".file", "file"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [path.relative_to(tmp_path).as_posix() for path in example.walk(tmp_path)]
    assert found == [".file", "a/c/file", "b/file", "file"]


def run_command(*arguments):
    return subprocess.run(
        [sys.executable, str(EXAMPLE), *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        check=False,
    )


def test_the_command_prints_a_table_and_the_device(tmp_path):
    (tmp_path / "page.html").write_text("<!DOCTYPE html><html><body><p>hello</p></body></html>" * 5, encoding="utf-8")
    (tmp_path / "empty").touch()
    run = run_command("--backend", "numpy", tmp_path)
    assert run.returncode == 0, run.stderr
    head, first, second, last = run.stdout.splitlines()
    assert head.split() == ["path", "label", "score", "ms"]
    assert first.split() == [str(tmp_path / "empty"), "empty", "1.000", "-"]
    assert second.split()[:2] == [str(tmp_path / "page.html"), "html"]
    assert last.startswith("2 files, identified on numpy (")


def test_a_missing_file_is_reported_and_the_others_are_identified(tmp_path, capsys):
    (tmp_path / "empty").touch()
    assert example.main([str(tmp_path / "missing"), str(tmp_path / "empty")]) == 1
    told = capsys.readouterr()
    assert f"{tmp_path / 'missing'}: file not found error" in told.err
    assert "empty" in told.out
    assert "2 files" in told.out


@pytest.mark.parametrize("arguments", [[], ["--unknown", "file"]])
def test_wrong_usage_is_refused(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        example.main(arguments)
    assert ended.value.code == 2
    assert "usage: identify_files.py" in capsys.readouterr().err


def test_without_the_extra_the_command_names_it(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert example.main([str(EXAMPLE)]) == 1
    assert "pip install '.[examples]'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["strange\nname", "wide \u540d\u524d", "\udcff"])
def test_names_are_printed_in_one_line(name, capsys):
    example.print_table([example.Identified(Path(name), "txt", 1.0)])
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 2
    out.encode()
