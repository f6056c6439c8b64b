"""The lowering of attention to a cache to onnxruntime's GroupQueryAttention, or to its decomposition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from webnn_py.graph import Node
from webnn_py.onnx_export.body import Body, Drawing, OnnxTensor
from webnn_py.onnx_export.nodes import MICROSOFT
from webnn_py.onnx_export.table import Written
from webnn_py.operators.cached_attention import by_positions

STEP: Final = 8
"""The divisor of the sizes of heads for which onnxruntime has a kernel."""


def group_query_attention(body: Body, node: Node, **operands: OnnxTensor) -> Written:
    """Write the decomposition."""
    drawing = Drawing(body)
    drawn = {name: drawing.of(tensor) for name, tensor in operands.items()}
    return [drawing.tensor(operand) for operand in by_positions(drawing, **drawn, **node.options)]


def has_kernel(node: Node) -> bool:
    """Return whether onnxruntime has a kernel for the sizes of attention to a cache.

    It fails where a length is beyond the cache, and where several samples continue by more than one key.
    """
    size = node.outputs[1].shape[3]
    if "cosines" not in node.operands:
        return size % STEP == 0
    return size % (2 * STEP) == 0 and node.operand("cosines").shape[1] % STEP == 0


def whole(body: Body, node: Node, operands: Mapping[str, Any]) -> list[OnnxTensor]:
    """Write GroupQueryAttention."""
    options = node.options
    given: dict[str, OnnxTensor | None] = {**dict.fromkeys(_ORDER), **operands}
    positions = given["positions"]
    if positions is not None:
        last = np.array(operands["cosines"].shape[0] - 1, np.int64)
        given["positions"] = body.node("Clip", body.cast(positions, "int64"), np.array(0, np.int64), last)
    attributes: dict[str, Any] = {
        "causal": int(options["is_causal"]),
        "do_rotary": int("cosines" in operands),
        "kv_num_heads": options["kv_num_heads"],
        "local_window_size": options["window"] or -1,
        "num_heads": options["num_heads"],
        "rotary_interleaved": int(options["is_interleaved"]),
        "scale": options["scale"],
        "smooth_softmax": int(options["is_smooth"]),
        "softcap": options["softcap"],
    }
    types = [item.data_type for item in node.outputs]
    inputs = [given[name] for name in _ORDER]
    return body.nodes_outputs("GroupQueryAttention", inputs, types, domain=MICROSOFT, **attributes)


_ORDER: Final = (
    *("query", "key", "value", "past_key", "past_value", "last_positions", "total_length"),
    *("cosines", "sines", "positions", "bias", "sink"),
)
"""The operands in the order of GroupQueryAttention's inputs."""
