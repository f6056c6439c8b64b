"""Ctrl-C around the command: while Python imports what it needs, while the words are read, and while Python ends."""

import subprocess
import sys

import pytest

from webnn_py import cli

PROGRAM = """
import signal, sys

class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
import _webnn_py_command
sys.exit(_webnn_py_command.main())
"""


@pytest.mark.parametrize("module", ["numpy", "webnn_py.command.arguments"])
def test_an_interrupt_while_modules_are_imported_ends_with_status_130_and_says_nothing(module):
    ended = subprocess.run([sys.executable, "-c", PROGRAM, module], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (cli.INTERRUPTED, "", "")


@pytest.mark.parametrize(
    "module", ["webnn_py.command.generate", "onnx", "tokenizers", "webnn_py.runtime.generation.generator"]
)
def test_an_interrupt_while_a_command_imports_what_it_needs_is_not_lost(module, tmp_path):
    program = PROGRAM.replace(
        "signal.raise_signal(signal.SIGINT)",
        "try: signal.raise_signal(signal.SIGINT)\n            except KeyboardInterrupt: pass  # as some packages do",
    ).replace("sys.argv[1]", repr(module))
    words = ["generate", str(tmp_path), "--prompt", "a"]
    ended = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (cli.INTERRUPTED, "", "")


def test_an_interrupt_at_the_end_of_python_ends_with_status_130_and_says_nothing():
    program = PROGRAM.replace(
        "sys.exit(", "import atexit; atexit.register(signal.raise_signal, signal.SIGINT); sys.exit("
    )
    ended = subprocess.run([sys.executable, "-c", program, "--version"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (cli.INTERRUPTED, "")


@pytest.mark.parametrize("handler", ["signal.default_int_handler", "signal.SIG_IGN"])
def test_the_command_runs_with_the_handler_that_was_there(handler):
    """It is seen when the command looks for a similar name, for which it needs a module."""
    seen = f"print(signal.getsignal(signal.SIGINT) == {handler})"
    program = f"import signal; signal.signal(signal.SIGINT, {handler}){PROGRAM}".replace(
        "signal.raise_signal(signal.SIGINT)", seen
    ).replace("sys.argv[1]", "'difflib'")
    words = ["docs", "sesions"]
    ended = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "True\n"), ended.stderr
