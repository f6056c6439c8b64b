"""The examples run as their first lines say: the samples of the three pull requests, and the decode loop."""

import subprocess
import sys
from pathlib import Path

import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER

EXAMPLES = Path(__file__).parents[2] / "examples"


def output(name, *arguments):
    run = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_sessions_come_and_go(backend):
    lines = ["2.0 4.0 6.0", "3.0 6.0 9.0", "5.0 10.0 15.0"]
    assert output("sessions_come_and_go.py", backend) == [
        *(f"{line} device gone" for line in lines),
        *(f"{line} device kept" for line in lines),
    ]


def test_copies_need_no_session(backend):
    assert output("copy_tensors.py", backend) == [
        "sessions: 0 device: None",
        "sequence: 101 7592 2088 102 7592 2088 0 0",
        "mask: 0 0 0 0",
        "host copies: 4",
    ]


@pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)
def test_io_binding():
    assert output("io_binding.py") == [
        "host to host: right",
        "GPU to GPU: right",
        "a gpu-buffer of 602112 bytes: right",
        "a gpu-buffer of 602112 bytes: right",
    ]


def test_decode_loop(backend):
    tokens, summary = output("decode_loop.py", backend)
    assert len(tokens.split()) == 24
    assert summary == "24 tokens, equal to numpy's; 24 copies between host and device"
