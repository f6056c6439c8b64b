"""The tutorial's commands work as typed, one after the other, in one shell."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STAND_INS = f"""python3() {{ command python3 "$@" --without-pip; }}
pip() {{ printf '#!/bin/sh\\nexec {sys.executable} -m webnn_py "$@"\\n' > .venv/bin/webnn-py
chmod +x .venv/bin/webnn-py; }}"""
"""In place of an installation from the network: an environment without pip, which takes seconds to install itself, and
the script that the installation would put into it."""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_command_that_the_tutorial_installs_is_found(tmp_path):
    text = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    install, devices = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[:2]
    assert "pip install" in install
    script = f"set -e\n{STAND_INS}\n{install}\n{devices}\ncommand -v webnn-py"
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
    }
    ended = subprocess.run(
        [str(shutil.which("bash")), "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "numpy" in ended.stdout
    assert ended.stdout.splitlines()[-1] == str(tmp_path / ".venv/bin/webnn-py")
