"""The proposal "compute policy": one option instead of ``power_preference`` and ``accelerated``.

See docs/proposals/compute_policy.md. ``open_ml(experimental={"compute-policy"})`` switches it on.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, cast, get_args

from webnn_py.core.api.context import MLContext
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.api.records import MLPowerPreference
from webnn_py.core.descriptors import converted
from webnn_py.core.extension import Extension
from webnn_py.core.operators.idl import enumeration

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


class ComputePolicy(Extension):
    """The extension: the option ``compute_policy`` of ``create_context()``."""

    name = "compute-policy"

    def options(self, given: dict[str, Any]) -> None:
        """Replace a policy by the options that it stands for."""
        policy = given.pop("compute_policy", None)
        if policy is not None:
            given["power_preference"], given["accelerated"] = hints_of(policy, given)


def effective(runs: MLGraph | MLContext) -> MLComputePolicy:
    """Return the policy by which a graph, or all of a context, really runs.

    It is "fallback" where a processor does most of the work, else never; otherwise what the context was asked for.

    Args:
        runs: the graph or the context; it may be destroyed.

    Raises:
        NotSupportedError: the extension was not asked for.
    """
    context = runs.context if isinstance(runs, MLGraph) else runs
    ComputePolicy.on_context(context, "effective()", "context.backend says what computes its graphs")
    return "fallback" if context.backend.device_types[0] == "cpu" else context.power_preference
