"""Small ONNX models for sessions, as the bytes of their files."""

import numpy as np
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

TYPES = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "float16": TensorProto.FLOAT16,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "int8": TensorProto.INT8,
    "bool": TensorProto.BOOL,
    "string": TensorProto.STRING,
}


def make_model(nodes, inputs, outputs, initializers=None, *, opset):
    """Return a model in bytes, given arrays that its inputs and initializers are like.

    Shapes and types of outputs are left to whoever runs it.
    """
    initializers = initializers or {}
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(item.dtype), item.shape)
            for name, item in inputs.items()
            if name not in initializers
        ],
        [ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(item, name) for name, item in initializers.items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    ir_version = helper.find_min_ir_version_for(opsets)
    opsets += [helper.make_opsetid(domain, 1) for domain in sorted({item.domain for item in nodes} - {""})]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)
    return model.SerializeToString()


def program(nodes, inputs, outputs, weights=None, opset=17):
    """A model; inputs and outputs are ``name: (data type, shape)``."""
    graph = helper.make_graph(
        [helper.make_node(operator, of, to, **attributes) for operator, of, to, attributes in nodes],
        "program",
        [helper.make_tensor_value_info(name, TYPES[kind], shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, TYPES[kind], shape) for name, (kind, shape) in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    opsets += [helper.make_opsetid(domain, 1) for domain in sorted({node.domain for node in graph.node} - {""})]
    return helper.make_model(graph, opset_imports=opsets).SerializeToString()


def add(number=1.0, shape=(2, 3)):
    """y = x + number"""
    kind = ("float32", list(shape))
    return program([("Add", ["x", "w"], ["y"], {})], {"x": kind}, {"y": kind}, {"w": np.array([number], np.float32)})


def sum_and_difference(shape=(2, 3)):
    """s = a + b, d = a - b"""
    kind = ("float32", list(shape))
    nodes = [("Add", ["a", "b"], ["s"], {}), ("Sub", ["a", "b"], ["d"], {})]
    return program(nodes, {"a": kind, "b": kind}, {"s": kind, "d": kind})


def product(weights, rows="batch"):
    """y = x · weights, for any number of rows"""
    inner, columns = weights.shape
    return program(
        [("MatMul", ["x", "w"], ["y"], {})],
        {"x": ("float32", [rows, inner])},
        {"y": ("float32", [rows, columns])},
        {"w": weights},
    )


def chain(count, shape=(2,)):
    """x + 1 + 1 + …, ``count`` nodes"""
    kind = ("float32", list(shape))
    names = ["x", *(f"t{index}" for index in range(count - 1)), "y"]
    nodes = [("Add", [names[index], "w"], [names[index + 1]], {}) for index in range(count)]
    return program(nodes, {"x": kind}, {"y": kind}, {"w": np.ones(1, np.float32)})
