"""``check_finite()``: computes a graph node by node and finds the first NaN or infinity."""

from __future__ import annotations

from collections.abc import Mapping

from trio.lowlevel import enable_ki_protection

from webnn_py.checking.non_finite import NonFinite, first_non_finite
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.devices.composites.drawn_out import spelled_out
from webnn_py.drawn_graphs import builder_of, drawing_of
from webnn_py.profiling.feeds import byte_length, checked_feeds


@enable_ki_protection
def check_finite(outputs: Mapping[str, MLOperand], feeds: Mapping[str, object]) -> MLPromise[NonFinite | None]:
    """Compute the graph of some operands node by node and find where NaN and infinities come from.

    The builder stays as it is. The context's device computes some nodes at a time, every value an output, so that no
    node is fused into another; all values are read and checked. The check has its own buffers and releases them.

    Args:
        outputs: the operands to compute, as for :meth:`webnn_py.MLGraphBuilder.build`.
        feeds: the data of each input that the outputs need, by name, see :meth:`webnn_py.MLContext.write_buffer`; those
            of the builder's other inputs are ignored.

    Returns:
        A promise of the first node, in the order of the calls that added them, that makes a NaN though none of its
        operands has one, or an infinity though all of them are finite; of the first input or constant that has a NaN;
        or of None. Rejected with ``InvalidStateError`` when the context is lost and ``UnknownError`` when the device
        fails.

    Raises:
        TypeError: the outputs or the feeds are refused.
        InvalidStateError: the builder has built, or the context is lost.
        NotSupportedError: the graph has data types of proposals.
    """
    builder = builder_of("check_finite", outputs)
    graph = spelled_out(drawing_of("check_finite", outputs))
    descriptors = {name: value.descriptor for name, value in graph.inputs.items()}
    given = checked_feeds("check_finite", feeds, descriptors, builder.input_names)
    device = builder.context.device

    async def work() -> NonFinite | None:
        return await first_non_finite(device, graph, given)

    return builder.context.enqueue("check_finite", work, held_bytes=byte_length(given))
