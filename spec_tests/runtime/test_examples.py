"""The examples run as their first lines say: the samples of the three pull requests, and the decode loop."""

import pytest

from spec_tests.support.backends import needs_adapter
from spec_tests.support.examples import EXAMPLES, output

pytestmark = pytest.mark.sampled(2)


def lines_of(name, *arguments):
    return output(EXAMPLES / name, *arguments).splitlines()


def test_sessions_come_and_go(backend):
    lines = ["2.0 4.0 6.0", "3.0 6.0 9.0", "5.0 10.0 15.0"]
    assert lines_of("sessions_come_and_go.py", backend) == [
        *(f"{line} device gone" for line in lines),
        *(f"{line} device kept" for line in lines),
    ]


def test_copies_need_no_session(backend):
    assert lines_of("copy_tensors.py", backend) == [
        "sessions: 0 device: None",
        "sequence: 101 7592 2088 102 7592 2088 0 0",
        "mask: 0 0 0 0",
        "host copies: 4",
    ]


@needs_adapter
def test_io_binding():
    assert lines_of("io_binding.py") == [
        "host to host: right",
        "GPU to GPU: right",
        "a gpu-buffer of 602112 bytes: right",
        "a gpu-buffer of 602112 bytes: right",
    ]


def test_decode_loop(backend):
    tokens, summary = lines_of("decode_loop.py", backend)
    assert len(tokens.split()) == 24
    assert summary == "24 tokens, equal to numpy's; 24 copies between host and device"
