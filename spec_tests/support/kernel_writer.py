"""A device that writes the WebGPU device's kernels and runs none: it needs no adapter, and may have any features."""

from webnn_py.core.descriptors import MAX_DIMENSION
from webnn_py.core.graph import Graph, Output
from webnn_py.core.reference import ReferenceBackend
from webnn_py.devices.arena import split_constant
from webnn_py.devices.rewriting.passes import PassContext
from webnn_py.devices.wgpu.capabilities import capabilities_of
from webnn_py.devices.wgpu.lowering import LoweringContext, lowered
from webnn_py.devices.wgpu.passes.kernel_groups import KernelGroups
from webnn_py.devices.wgpu.passes.pipeline import PASSES
from webnn_py.devices.wgpu.records.buffer import Buffer


class Written:
    """Stands for a compiled graph."""

    byte_length = 0


class KernelWriter(ReferenceBackend):
    """Leaves buffers as they are.

    Args:
        features: what the adapter has.
    """

    def __init__(self, features):
        super().__init__("kernel writer")
        self.capabilities = capabilities_of(MAX_DIMENSION, shader_int64=features.shader_int64)
        self._features = features
        self._kernels = []

    def take(self):
        """Return the kernels that were written since the last call."""
        kernels, self._kernels = self._kernels, []
        return kernels

    def compile(self, graph):
        """Write the kernels of a graph as the WebGPU device does, and those that fold its constants."""
        graph, _ = PASSES.run(graph, PassContext())
        folded, live = split_constant(graph)
        known = set(folded)
        needed = dict.fromkeys([*(value for node in live for value in node.inputs), *graph.outputs.values()])
        constant = [value for value in needed if isinstance(value, Output) and value.node in known]
        buffers = {value: Buffer("constant", value.descriptor.byte_length) for value in constant}
        self._write(Graph(graph.inputs, graph.outputs, tuple(live)), LoweringContext(known=buffers))
        if constant:
            names = {str(number): value for number, value in enumerate(constant)}
            self._write(Graph.reaching(names), LoweringContext())
        return Written()

    def _write(self, graph, context):
        written, _ = lowered(KernelGroups.from_graph(graph, self._features), context)
        self._kernels += [*written.prologue, *written.nodes]

    def dispatch(self, compiled, inputs, outputs):
        """Nothing is computed."""
