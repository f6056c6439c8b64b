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

from spec_tests.models.texts import TEXTS
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
    folder = tmp_path_factory.mktemp("kinds")
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "random.bin").write_bytes(np.random.default_rng(716).bytes(5000))
    return sorted(folder.iterdir())


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


ILL_CONDITIONED = {"padded.txt"}
"""Files on which onnxruntime's own scores are off by more than 1e-4: their variance cancels in float32."""


def test_every_kind_of_file_gets_the_label_and_the_score_that_magika_gives(files, trained, oracle, exact):
    identified = run_example(files, trained)
    for item, theirs in zip(identified, oracle.identify_paths(files), strict=True):
        assert item.label == theirs.output.label, item.path.name
        if item.path.name in ILL_CONDITIONED:
            exactly = exact(example.look_at(item.path, trained.config)).max()
            # The roundings of both are of this size, and either's may be the smaller by chance.
            assert abs(item.score - exactly) < 2 * abs(theirs.score - exactly), item.path.name
        else:
            assert item.score == pytest.approx(theirs.score, abs=1e-4), item.path.name
    assert len({item.label for item in identified}) >= 20  # or the test would show little


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
