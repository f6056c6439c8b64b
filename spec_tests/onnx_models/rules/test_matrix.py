from onnx import TensorProto

from spec_tests.onnx_models.single_node import Random, compared, node

random = Random(6)
floats = random.floats


SHAPES = [
    ([3, 4], [4, 5]),
    ([2, 3, 4], [4, 5]),
    ([2, 1, 3, 4], [5, 4, 2]),
    ([4], [4, 5]),
    ([3, 4], [4]),
    ([4], [4]),
    ([4], [2, 4, 5]),
    ([2, 3, 4], [4]),
]


test_matmul = compared(
    *(node("MatMul", [1, 9, 13], floats(*a), floats(*b)) for a, b in SHAPES),
    node("MatMul", 13, floats(3, 4), floats(4, 5), known=(1,)),
    *(
        node("MatMul", 13, random.rng.integers(0, 9, a).astype(name), random.rng.integers(0, 9, b).astype(name))
        for (a, b), name in zip(SHAPES[2:6], ("int32", "int64", "uint32", "uint64"), strict=True)
    ),
)


test_gemm = compared(
    node("Gemm", [7, 9, 11, 13], floats(3, 4), floats(4, 5), floats(5)),
    node("Gemm", [7, 9, 11, 13], floats(4, 3), floats(5, 4), floats(3, 5), transA=1, transB=1),
    node("Gemm", [7, 9, 11, 13], floats(3, 4), floats(4, 5), floats(3, 1), alpha=0.5, beta=2.0),
    node("Gemm", [11, 13], floats(3, 4), floats(4, 5), alpha=0.5),
    node("Gemm", 13, floats(3, 4), floats(4, 5), floats(), known=(1, 2)),
)


test_unit_matrices = compared(
    *(node("EyeLike", [9, 22], floats(3, 4), k=k) for k in (0, 1, -2)),
    node("EyeLike", [9, 22], floats(3, 4), dtype=TensorProto.INT64),
)


test_determinants = compared(
    *(node("Det", [11, 22], floats(2, 3, size, size)) for size in (1, 2, 3, 4)),
    node("Det", 22, floats(8, 8)),
)
