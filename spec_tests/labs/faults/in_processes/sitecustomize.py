"""Put a fault into the processes that tests start, which find this file by ``PYTHONPATH``."""

import os

FAULT_VARIABLE = "WEBNN_PY_FAULT"

if FAULT_VARIABLE in os.environ:
    from spec_tests.labs.faults.faults import FAULTS

    FAULTS[os.environ[FAULT_VARIABLE]].apply()
