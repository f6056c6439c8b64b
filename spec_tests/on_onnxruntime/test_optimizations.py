"""Onnxruntime's optimizations of whole graphs keep the meaning that the specification gives them."""

import attrs
import numpy as np
import pytest

from spec_tests.on_onnxruntime.meaning import DRAWINGS
from spec_tests.operators.cases import difference
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder, OperationError

onnxruntime = pytest.importorskip("onnxruntime")
engine = pytest.importorskip("webnn_py.devices.onnxruntime.engine", exc_type=ImportError)

SHOWN_BY = {
    "ConvMulFusion": "conv2d, scaled",
    "DivMulFusion": "1 / x · y",
    "DoubleQDQPairsRemover": "quantized twice",
    "MatMulScaleFusion": "matmul of what was scaled",
    "Pad_Fusion": "pad and integer max pool",
}
"""The drawing that an optimizer would change."""
MENDED = {"Pad_Fusion": (1, 32)}
"""The first version of onnxruntime in which an optimizer that is left out for older ones computes the same."""
VERSION = tuple(map(int, onnxruntime.__version__.split(".")[:2]))
BY_NAME = {drawing.name: drawing for drawing in DRAWINGS}


@pytest.mark.parametrize("drawing", [pytest.param(drawing, id=drawing.name) for drawing in DRAWINGS])
async def test_a_drawing_computes_what_it_does_on_numpy(contexts, drawing):
    got, expected = [await drawing.compute(context) for context in contexts]
    assert not difference(got, expected, drawing.tolerance)


@pytest.mark.parametrize("optimizer", engine.DISABLED)
async def test_an_optimizer_that_is_left_out_would_change_a_drawing(contexts, optimizer, monkeypatch):
    """Else it may be let in again; the name may also be one that onnxruntime does not know."""
    monkeypatch.delitem(engine.DISABLED, optimizer)
    drawing = BY_NAME[SHOWN_BY[optimizer]]
    got, expected = [await drawing.compute(context) for context in contexts]
    is_mended = MENDED.get(optimizer, (99,)) <= VERSION
    assert bool(difference(got, expected, drawing.tolerance)) != is_mended, "whether it computes the same has changed"


async def test_quantization_that_is_done_in_integers_would_change_a_drawing(contexts, monkeypatch):
    for name in [*engine.CONFIGURATION]:
        monkeypatch.delitem(engine.CONFIGURATION, name)
    drawing = BY_NAME["quantized conv2d"]
    got, expected = [await drawing.compute(context) for context in contexts]
    assert difference(got, expected, drawing.tolerance), "it computes the same now: let it in"


@pytest.mark.parametrize("method", ["transpose", "identity"])
async def test_a_transposed_operand_of_gemm_may_be_an_output(contexts, method, monkeypatch):
    """No session is made of it with the optimizer that puts both transpositions into the product."""
    arrays = {name: np.arange(6, dtype=np.float32).reshape(shape) for name, shape in (("a", (2, 3)), ("b", (3, 2)))}

    async def computed(context):
        builder = MLGraphBuilder(context)
        a, b = (builder.input(name, data_type="float32", shape=array.shape) for name, array in arrays.items())
        a, b = builder.transpose(a), builder.transpose(b)
        given = a if method == "transpose" else builder.identity(a)
        return await compute(context, builder, arrays, {"given": given, "product": builder.gemm(a, b)})

    expected, got = await computed(contexts[1]), await computed(contexts[0])
    np.testing.assert_array_equal(got["product"], expected["product"])
    np.testing.assert_array_equal(got["given"], arrays["a"].T)
    monkeypatch.setattr(engine, "FUSES_INTO_GEMM", "MatmulTransposeFusion")
    if method == "transpose" and VERSION >= (1, 32):  # in which the transposition that is an output stays
        got = await computed(contexts[0])
        np.testing.assert_array_equal(got["product"], expected["product"])
        return
    with pytest.raises(OperationError, match="cannot be compiled"):
        await computed(contexts[0])


async def test_a_drawing_that_is_changed_is_noticed(contexts):
    drawing = BY_NAME["x + 0"]
    changed = attrs.evolve(drawing, feeds=tuple(-array for array in drawing.feeds))
    got, expected = await changed.compute(contexts[0]), await drawing.compute(contexts[1])
    assert difference(got, expected, drawing.tolerance)


async def test_a_cast_of_floats_stays_apart_from_the_cast_to_a_smaller_integer(contexts, written):
    """onnxruntime makes one cast of two in a row; x86 casts negative floats to uint8 alike, other processors do not."""
    x = np.float32([-1, 8, 300, -7])
    results = []
    for context in contexts:
        builder = MLGraphBuilder(context)
        wide = builder.cast(builder.input("x", data_type="float32", shape=[4]), "int32")
        results.append((await compute(context, builder, {"x": x}, {"y": builder.cast(wide, "uint8")}))["y"])
    assert [array.tolist() for array in results] == [[255, 8, 44, 249]] * 2
    assert written["Neg"] == 2
