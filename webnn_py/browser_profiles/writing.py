"""Write the limits of a profile's table from what the browser reports about itself.

In the browser's console, on a page of http://localhost or https::

    copy(JSON.stringify((await navigator.ml.createContext()).opSupportLimits()))

then ``python -m webnn_py.browser_profiles.writing LIMITS.json TABLE.toml``. It replaces the limits in the table and
leaves the rest as it is; for a table that does not exist yet, the rest is to be filled in.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

_BEGIN: Final = "# The limits, from the browser's opSupportLimits().\n"
_TOP: Final = {"preferredInputLayout", "maxTensorByteLength", "input", "constant", "output"}

_NEW: Final = """\
title = ""  # browser, version, backend

# Names of webnn_py.browser_profiles.rules.
rules = []
has_constant_tensors = true
survives_shared_outputs = true
has_bigint_for_all = true
has_accelerated = true
# graph_devices = ["cpu"]
compatibility = []

"""


def limits_text(limits: Mapping[str, Any]) -> str:
    """Return the lines of a table that limits make.

    Args:
        limits: ``MLOpSupportLimits``, of the JSON that the browser gives.

    Raises:
        ValueError: inputs, constants and outputs have different limits, which a table cannot say.
    """
    if not limits["input"] == limits["constant"] == limits["output"]:
        raise ValueError("the limits of input, constant and output differ; a table has one row for all three")
    lines = [
        f'preferred_input_layout = "{limits["preferredInputLayout"]}"',
        f"max_tensor_byte_length = {limits['maxTensorByteLength']}",
        f'tensors = "{_row(limits["input"])}"',
        "",
        "[operators]",
        *(f"{name} = [{', '.join(_lines(limits[name]))}]" for name in sorted(limits.keys() - _TOP)),
    ]
    return _BEGIN + "\n".join(lines) + "\n"


def _lines(operator: Mapping[str, Any]) -> Iterator[str]:
    """Operands of one row share a line."""
    by_row: dict[str, list[str]] = {}
    for operand, row in sorted(operator.items()):
        by_row.setdefault(_row(row), []).append(operand)
    return (f'"{" ".join(operands)}: {row}"' for row, operands in by_row.items())


def _row(row: Mapping[str, Any]) -> str:
    return f"{' '.join(row['dataTypes'])}, {row['rankRange']['min']} to {row['rankRange']['max']}"


def main(arguments: list[str] | None = None) -> None:
    """Write a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("limits", type=Path, metavar="LIMITS.json", help="what opSupportLimits() gave")
    parser.add_argument("table", type=Path, metavar="TABLE.toml", help="the table to write or to renew")
    options = parser.parse_args(arguments)
    head = options.table.read_text(encoding="utf-8").partition(_BEGIN)[0] if options.table.exists() else _NEW
    text = limits_text(json.loads(options.limits.read_text(encoding="utf-8")))
    options.table.write_text(head + text, encoding="utf-8")


if __name__ == "__main__":
    main()
