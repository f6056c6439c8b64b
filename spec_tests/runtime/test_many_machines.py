"""The example of many machines on a local cluster of two nodes; where Ray is not installed it is skipped."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install '.[ray]'")
def test_two_nodes_give_what_one_process_gives_though_an_actor_dies(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "spec_tests.support.ray_cluster", str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout.splitlines()[-1])
    assert told.pop("processes") >= 2
    assert told == {"numbers in order": True, "differing rows": 0, "nodes": 2, "died": True}
