"""The activations of ONNX's recurrent networks: WebNN's own, and all others by their formulas."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import attrs

from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.rule_helpers.recurrent_steps import Activation
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.recurrent import MLRecurrentNetworkActivation
from webnn_py.operators.rules import refuse

OWN: Final[Mapping[str, MLRecurrentNetworkActivation]] = {"relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh"}
"""Those of WebNN's recurrent operators, by ONNX's names in lower case: ONNX's case does not matter."""
MUST_BE_GIVEN: Final = math.nan
CLIPPED: Final = 2
"""The first activations, of gates and of what is new; an LSTM's third, of the cell that is shown, is not clamped."""


@attrs.frozen
class Formula:
    """An activation of recurrent networks.

    Attributes:
        apply: computes it, from a context, an operand, alpha and beta, as far as it has them.
        alpha: the default of alpha: its ONNX operator's, or MUST_BE_GIVEN; None for an activation without alpha.
        beta: likewise.
    """

    apply: Callable[..., MLOperand]
    alpha: float | None = None
    beta: float | None = None


def _affine(context: ConversionContext, x: MLOperand, alpha: float, beta: float) -> MLOperand:
    return context.linear(x, alpha=alpha, beta=beta)


def _scaled_tanh(context: ConversionContext, x: MLOperand, alpha: float, beta: float) -> MLOperand:
    return context.mul(context.number(alpha, x), context.tanh(context.mul(context.number(beta, x), x)))


def _thresholded_relu(context: ConversionContext, x: MLOperand, alpha: float) -> MLOperand:
    return context.where(context.greater(x, context.number(alpha, x)), x, context.number(0, x))


FORMULAS: Final[Mapping[str, Formula]] = {
    "affine": Formula(_affine, 1.0, 0.0),
    "elu": Formula(lambda context, x, alpha: context.elu(x, alpha=alpha), 1.0),
    "hardsigmoid": Formula(lambda context, x, alpha, beta: context.hard_sigmoid(x, alpha=alpha, beta=beta), 0.2, 0.5),
    "leakyrelu": Formula(lambda context, x, alpha: context.leaky_relu(x, alpha=alpha), 0.01),
    "relu": Formula(lambda context, x: context.relu(x)),
    "scaledtanh": Formula(_scaled_tanh, MUST_BE_GIVEN, MUST_BE_GIVEN),
    "sigmoid": Formula(lambda context, x: context.sigmoid(x)),
    "softplus": Formula(lambda context, x: context.softplus(x)),
    "softsign": Formula(lambda context, x: context.softsign(x)),
    "tanh": Formula(lambda context, x: context.tanh(x)),
    "thresholdedrelu": Formula(_thresholded_relu, 1.0),
}


@attrs.frozen(kw_only=True)
class GateFunctions:
    """What a recurrent node says of its activations.

    Attributes:
        context: what to build with.
        names: the activations of each direction, in lower case.
        alphas: their alphas, likewise; None where one has none.
        betas: likewise.
        clip: what the input of a gate's activation is clamped to, both ways; None for no bound.
    """

    context: ConversionContext
    names: Sequence[Sequence[str]]
    alphas: Sequence[Sequence[float | None]]
    betas: Sequence[Sequence[float | None]]
    clip: float | None

    @property
    def own(self) -> list[MLRecurrentNetworkActivation] | None:
        """The activations as WebNN's operators take them, the same for each direction; None where they cannot."""
        first = list(self.names[0])
        if self.clip is not None or any(list(names) != first for names in self.names) or not set(first) <= OWN.keys():
            return None
        return [OWN[name] for name in first]

    def of_direction(self, index: int) -> list[Activation]:
        """One direction's activations; those of gates clamp what they are given."""
        parts = zip(self.names[index], self.alphas[index], self.betas[index], strict=True)
        return [partial(self._gate if place < CLIPPED else self._plain, *part) for place, part in enumerate(parts)]

    def _plain(self, name: str, alpha: float | None, beta: float | None, x: MLOperand) -> MLOperand:
        return FORMULAS[name].apply(self.context, x, *(value for value in (alpha, beta) if value is not None))

    def _gate(self, name: str, alpha: float | None, beta: float | None, x: MLOperand) -> MLOperand:
        if self.clip is not None:
            x = self.context.clamp(x, min_value=-self.clip, max_value=self.clip)
        return self._plain(name, alpha, beta, x)


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
    width = len(lowered) // directions
    parts = [slice(index * width, (index + 1) * width) for index in range(directions)]
    own_alphas = _taken(alphas, [FORMULAS[name].alpha for name in lowered])
    own_betas = _taken(betas, [FORMULAS[name].beta for name in lowered])
    if any(value is not None and math.isnan(value) for value in (*own_alphas, *own_betas)):
        refuse("activation_alpha and activation_beta", (alphas, betas), "given for ScaledTanh, which has no defaults")
    return GateFunctions(
        context=context,
        names=[lowered[part] for part in parts],
        alphas=[own_alphas[part] for part in parts],
        betas=[own_betas[part] for part in parts],
        clip=clip,
    )


def _taken(given: Sequence[float] | None, defaults: Sequence[float | None]) -> list[float | None]:
    left = iter(given or ())
    return [None if default is None else next(left, default) for default in defaults]
