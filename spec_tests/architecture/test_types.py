"""Type checkers see the builder's methods with their full signatures."""

import subprocess
import sys
from pathlib import Path

import pytest

from spec_tests.support.depth import is_full

ROOT = Path(__file__).parents[2]
GOOD = """
import numpy as np
from webnn_py import ML, MLContext, MLGraphBuilder, MLOperand
from webnn_py.runtime import blocking

def predict(env: blocking.Environment, x: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> None:
    session: blocking.InferenceSession = env.create_session("model.onnx", preferred_output_location="gpu-buffer")
    outputs: dict[str, blocking.Tensor] = session.run({"x": env.create_tensor(x)}, ["y"])
    env.copy_tensors([outputs["y"]], [blocking.Tensor(x)])
    env.close()

class Tensor:
    def __dlpack__(self, *, stream: object = None) -> object:
        return None

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

class Series:
    def __array__(self, dtype: object = None, copy: bool | None = None) -> object:
        return np.zeros(2)

async def draw(ml: ML, context: MLContext) -> None:
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[1, 2, 3, 4])
    y: MLOperand = builder.conv2d(x, x, strides=[1, 1], input_layout="nhwc", label="conv")
    outputs: list[MLOperand] = builder.lstm(x, x, x, 1, 2, direction="both")
    pieces: list[MLOperand] = builder.split(y, 2, axis=1)
    builder.concat([*outputs, *pieces], 0)
    builder.clamp(y, min_value=0, max_value=6.5)
    builder.resample2d(y, sizes=[8, 8], mode="linear")
    builder.constant(5, data_type="int32")
    array = np.zeros(2, np.float32)
    builder.constant(array)
    builder.constant(Tensor())
    builder.constant(Series(), data_type="float32")
    builder.input("z", data_type=array.dtype, shape=array.shape)
    builder.cast(builder.arg_min(y, 0, output_data_type=np.int64), np.dtype("float32"))
    graph = await builder.build({"y": y})
    await ml.create_context(backend="wgpu", float16_accumulation=True, max_queued_bytes=1)
    await ml.create_context(max_cached_pipelines=10, max_cached_pipeline_bytes=2**20)
    await ml.create_context(gpu_device=object())
    await ml.create_context(backend="another package's", threads=4)
    data = await context.read_buffer(await context.create_buffer(data_type="int8", shape=[2], readable=True))
    print(graph.input_descriptors, data.dtype)
"""
BAD = {
    "operand": "builder.add(x, 1)",
    "option": "builder.conv2d(x, x, stride=[1, 1])",
    "enumeration": 'builder.conv2d(x, x, input_layout="nhcw")',
    "result": "y: int = builder.relu(x)",
    "sequence": "builder.relu(builder.split(x, 2))",
    "missing": "builder.softmax(x)",
    "bytes without a data type": 'builder.constant(b"1234")',
    "list": "builder.constant([1.0])",
    "positional": "builder.linear(x, 2.0)",
    "data type": 'builder.cast(x, "float64")',
    "numpy data type": "builder.cast(x, np.float64)",
    "type of Python": "builder.cast(x, float)",
    "option of a session": "env.create_session('model.onnx', preferred_output_location='gpu')",
    "option that a session lacks": "env.create_session('model.onnx', capture=True)",
}
PREFIX = """
import numpy as np
from webnn_py import ML, MLGraphBuilder, MLOperand
from webnn_py.runtime.blocking import Environment

def draw(ml: ML, builder: MLGraphBuilder, x: MLOperand, env: Environment) -> None:
"""


@pytest.fixture(scope="module", params=["mypy", "pyright"])
def complaints(request, tmp_path_factory):
    """Return the errors that a type checker reports in the programs; at quick depth pyright, the faster one."""
    if request.param == "mypy" and not is_full(request.config):
        pytest.skip("takes seconds: at full depth")
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "good.py").write_text(GOOD, encoding="utf-8")
    for name, line in BAD.items():
        (folder / f"bad_{name.replace(' ', '_')}.py").write_text(f"{PREFIX}    {line}\n", encoding="utf-8")
    strict = ["--strict"] if request.param == "mypy" else ["--pythonpath", sys.executable]
    run = subprocess.run(
        [sys.executable, "-m", request.param, *strict, *map(str, sorted(folder.glob("*.py")))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    return [line for line in run.stdout.splitlines() if " error: " in line or " - error: " in line]


def test_a_right_program_is_accepted(complaints):
    assert not [line for line in complaints if "good.py" in line]


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_program_is_refused(complaints, name):
    assert [line for line in complaints if f"bad_{name.replace(' ', '_')}.py" in line]
