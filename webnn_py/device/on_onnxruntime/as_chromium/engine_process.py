"""``EngineProcess``: a process in which engines are asked, so that what ends an engine ends no program."""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import subprocess
import sys
from threading import Lock
from typing import IO, Final, cast

from webnn_py.browser_profiles.engines import BrowserEngine
from webnn_py.device.on_onnxruntime.as_chromium.drawing import ChromiumModel
from webnn_py.device.on_onnxruntime.as_chromium.placing import Placements, Presence, Question

_PROGRAM: Final = "from webnn_py.device.on_onnxruntime.as_chromium.placing import main; main()"


class EngineProcess:
    """A process for questions to engines; it starts with the first, and again when an engine has ended it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def presence(self, engine: BrowserEngine) -> Presence:
        """Return whether an engine can be asked."""
        answer = self._answer(Question(engine))
        return answer if isinstance(answer, Presence) else Presence(missing=answer.error)

    def placements(self, engine: BrowserEngine, model: ChromiumModel, *, has_fallback: bool = True) -> Placements:
        """Return where onnxruntime places the nodes of a model, or why it makes no session."""
        answer = self._answer(Question(engine, model, has_fallback))
        assert isinstance(answer, Placements)  # noqa: S101 - for type checkers
        return answer

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                cast("IO[bytes]", stream).close()
            process.wait()

    def _answer(self, question: Question) -> Presence | Placements:
        with self._lock:
            process = self._process = self._process or self._started()
            try:
                pickle.dump(question, cast("IO[bytes]", process.stdin))
                cast("IO[bytes]", process.stdin).flush()
                answer: Presence | Placements = pickle.load(cast("IO[bytes]", process.stdout))  # noqa: S301 - its own
            except (EOFError, OSError, pickle.UnpicklingError):
                status = process.wait()
                self.close()
                return Placements(error=f"{question.engine.provider} ends the process, with {_status(status)}")
            except BaseException:
                self.close()  # an answer that nobody has read would be taken for the next one
                raise
            return answer

    def _started(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return subprocess.Popen(  # noqa: S603 - the package's own program
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the program that asks
        )


def _status(status: int) -> str:
    """Return the words for a process's status."""
    return signal.Signals(-status).name if status < 0 else f"status {status}"


ENGINES_PROCESS: Final = EngineProcess()
"""The process of this program."""


def _close_at_exit() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program has ended; a second Ctrl-C must not leave the process
    ENGINES_PROCESS.close()


atexit.register(_close_at_exit)
