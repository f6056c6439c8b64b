"""The API as scripts see it in the browser of a profile: its members, and the arguments that its bindings accept."""

import copy
from typing import Any

from webnn_py.browser_profiles import BrowserProfile
from webnn_py.javascript.compatibility import Compatibility
from webnn_py.javascript.proposals import add_devices


def with_members(description: dict[str, Any], profile: BrowserProfile) -> dict[str, Any]:
    """Return a description with the members that the browser has."""
    changed = copy.deepcopy(description)
    interfaces = changed["interfaces"]
    if not profile.has_accelerated:
        options = changed["dictionaries"]["MLContextOptions"]
        for holder, key in ((interfaces["MLContext"], "attributes"), (options, "members")):
            holder[key] = [member for member in holder[key] if member["name"] != "accelerated"]
    if profile.graph_devices is not None:
        add_devices(changed)
    return changed


def compatibility_of(profile: BrowserProfile) -> Compatibility:
    """Return the compatibility mode of the browser."""
    return Compatibility(profile.name, **dict.fromkeys(profile.compatibility, True))
