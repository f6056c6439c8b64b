"""However a program ends that uses the blocking form, it ends, and leaves nothing."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

BEGINNING = """
import signal, sys, threading
import numpy as np
from spec_tests.support.onnx_programs import add
from webnn_py.runtime import blocking
from webnn_py.runtime.environment import Environment

x = np.zeros((2, 3), np.float32)
close = Environment.close

async def watched(self):
    await close(self)
    print("closed with", self.statistics().live_buffers, "buffers", flush=True)

Environment.close = watched

def opened():
    env = blocking.Environment(sys.argv[1])
    session = env.create_session(add())
    assert session.run({"x": x})["y"].data.all()
    return env, session
"""
ENDS = {
    "the last line": ("env, session = opened()", 0, ""),
    "sys.exit": ("env, session = opened(); sys.exit(3)", 3, ""),
    "an exception": ("env, session = opened(); raise LookupError('own')", 1, "LookupError: own"),
    "an interrupt": (
        "env, session = opened(); signal.raise_signal(signal.SIGINT)",
        -2 if os.name == "posix" else 1,
        "KeyboardInterrupt",
    ),
    "a thread that works on": (
        """
        env, session = opened()
        def work():
            threading.main_thread().join()
            for _ in range(20):
                assert session.run({"x": x})["y"].data.all()
            print("worked on", flush=True)
        threading.Thread(target=work).start()
        """,
        0,
        "",
    ),
    "an executor that is left open": (
        """
        from concurrent.futures import ThreadPoolExecutor
        env, session = opened()
        executor = ThreadPoolExecutor(2)
        assert executor.submit(session.run, {"x": x}).result()
        """,
        0,
        "",
    ),
    "a thread that opens and is gone": (
        """
        kept = []
        thread = threading.Thread(target=lambda: kept.extend(opened()))
        thread.start()
        thread.join()
        """,
        0,
        "",
    ),
}
FORK = """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads (Python 3.12)
env, session = opened()
child = os.fork()
if not child:
    for use in (lambda: session.run({"x": x}), lambda: env.create_session(add())):
        try:
            use()
        except RuntimeError as error:
            assert "opened before os.fork()" in str(error), error
        else:
            raise AssertionError("not refused")
    env.close()
    with blocking.Environment("numpy") as own:
        assert own.create_session(add()).run({"x": x})["y"].data.all()
    del env, session
    print("child done", flush=True)
    sys.stdout.flush()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert session.run({"x": x})["y"].data.all()
env.close()
"""


def run(program, backend):
    """The program, with warnings as errors: its exit status, output, and what it complained of."""
    return subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", BEGINNING + textwrap.dedent(program), backend],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"XDG_RUNTIME_DIR": os.environ.get("XDG_RUNTIME_DIR", "/tmp")},  # noqa: S108 - Mesa complains
    )


@pytest.mark.sampled(7)
@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_a_program_closes_its_open_environments(backend, end):
    program, status, complaint = ENDS[end]
    ended = run(program, backend)
    assert ended.stdout.splitlines()[-1:] == ["closed with 0 buffers"], ended
    assert ("worked on" in ended.stdout) == ("works on" in end), ended
    assert ended.returncode == status, ended
    assert ended.stderr.splitlines()[-1:] == ([complaint] if complaint else []), ended


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_opens_an_environment_of_its_own():
    ended = run(FORK, "numpy")
    assert ended.returncode == 0, ended
    assert ended.stdout.splitlines() == ["closed with 0 buffers", "child done", "closed with 0 buffers"], ended
    assert not ended.stderr, ended
