"""The data types and ranks that every implementation must have, as web-platform-tests' helpers read them."""

import json
from functools import cache
from typing import Any, Final

from webnn_py.operators.declaration import spec_name_of
from webnn_py.operators.limits import TensorLimits
from webnn_py.operators.registry import OPERATORS

REQUIRED_FILE: Final = "webnn/resources/minimum_datatype_set.json"
"""Where helpers since 2025 look for them (webnn issue 910)."""


def _row(limits: TensorLimits) -> dict[str, Any]:
    ranks = limits.required_ranks
    return {"dataTypes": list(limits.required), "rankRange": {"min": ranks.min, "max": ranks.max}}


@cache
def required_json() -> str:
    """They, of each operand and output of each operator, by the names of the IDL: for checkouts without the file."""
    found = {
        operator.spec_name: {spec_name_of(name): _row(limits) for name, limits in operator.limits.items()}
        for operator in OPERATORS.values()
    }
    return json.dumps(found)
