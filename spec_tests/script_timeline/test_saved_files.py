"""What is saved replaces a file when all of it is written: a full disk leaves what was there."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import resource, signal, sys
from pathlib import Path
import numpy as np, trio
from webnn_py import MLGraphBuilder, open_ml, save_js, save_webnn, tracing
from webnn_py.onnx_models import save

folder = Path(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # what goes beyond the limit raises OSError, as on a full disk

def contents():
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

builders = []

def drawn(context, size):
    builder = MLGraphBuilder(context)
    builders.append(builder)  # which outputs do not keep
    x = builder.input("x", data_type="float32", shape=[size])
    weights = builder.constant(np.full(size, size, np.float32))
    return {"y": builder.add(x, weights)}

async def main():
    async with open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        with tracing.trace(ml) as trace:
            for _ in range(40):
                (await context.create_buffer(data_type="float32", shape=[4], readable=True)).destroy()
        WRITERS
        for name, write in writers.items():
            write(50)
            before = contents()
            assert before, name
            resource.setrlimit(resource.RLIMIT_FSIZE, (300, resource.RLIM_INFINITY))
            try:
                write(3000)
            except OSError as error:
                assert ".part" not in str(error), error
            else:
                raise AssertionError(f"{name} is not refused")
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            assert contents() == before, (name, set(contents()) ^ set(before))
            write(3000)
            assert contents().keys() >= before.keys()

trio.run(main)
"""
WRITERS = """
        def webnn(size):
            save_webnn(drawn(context, size), folder / "model.webnn")

        def javascript(size):
            save_js(drawn(context, size), folder / "page")

        def onnx(size, **options):
            save(drawn(context, size), folder / "model.onnx", **options)

        writers = {
            "trace.json": lambda size: trace.save(folder / "trace.json"),
            "trace.html": lambda size: trace.save(folder / "trace.html"),
            "webnn": webnn,
            "javascript": javascript,
            "onnx": onnx,
            "onnx with data": lambda size: onnx(size, external_data=True),
        }
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit for files here")
def test_a_full_disk_leaves_the_files_that_were_there(tmp_path):
    pytest.importorskip("onnx")
    program = PROGRAM.replace("        WRITERS\n", WRITERS)
    ended = subprocess.run(
        [sys.executable, "-c", program, tmp_path],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[2],
    )
    assert (ended.returncode, ended.stderr) == (0, "")
