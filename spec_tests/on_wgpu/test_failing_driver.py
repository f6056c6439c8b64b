"""A driver that loses its device: what docs/differences.md says of it, and what helps."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMPILER = shutil.which("cc")
MANIFESTS = sorted(Path("/usr/share/vulkan/icd.d").glob("lvp*.json"))

pytestmark = pytest.mark.skipif(
    COMPILER is None or not MANIFESTS, reason="a C compiler and Mesa's software Vulkan make the driver that fails"
)

PROGRAM = """
import signal, sys
from pathlib import Path
import numpy as np, trio
from webnn_py import open_ml
from webnn_py.devices.wgpu.adapters import choose, request_device

signal.signal(signal.SIGABRT, lambda *_: print("a handler ran", flush=True))
sys.excepthook = lambda *_: print("a hook ran", flush=True)

async def main():
    async with open_ml() as ml:
        device = request_device(choose("default", software=True))
        context = await ml.create_context(gpu_device=device)  # which submits in this thread, as to hardware
        buffer = await context.create_buffer(data_type="float32", shape=[2], readable=True, writable=True)
        context.write_buffer(buffer, np.ones(2, np.float32))
        print((await context.read_buffer(buffer)).tolist(), flush=True)
        Path(sys.argv[1]).touch()
        try:
            await context.read_buffer(buffer)
        finally:
            print("it went on", flush=True)

trio.run(main)
"""


@pytest.fixture
def lost(tmp_path):
    """The file whose being there loses the device."""
    return tmp_path / "lost"


@pytest.fixture
def environment(tmp_path, lost):
    """The environment variables with which Vulkan has the failing driver only."""
    library = tmp_path / "failing_driver.so"
    source = Path(__file__).parent / "failing_driver.c"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    theirs = json.loads(MANIFESTS[0].read_text())
    manifest = tmp_path / "failing_driver.json"
    ours = {**theirs, "ICD": {**theirs["ICD"], "library_path": str(library)}}
    manifest.write_text(json.dumps(ours))
    driver = theirs["ICD"]["library_path"]
    return {**os.environ, "VK_ICD_FILENAMES": str(manifest), "DRIVER": driver, "LOST": str(lost)}


def test_a_driver_that_loses_its_device_within_a_submission_ends_the_process_past_every_hook(environment, lost):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, lost],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == -signal.SIGABRT, f"docs/differences.md says otherwise: {run.stdout}{run.stderr}"
    assert "Error in wgpuQueueSubmit" in run.stderr
    assert "Parent device is lost" in run.stderr
    assert run.stdout.splitlines() == ["[1.0, 1.0]"], "nothing of Python's runs any more"


def test_a_gpu_in_a_process_of_its_own_is_replaced(environment, lost):
    program = """
import sys
from pathlib import Path
import numpy as np
sys.path.insert(0, sys.argv[2])
from gpu_in_own_process import SHAPE, Computer

if __name__ == "__main__":
    x = np.full(SHAPE, 2, np.float32)
    with Computer() as computer:
        print(computer.compute(x).max(), computer.started)
        Path(sys.argv[1]).touch()
        print(computer.compute(2 * x).max(), computer.started)
        print(computer.compute(-x).max(), computer.started)
"""
    file = lost.parent / "program.py"
    file.write_text(program)
    examples = Path(__file__).parents[2] / "examples"
    run = subprocess.run(
        [sys.executable, file, lost, examples], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == ["3.0 1", "5.0 2", "1.0 2"]
    assert "Parent device is lost" in run.stderr
