"""The proposal "compute policy": one option instead of ``power_preference`` and ``accelerated``.

See docs/proposals/compute_policy.md. Nothing here is used unless ``open_ml(experimental={"compute-policy"})`` asks for
it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast, get_args

from webnn_py.descriptors import converted
from webnn_py.device.backend import MLDeviceType
from webnn_py.operators.idl import enumeration
from webnn_py.script.records import MLPowerPreference

MLComputePolicy = Literal["default", "high-performance", "low-power", "fallback"]
"""The policies of the proposal "compute-policy": of a context as it is asked for, and of a graph as it runs."""

POLICIES: Final[tuple[MLComputePolicy, ...]] = get_args(MLComputePolicy)


def hints_of(value: object, asked: Mapping[str, Any]) -> tuple[MLPowerPreference, bool]:
    """Return the power preference, and whether an accelerator is wanted, that a policy stands for.

    Args:
        value: the policy.
        asked: the other options of the context.

    Raises:
        TypeError: it is none, or an option that it replaces is given as well.
    """
    policy = cast("MLComputePolicy", converted("compute_policy", enumeration(POLICIES), value))
    if asked.get("power_preference", "default") != "default" or asked.get("accelerated", True) is not True:
        raise TypeError("compute_policy replaces power_preference and accelerated; give one or the others")
    return ("default", False) if policy == "fallback" else (policy, True)


def effective(power_preference: MLPowerPreference, device_types: Sequence[MLDeviceType]) -> MLComputePolicy:
    """Return the policy by which a graph really runs: "fallback" where a processor does most of the work, else never.

    Args:
        power_preference: what its context was asked for.
        device_types: what computes, the kind that does most of it first.
    """
    return "fallback" if device_types[0] == "cpu" else power_preference
