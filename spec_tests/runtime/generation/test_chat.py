"""The example of a chat takes turns, and ends with its input."""

import pytest

from spec_tests.support.examples import EXAMPLES, output


@pytest.mark.sampled(8)
def test_a_chat_takes_turns(folder_of):
    options = ("--backend", "numpy", "--most", 5)
    first, *rest = output(EXAMPLES / "chat.py", folder_of("genai"), *options, typed="hello\nand again\n").split("> ")
    assert first.startswith("model.onnx on numpy (")
    assert len(rest) == 3
    assert all(answer.strip() for answer in rest[:2])
