"""``webnn-py devices``: what contexts can run on."""

import argparse
from collections.abc import Iterator
from typing import Any

from webnn_py.command.printing import print_json, print_lines
from webnn_py.core.device import registry
from webnn_py.text_tables import table


def devices(options: argparse.Namespace) -> int:
    """List every adapter of every device; of one that cannot be had, why."""
    found = [*_devices()]
    if options.json:
        print_json({"devices": found})
        return 0
    rows = [("backend", "adapter", "driver", "features")]
    rows += [
        (item["backend"], item["adapter"] or "none", item.get("problem", item["driver"]), ", ".join(item["features"]))
        for item in found
    ]
    print_lines(table(rows))
    return 0


def _devices() -> Iterator[dict[str, Any]]:
    for name in registry.names():
        try:
            adapters = registry.find(name).adapters()
        except Exception as error:  # noqa: BLE001 - a driver, or another package, may fail in any way
            yield _missing(name, str(error) or type(error).__name__)
            continue
        for info in adapters:
            yield {
                "backend": name,
                "adapter": info.adapter,
                "driver": info.driver,
                "features": list(info.features),
                "limits": dict(info.limits),
            }
    for name, why in registry.collisions():
        yield _missing(name, why)


def _missing(name: str, why: str) -> dict[str, Any]:
    return {"backend": name, "adapter": None, "driver": None, "features": [], "limits": {}, "problem": why}
