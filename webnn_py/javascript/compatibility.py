"""Compatibility modes: named sets of leniencies in the bindings, for test suites older than the specification.

Python's API knows nothing of them. What they change is what they list.
"""

import copy
from typing import Any

import attrs

from webnn_py.extensions.browser_limits import BrowserProfile


@attrs.frozen
class Compatibility:
    """Deviations of the bindings from the specification of June 2026; none by default.

    Attributes:
        name: the name of the set.
        destroyed_is_invalid_state: a destroyed tensor is an ``InvalidStateError``, not a ``TypeError``.
        larger_output: ``readTensor()`` accepts an output buffer longer than the tensor and leaves its rest alone.
        unsigned_view: ``readTensor()`` and ``writeTensor()`` accept a Uint32Array for int32.
        any_view: they accept a view of any type, or of none (``DataView``), of the right length in bytes.
        repeated_input_names: inputs of one builder may share a name.
        scale_of_lower_rank: ``scale`` and ``zeroPoint`` of the (de)quantization may have a lower rank than the input,
            whose last dimensions they are meant for.
        softmax_without_axis: ``softmax()`` may be called without ``axis`` for two dimensions, and takes the last.
        symmetric_padding: ``pad()`` has the mode "symmetric", which repeats the edge, made of gathers.
        scalar_padding_refused: ``pad()`` refuses a scalar.
        infinite_minimum_refused: ``clamp()`` refuses an infinite ``minValue``.
        outputs_limits: the limits of gru, lstm and lstmCell have one member ``outputs``.
        max_tensor_byte_length: ``opSupportLimits()`` has it although the IDL given does not.
    """

    name: str = "none"
    destroyed_is_invalid_state: bool = False
    larger_output: bool = False
    unsigned_view: bool = False
    any_view: bool = False
    repeated_input_names: bool = False
    scale_of_lower_rank: bool = False
    softmax_without_axis: bool = False
    symmetric_padding: bool = False
    scalar_padding_refused: bool = False
    infinite_minimum_refused: bool = False
    outputs_limits: bool = False
    max_tensor_byte_length: bool = False

    def adapted(self, description: dict[str, Any]) -> dict[str, Any]:
        """Return the description with what the mode adds to it."""
        changed = copy.deepcopy(description)
        if self.max_tensor_byte_length:
            limits = changed["dictionaries"]["MLOpSupportLimits"]["members"]
            if all(member["name"] != "maxTensorByteLength" for member in limits):
                added = {"name": "maxTensorByteLength", "type": {"kind": "unsigned long long"}, "required": False}
                limits.append(added)
        if self.softmax_without_axis:
            operations = changed["interfaces"]["MLGraphBuilder"]["operations"]
            (softmax,) = (operation for operation in operations if operation["name"] == "softmax")
            known = softmax["overloads"][0]
            softmax["overloads"].append(
                {**known, "added": True, "arguments": [known["arguments"][0], known["arguments"][2]]}
            )
        return changed

    def switches(self) -> list[str]:
        """Return the names of what is switched on."""
        return [name for name, on in attrs.asdict(self).items() if on is True]


NONE = Compatibility()

WPT_2025_03 = attrs.evolve(
    Compatibility("wpt-2025-03", *[True] * (len(attrs.fields(Compatibility)) - 1)), any_view=False
)
"""For web-platform-tests of March 2025. Renames come with that snapshot's IDL and need no switch."""

WPT_2026 = Compatibility("wpt-2026", destroyed_is_invalid_state=True, any_view=True)
"""Where the text of June 2026 says one thing, and web-platform-tests and browsers another: as these have it."""

MODES = {mode.name: mode for mode in (NONE, WPT_2025_03, WPT_2026)}

OPTION_NAMES = {"roundingType": "outputShapeRounding"}
"""Options by names that only older IDL has, and that reach the bindings only through it."""


def compatibility_of(profile: BrowserProfile) -> Compatibility:
    """Return the compatibility mode of the browser."""
    return Compatibility(profile.name, **dict.fromkeys(profile.compatibility, True))
