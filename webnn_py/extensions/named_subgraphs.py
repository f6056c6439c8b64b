"""The names of sub-graphs that stand for an operator, of the proposal "subgraph".

* The name of an operator of the specification: its inputs have the names of the operands, its ``config`` the other
  arguments and the options.
* "GQA" or "GroupQueryAttention": onnxruntime's operator, whose inputs, outputs and attributes the names are.

A name is a claim about a body, which :mod:`webnn_py.extensions.subgraph_calls` checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.message_text import listed, shown
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.core.operators.rules import Refused, refuse
from webnn_py.devices.composites.cached_attention import GROUP_QUERY_ATTENTION

Descriptors = Mapping[str, MLOperandDescriptor]
Operands = Mapping[str, MLOperand]

CONFIG: Final[Mapping[str, object]] = {
    "causal": True,
    "do_rotary": False,
    "kv_num_heads": 0,
    "local_window_size": -1,
    "num_heads": 0,
    "rotary_interleaved": False,
    "scale": 0.0,
    "smooth_softmax": False,
    "softcap": 0.0,
}
"""The attributes of GroupQueryAttention, with their defaults; heads are counted where operands have an axis of them."""

BY_HEAD: Final = 4
"""The rank of queries, keys and values with an axis of heads."""

_OPERATORS: Final = {operator.spec_name.casefold(): operator for operator in OPERATORS.values()}


@attrs.frozen
class NamedOperator:
    """The operator that a name stands for, given the descriptors of a definition.

    Attributes:
        operator: the operator.
        draw: draws it; takes a builder and the inputs by name, and returns the outputs by name.
    """

    operator: Operator[..., Any]
    draw: Callable[[Any, Operands], Operands]


def named_operator(
    name: str, config: Mapping[str, Any], inputs: Descriptors, outputs: Sequence[str]
) -> NamedOperator | None:
    """Return the operator that a name stands for; None where it stands for none.

    Args:
        name: the name, in upper or lower case.
        config: the record of choices.
        inputs: the inputs of the definition.
        outputs: the names of its outputs.

    Raises:
        Refused: the inputs, the outputs or the choices are not those of the operator.
    """
    plain = name.casefold()
    if plain in {"gqa", "groupqueryattention"}:
        return _group_query_attention(config, inputs, outputs)
    operator = _OPERATORS.get(plain)
    return None if operator is None else _of_specification(operator, config, inputs, outputs)


def _check_names(what: str, given: Sequence[str], allowed: Sequence[str], required: Sequence[str]) -> None:
    others = [name for name in given if name not in allowed]
    if others:
        refuse(what, shown(others[0]), f"among {listed(allowed)}" if allowed else "absent: there are none")
    missing = [name for name in required if name not in given]
    if missing:
        raise Refused(f"{what} {shown(missing[0])} is missing")


def _of_specification(
    operator: Operator[..., Any], config: Mapping[str, Any], inputs: Descriptors, outputs: Sequence[str]
) -> NamedOperator:
    given = {item.spec_name: item for item in operator.parameters.values() if item.name != "label"}
    operands = [name for name, item in given.items() if item.is_operand]
    others = [name for name in given if name not in operands]
    _check_names("an input", [*inputs], operands, [name for name in operands if given[name].required])
    _check_names("a member of config", [*config], others, [name for name in others if given[name].required])

    def draw(builder: Any, bound: Operands) -> Operands:
        arguments = {given[name].name: item for name, item in (*bound.items(), *config.items())}
        drawn = builder.append(operator, **arguments)
        made = drawn if isinstance(drawn, list) else [drawn]
        if len(made) != len(outputs):
            refuse("the number of outputs", len(outputs), str(len(made)))
        return dict(zip(outputs, made, strict=True))

    return NamedOperator(operator, draw)


# --- GroupQueryAttention ---------------------------------------------------------------------------------------------

_REQUIRED: Final = ("query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length")
_OPTIONAL: Final = ("cos_cache", "sin_cache", "position_ids", "attention_bias", "head_sink")
_OUTPUTS: Final = ("output", "present_key", "present_value")


def _group_query_attention(config: Mapping[str, Any], inputs: Descriptors, outputs: Sequence[str]) -> NamedOperator:
    _check_names("an input", [*inputs], [*_REQUIRED, *_OPTIONAL], _REQUIRED)
    _check_names("an output", outputs, _OUTPUTS, ())
    choices = _choices(config)
    if choices["do_rotary"]:
        _check_names("an input", [*inputs], [*_REQUIRED, *_OPTIONAL], ("cos_cache", "sin_cache"))
    for name in ("past_key", "past_value"):
        if len(inputs[name].shape) != BY_HEAD:
            refuse(f"the rank of {name}", len(inputs[name].shape), str(BY_HEAD))
    heads = {
        name: _heads(name, inputs[name], choices["num_heads" if name == "query" else "kv_num_heads"])
        for name in _REQUIRED[:3]
    }
    batch, _, capacity, _ = inputs["past_key"].shape
    new = inputs["query"].shape[-2]
    if new > capacity:
        refuse("the capacity of the cache", capacity, f"at least {new}, the number of new keys")
    options = {
        "num_heads": heads["query"],
        "kv_num_heads": heads["key"],
        "capacity": capacity,
        "scale": float(choices["scale"]),
        "softcap": float(choices["softcap"]),
        "window": max(0, int(choices["local_window_size"])),
        "is_causal": bool(choices["causal"]),
        "is_interleaved": bool(choices["rotary_interleaved"]),
        "is_smooth": choices["smooth_softmax"] is True or choices["smooth_softmax"] == 1,
    }

    def draw(builder: Any, bound: Operands) -> Operands:
        operands: dict[str, MLOperand] = {name: _rows(builder, bound[name]) for name in _REQUIRED[:3]}
        operands |= {name: bound[name] for name in ("past_key", "past_value")}
        ends = _int32(builder, bound["seqlens_k"])
        operands["last_positions"] = ends if ends.rank == 1 else builder.reshape(ends, [batch])
        operands["total_length"] = _int32(builder, bound["total_sequence_length"])
        renamed = {"attention_bias": "bias", "head_sink": "sink"}
        if choices["do_rotary"]:
            renamed |= {"cos_cache": "cosines", "sin_cache": "sines", "position_ids": "positions"}
        operands |= {ours: bound[name] for name, ours in renamed.items() if name in bound}
        drawn = builder.append(GROUP_QUERY_ATTENTION, **operands, **options)
        return {name: item for name, item in zip(_OUTPUTS, drawn, strict=True) if name in outputs}

    return NamedOperator(GROUP_QUERY_ATTENTION, draw)


def _choices(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of GroupQueryAttention."""
    _check_names("a member of config", [*config], [*CONFIG], ())
    choices: dict[str, Any] = {**CONFIG, **{name: value for name, value in config.items() if value is not None}}
    for name, value in choices.items():
        if not isinstance(value, int | float) or not abs(value) < 2**127:  # nor NaN
            refuse(f"config[{shown(name)}]", shown(value), "a number of float32 or a boolean")
    return choices


def _heads(name: str, descriptor: MLOperandDescriptor, count: object) -> int:
    """Return the number of heads of queries, keys or values: of an axis of them, else of ``config``."""
    if len(descriptor.shape) == BY_HEAD:
        return descriptor.shape[1]
    if not isinstance(count, int) or count < 1:
        raise Refused(f"config has no number of heads, and {name} {listed(descriptor.shape)} no axis of them")
    return count


def _rows(builder: Any, x: MLOperand) -> Any:
    """Return queries, keys or values as [batch, new, heads · size]."""
    if x.rank != BY_HEAD:
        return x
    batch, heads, new, size = x.shape
    return builder.reshape(builder.transpose(x, permutation=[0, 2, 1, 3]), [batch, new, heads * size])


def _int32(builder: Any, x: MLOperand) -> Any:
    return x if x.data_type == "int32" else builder.cast(x, "int32")
