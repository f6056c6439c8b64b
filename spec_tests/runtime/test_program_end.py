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
import faulthandler, os, warnings
from webnn_py import NotSupportedError
warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads (Python 3.12)
env, session = opened()
tensor = env.create_tensor(x)
child = os.fork()
if not child:
    faulthandler.dump_traceback_later(60, exit=True)
    for use in (lambda: session.run({"x": x}), lambda: env.create_session(add()), tensor.get_data):
        try:
            use()
        except RuntimeError as error:
            assert "opened before os.fork()" in str(error) and "spawn" in str(error), error
        else:
            raise AssertionError("not refused")
    env.close()
    with blocking.Environment("numpy") as own:
        assert own.create_session(add()).run({"x": x})["y"].data.all()
    with blocking.Environment(sys.argv[1]) as own:
        try:
            assert own.create_session(add()).run({"x": x})["y"].data.all()
        except NotSupportedError as error:
            assert sys.argv[1] == "wgpu" and "opened before os.fork()" in str(error) and "spawn" in str(error), error
        else:
            assert sys.argv[1] != "wgpu"
    if len(sys.argv[1]) % 2:  # either the objects go first, or all at the end
        del env, session, tensor
    print("child done", flush=True)
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert session.run({"x": x})["y"].data.all()
env.close()
"""
FORK_IN_TRIO = """
import faulthandler, os, warnings
import trio
from webnn_py import open_ml
from spec_tests.support.onnx_programs import add
warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads (Python 3.12)

async def in_child(session, tensor, buffer, context):
    faulthandler.dump_traceback_later(60, exit=True)
    for use in (session.run, tensor.get_data):
        try:
            await use({"x": x}) if use == session.run else await use()
        except RuntimeError as error:
            assert "opened before os.fork()" in str(error) and "spawn" in str(error), error
        else:
            raise AssertionError("not refused")
    for use in (buffer.destroy, lambda: context.write_buffer(buffer, x), lambda: context.read_buffer(buffer)):
        try:
            use()
        except RuntimeError as error:
            assert "opened before os.fork()" in str(error) and "spawn" in str(error), error
        else:
            raise AssertionError("not refused")

async def fork(leave):
    async with open_ml() as ml:
        context = await ml.create_context(backend=sys.argv[1])
        buffer = await context.create_buffer(data_type="float32", shape=(2, 3), readable=True, writable=True)
        async with Environment(ml, context=context) as env:
            session, tensor = await env.create_session(add()), await env.create_tensor(x)
            await session.run({"x": x})
            context.write_buffer(buffer, x)
            in_flight = context.read_buffer(buffer)
            child = os.fork()
            if not child:
                await in_child(session, tensor, buffer, context)
                leave()
                return 0
            await in_flight
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert (await session.run({"x": x}))["y"].data.all()
            assert await trio.to_thread.run_sync(lambda: 5) == 5  # which wakes the parent's loop
    return status

def raises():
    raise LookupError("own")

print(trio.run(fork, lambda: None), trio.run(fork, lambda: sys.exit(7)), trio.run(fork, raises))
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


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def check_forked(backend):
    ended = run(FORK, backend)
    assert ended.returncode == 0, ended
    closed = "closed with 0 buffers"
    assert ended.stdout.splitlines() == [closed, closed, "child done", closed], ended
    assert not ended.stderr, ended


def check_forked_in_trio(backend):
    ended = run(FORK_IN_TRIO, backend)
    assert ended.returncode == 0, ended
    assert ended.stdout.splitlines()[-1] == "0 7 1", ended
    assert ended.stderr.splitlines()[-1:] == ["LookupError: own"], ended


@forks
def test_a_forked_process_is_refused_what_its_parent_opened_and_ends(backend):
    check_forked(backend)


@forks
def test_a_process_that_is_forked_in_a_block_of_open_ml_ends_with_the_block(backend):
    check_forked_in_trio(backend)


@forks
def test_forked_processes_end_that_have_sessions_of_onnxruntime():
    pytest.importorskip("onnxruntime")
    check_forked("onnxruntime")
    check_forked_in_trio("onnxruntime")
