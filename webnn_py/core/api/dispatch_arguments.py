"""The arguments of ``dispatch()``: checked, and converted to storages of the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from webnn_py.core.api.argument_checks import check_buffer, named, storages
from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.device.backend import Storage
from webnn_py.core.errors import InvalidStateError
from webnn_py.core.extension import Variant
from webnn_py.core.message_text import in_brackets

if TYPE_CHECKING:
    from webnn_py.core.api.context import MLContext

Storages = dict[str, Storage]
"""Memory by the names of inputs or outputs."""


def storages_at_first_sight(
    context: MLContext,
    graph: MLGraph,
    run: MLGraph | Variant,
    inputs: Mapping[str, MLBuffer],
    outputs: Mapping[str, MLBuffer],
) -> tuple[Storages, Storages] | None:
    """Return the storages that a dispatch reads and writes, if it is plainly right; else None: see :func:`storages_of`.

    One pass without a call for each buffer: nearly all dispatches are of this kind.

    Args:
        context: the context.
        graph: the graph that was given.
        run: what runs in its place: itself, or a variant of an extension.
        inputs: the buffers of the inputs.
        outputs: those of the outputs.
    """
    if graph._context is not context or graph._destroyed:
        return None
    read: Storages = {}
    written: Storages = {}
    for given, descriptors, found in (
        (inputs, run.input_descriptors, read),
        (outputs, run.output_descriptors, written),
    ):
        if type(given) is not dict or len(given) != len(descriptors):
            return None
        for name, buffer in given.items():
            if type(name) is not str or type(buffer) is not MLBuffer:
                return None
            has, wanted = buffer._descriptor, descriptors.get(name)
            if wanted is None or has.constant or has.data_type != wanted.data_type or has.shape != wanted.shape:
                return None
            if buffer._context is not context or buffer._destroyed or buffer.withheld:
                return None
            found[name] = buffer._storage
    is_each_one_distinct = len({*read.values(), *written.values()}) == len(read) + len(written)
    return (read, written) if is_each_one_distinct or _are_apart(run, read, written) else None


def _are_apart(run: MLGraph | Variant, inputs: Mapping[str, object], outputs: Mapping[str, object]) -> bool:
    """Return whether nothing is given twice, but for the inputs that the graph updates in their place."""
    shared = sum(name in outputs and outputs[name] is inputs.get(of) for name, of in run.handle.in_place.items())
    return len({*inputs.values(), *outputs.values()}) + shared == len(inputs) + len(outputs)


def storages_of(
    context: MLContext,
    graph: MLGraph,
    run: MLGraph | Variant,
    inputs: Mapping[str, MLBuffer],
    outputs: Mapping[str, MLBuffer],
) -> tuple[Storages, Storages]:
    """Return the storages that a dispatch reads and writes; checks any mappings in the order of the specification.

    Raises:
        InvalidStateError: the graph is destroyed.
        TypeError: an object is another context's, a buffer is destroyed, constant or given twice, or the names, data
            types or shapes are not the graph's.
    """
    named_inputs = named("dispatch(): inputs", MLBuffer, "buffers", inputs)
    named_outputs = named("dispatch(): outputs", MLBuffer, "buffers", outputs)
    # spec: MLContext.dispatch 1
    if graph._context is not context:
        raise TypeError(f"dispatch(): the graph belongs to another context{in_brackets(graph._context._label)}")
    # spec: MLContext.dispatch 2
    if graph._destroyed:
        why = "destroy() was called on it" if context._lost_message is None else context._loss_text
        raise InvalidStateError(f"dispatch(): the graph is destroyed: {why}")
    # spec: MLContext.dispatch 3-4
    if not _are_apart(run, named_inputs, named_outputs):
        raise TypeError("dispatch(): a buffer is given twice; each name needs a buffer of its own")
    # spec: MLContext.dispatch 5
    for buffer in (*named_inputs.values(), *named_outputs.values()):
        check_buffer(context, "dispatch", buffer)
    # spec: MLContext.dispatch 6
    read = storages("inputs", named_inputs, run.input_descriptors)
    # spec: MLContext.dispatch 7
    return read, storages("outputs", named_outputs, run.output_descriptors)
