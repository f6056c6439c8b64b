"""The example of many machines on local clusters; where Ray is not installed it is skipped."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install '.[ray]'"
)


def told_by_cluster(*arguments):
    run = subprocess.run(
        [sys.executable, "-m", "spec_tests.support.ray_cluster", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@needs_ray
@pytest.mark.parametrize("cpus", [1, 2, 3])
def test_the_command_leaves_a_processor_for_reading_and_refuses_to_take_all(tmp_path, cpus):
    told = told_by_cluster(tmp_path, cpus)
    why = told.pop("why")
    assert f"{cpus + 1} actors take all of Ray's CPUs, {cpus}" in why
    assert f"at most {max(1, cpus - 1)}" in why
    assert told == {"refused": 2, "rows": True, "differing rows": 0}


@needs_ray
def test_two_nodes_give_the_results_of_one_process_though_an_actor_dies(tmp_path):
    told = told_by_cluster(tmp_path)
    assert told.pop("processes") >= 2
    assert told == {"numbers in order": True, "differing rows": 0, "nodes": 2, "died": True}
