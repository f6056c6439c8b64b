"""The cases of web-platform-tests with data types of four bits, which the proposal "int4" has."""

import numpy as np
import pytest

import webnn_py
from spec_tests.operators.test_four_bits import four_bits
from spec_tests.support.backends import DEVICES
from spec_tests.support.computing import compute
from spec_tests.wpt.option import needed_vectors
from spec_tests.wpt.vectors import array, read
from webnn_py import MLGraphBuilder

OPERATORS = {"dequantizeLinear": "dequantize_linear", "quantizeLinear": "quantize_linear"}


def drawn(builder, raw):
    """The output of a case's one operator; scale and zero point have the input's rank."""
    (call,) = raw["operators"]
    rank, operands = 0, []
    for (name,) in (argument.values() for argument in call["arguments"]):
        tensor = raw["inputs"][name]
        rank = max(rank, len(tensor["shape"]))
        elements = array(tensor | {"dataType": tensor["dataType"].replace("int4", "int64")})
        elements = elements.reshape((1,) * (rank - elements.ndim) + elements.shape)
        is_four = tensor["dataType"].endswith("int4")
        operands.append(four_bits(builder, elements, tensor["dataType"]) if is_four else builder.constant(elements))
    return getattr(builder, OPERATORS[call["name"]])(*operands)


def unpacked(data, tensor):
    """Elements as web-platform-tests look at them."""
    values = np.array([half for byte in data for half in (byte & 15, byte >> 4)], int)[
        : np.prod(tensor["shape"], dtype=int)
    ]
    return np.where(values >= 8, values - 16, values) if tensor["dataType"] == "int4" else values


@pytest.mark.parametrize("backend", DEVICES)
async def test_every_case_of_four_bits_computes_what_it_expects(backend, pytestconfig):
    cases = [vector for vector in read(needed_vectors(pytestconfig)) if "int4" in str(vector.raw)]
    assert len(cases) == 14
    async with webnn_py.open_ml(experimental={"int4"}) as ml:
        context = await ml.create_context(backend=backend)
        for vector in cases:
            builder = MLGraphBuilder(context)
            y = drawn(builder, vector.raw)
            (tensor,) = vector.raw["expectedOutputs"].values()
            assert (y.data_type, list(y.shape)) == (tensor["dataType"], tensor["shape"]), vector.id
            found = (await compute(context, builder, {}, {"y": y}))["y"]
            if y.data_type == "float32":
                np.testing.assert_array_max_ulp(found.ravel(), array(tensor).ravel(), 1)
                continue
            distance = np.abs(unpacked(found, tensor) - np.array(tensor["data"]))
            assert distance.max() <= vector.raw["tolerance"]["value"], vector.id
