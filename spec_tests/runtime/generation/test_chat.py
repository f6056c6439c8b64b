"""The example of a chat takes turns, and ends with its input."""

import subprocess
import sys

from spec_tests.support.examples import EXAMPLES


def test_a_chat_takes_turns(folder_of):
    program = [sys.executable, str(EXAMPLES / "chat.py"), str(folder_of("genai")), "--backend", "numpy", "--most", "5"]
    ended = subprocess.run(program, input="hello\nand again\n", capture_output=True, text=True, check=True, timeout=60)
    first, *rest = ended.stdout.split("> ")
    assert first.startswith("model.onnx on numpy (")
    assert len(rest) == 3
    assert all(answer.strip() for answer in rest[:2])
    assert ended.stderr == ""
