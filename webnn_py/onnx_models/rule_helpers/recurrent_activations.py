"""The activations of ONNX's recurrent networks: WebNN's own, and all others by their formulas."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from webnn_py.core.operators import activation
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.recurrent import MLRecurrentNetworkActivation
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.rule_helpers.recurrent_steps import Activation
from webnn_py.onnx_models.rules.activation import thresholded_relu

OWN: Final[Mapping[str, MLRecurrentNetworkActivation]] = {"relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh"}
"""The activations of WebNN's recurrent operators, by ONNX's names in lower case: ONNX ignores case."""
MUST_BE_GIVEN: Final = math.nan
CLIPPED: Final = 2
"""The first activations, of gates and of what is new; an LSTM's third, of the cell that is shown, is not clamped."""


@attrs.frozen
class Formula:
    """An activation of recurrent networks.

    Attributes:
        apply: computes it, from a context, an operand, alpha and beta, as far as it has them.
        defaults: of alpha and beta: its ONNX operator's, or MUST_BE_GIVEN; None for what it lacks.
    """

    apply: Callable[..., MLOperand]
    defaults: tuple[float | None, float | None] = (None, None)


def _of(operator: Operator[..., Any], *names: str) -> Callable[..., MLOperand]:
    return lambda context, x, *values: context.apply(operator, x, **dict(zip(names, values, strict=True)))


def _scaled_tanh(context: ConversionContext, x: MLOperand, alpha: float, beta: float) -> MLOperand:
    return context.mul(context.number(alpha, x), context.tanh(context.mul(context.number(beta, x), x)))


FORMULAS: Final[Mapping[str, Formula]] = {
    "affine": Formula(_of(activation.linear, "alpha", "beta"), (1.0, 0.0)),
    "elu": Formula(_of(activation.elu, "alpha"), (1.0, None)),
    "hardsigmoid": Formula(_of(activation.hard_sigmoid, "alpha", "beta"), (0.2, 0.5)),
    "leakyrelu": Formula(_of(activation.leaky_relu, "alpha"), (0.01, None)),
    "relu": Formula(_of(activation.relu)),
    "scaledtanh": Formula(_scaled_tanh, (MUST_BE_GIVEN, MUST_BE_GIVEN)),
    "sigmoid": Formula(_of(activation.sigmoid)),
    "softplus": Formula(_of(activation.softplus)),
    "softsign": Formula(_of(activation.softsign)),
    "tanh": Formula(_of(activation.tanh)),
    "thresholdedrelu": Formula(lambda context, x, alpha: thresholded_relu(context, x, alpha=alpha), (1.0, None)),
}


@attrs.frozen
class GateFunctions:
    """The activations of a recurrent node.

    Attributes:
        context: what to build with.
        directions: the activations of each direction: names in lower case, with alpha and beta where they have them.
        clip: what the input of a gate's activation is clamped to, both ways; None for no bound.
    """

    context: ConversionContext
    directions: Sequence[Sequence[tuple[str, Sequence[float]]]]
    clip: float | None

    @property
    def own(self) -> list[MLRecurrentNetworkActivation] | None:
        """The activations as WebNN's operators take them, the same for each direction; None where they cannot."""
        names = [[name for name, _ in activations] for activations in self.directions]
        if self.clip is not None or any(own != names[0] for own in names) or not set(names[0]) <= OWN.keys():
            return None
        return [OWN[name] for name in names[0]]

    def of_direction(self, index: int) -> list[Activation]:
        """Return one direction's activations; a gate's clamps its input."""
        return [
            partial(self._apply, name, values, None if place >= CLIPPED else self.clip)
            for place, (name, values) in enumerate(self.directions[index])
        ]

    def _apply(self, name: str, values: Sequence[float], clip: float | None, x: MLOperand) -> MLOperand:
        clamped = x if clip is None else self.context.clamp(x, min_value=-clip, max_value=clip)
        return FORMULAS[name].apply(self.context, clamped, *values)


def gate_functions(  # noqa: PLR0913 - four attributes of a node, and what it is of
    context: ConversionContext,
    given: Sequence[str],
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    clip: float | None,
    *,
    directions: int,
) -> GateFunctions:
    """Read the attributes ``activations``, ``activation_alpha``, ``activation_beta`` and ``clip`` of a node.

    ``given`` has as many activations for one direction as for the other. Only those activations that have an alpha take
    one of ``alphas``, in order; what is left over is not looked at, and what lacks has its default.
    """
    lowered = [name.lower() for name in given]
    if not set(lowered) <= FORMULAS.keys():
        refuse("attribute activations", tuple(given), f"of {', '.join(FORMULAS)}")
    if clip is not None and not clip > 0:
        refuse("attribute clip", clip, "greater than 0")
    left = iter(alphas or ()), iter(betas or ())
    activations = []
    for name in lowered:
        defaults = zip(left, FORMULAS[name].defaults, strict=True)
        activations.append((name, [next(values, default) for values, default in defaults if default is not None]))
    if any(math.isnan(value) for _, values in activations for value in values):
        refuse("activation_alpha and activation_beta", (alphas, betas), "given for ScaledTanh, which has no defaults")
    width = len(lowered) // directions
    return GateFunctions(
        context, [activations[place * width : (place + 1) * width] for place in range(directions)], clip
    )
