"""A plugin for pytest: ``-p spec_tests.labs.faults.plugin --fault NAME`` runs tests with a deliberate fault."""

import os
from pathlib import Path

import pytest

from spec_tests.labs.faults.faults import FAULTS
from spec_tests.labs.faults.in_processes.sitecustomize import FAULT_VARIABLE
from spec_tests.labs.faults.seams import SeamError

ROOT = Path(__file__).parents[3]
IN_PROCESSES = Path(__file__).with_name("in_processes")


def pytest_addoption(parser):
    parser.addoption("--fault", metavar="NAME", choices=list(FAULTS), help="run the tests with this deliberate fault")


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if config.option.fault is None:
        return
    fault = FAULTS[config.option.fault]
    try:
        undo = fault.apply()
    except SeamError as error:
        raise pytest.UsageError(f"{fault.name}: {error}; update the fault") from error
    config.add_cleanup(undo)
    if fault.in_processes:
        os.environ[FAULT_VARIABLE] = fault.name
        others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(IN_PROCESSES), str(ROOT), *others]))
