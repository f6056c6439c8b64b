"""The lowering of attention to a cache to onnxruntime's GroupQueryAttention, or to its decomposition."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import attrs
import numpy as np

from webnn_py.core.decompositions.common import along, number
from webnn_py.core.graph import Node
from webnn_py.core.operators.operand import MLOperand
from webnn_py.devices.composites.cached_attention import by_positions, extended
from webnn_py.onnx_export.body import Body, Drawing, OnnxTensor
from webnn_py.onnx_export.nodes import MICROSOFT
from webnn_py.onnx_export.table import Written

STEP: Final = 8
"""The divisor of the sizes of heads for which onnxruntime has a kernel."""


def group_query_attention(body: Body, node: Node, **operands: OnnxTensor) -> Written:
    """Write the decomposition."""
    drawing = Drawing(body)
    drawn = {name: drawing.of(tensor) for name, tensor in operands.items()}
    return [drawing.tensor(operand) for operand in by_positions(drawing, **drawn, **node.options)]


def scattering_attention(body: Body, node: Node, **operands: OnnxTensor) -> Written:
    """Write the decomposition with ScatterElements, which copies no cache where past and present are one buffer.

    Behind the new rows stays what the past has there.
    """
    drawing = Drawing(body)
    drawn = {name: drawing.of(tensor) for name, tensor in operands.items()}
    write = partial(_scattered, body)
    return [drawing.tensor(operand) for operand in by_positions(drawing, **drawn, **node.options, write=write)]


def _scattered(
    body: Body, drawing: Drawing, past: MLOperand | None, rows: MLOperand, begins: MLOperand, capacity: int
) -> MLOperand:
    """Write rows into a cache, with the other parameters of ``cached_attention.written``.

    Rows that do not fit are moved into the cache: each element is written once, or the order of threads would count.
    """
    batch, _, new, _ = rows.shape
    whole = extended(drawing, past, rows, capacity)
    most = number(drawing, capacity - new, begins)
    begins = drawing.max(drawing.min(begins, most), number(drawing, 0, begins))
    places = drawing.add(drawing.reshape(begins, [batch, 1, 1, 1]), along(drawing, range(new), 2, 4))
    places = drawing.expand(places, rows.shape)
    cache = drawing.tensor(whole)
    made = body.node("ScatterElements", cache, drawing.tensor(places), drawing.tensor(rows), axis=2)
    written: MLOperand = drawing.of(attrs.evolve(made, descriptor=cache.descriptor))
    return written


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
