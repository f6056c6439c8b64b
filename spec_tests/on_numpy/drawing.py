"""Graphs for the numpy device that no context has to be there for, and what it computes of them."""

import numpy as np

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.compiling.expansion import expand
from webnn_py.core.graph import Constant, Graph, Input
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.devices.numpy.backend import CAPABILITIES
from webnn_py.devices.numpy.executable import NumpyGraph


class Drawing(RewriteBuilder):
    """A builder of nodes that no context has to be there for."""

    def given(self, name, array):
        return self.operand(Input(MLOperandDescriptor(array.dtype.name, array.shape), name))

    def known(self, array):
        return self.operand(Constant(MLOperandDescriptor(array.dtype.name, array.shape), array))

    def graph(self, **outputs):
        return Graph.reaching({name: self.value(operand) for name, operand in outputs.items()})


def operators_of(graph):
    return [node.operator.name for node in graph.nodes]


def results(graph, arrays):
    outputs = {name: np.empty(v.descriptor.shape, v.descriptor.data_type) for name, v in graph.outputs.items()}
    NumpyGraph(expand(graph, CAPABILITIES)).run({name: arrays[name] for name in graph.inputs}, outputs)
    return outputs
