import numpy as np

from spec_tests.onnx_models.single_node import Random, compared, node

floats = Random(18).floats


EQUATIONS = [
    ("ij,jk->ik", [3, 4], [4, 5]),
    ("ij,jk", [3, 4], [4, 5]),
    ("bij,bjk->bik", [2, 3, 4], [2, 4, 5]),
    ("bhwc,hkc->bhwk", [2, 3, 4, 5], [3, 6, 5]),
    ("b h i d, b h j d -> b h i j", [2, 3, 4, 5], [2, 3, 6, 5]),
    ("...ij,...jk->...ik", [5, 3, 4], [5, 4, 2]),
    ("i,j->ij", [3], [4]),
    ("i,i", [3], [3]),
    ("ij,ij->ij", [3, 4], [3, 4]),
    ("ijk,k->ij", [2, 3, 4], [4]),
    ("ij,kl->jl", [2, 3], [4, 5]),
    ("bij,bkl->bjl", [2, 3, 4], [2, 5, 3]),
    ("ij->ji", [3, 4]),
    ("ij->i", [3, 4]),
    ("ij->", [3, 4]),
    ("ii->i", [4, 4]),
    ("ii", [4, 4]),
    ("...ii->...i", [2, 3, 3]),
    ("iji,j->i", [3, 4, 3], [4]),
    ("i...->...", [3, 4, 2]),
    ("ab,bc,cd->ad", [2, 3], [3, 4], [4, 5]),
    ("ab,ac,ad->bcd", [2, 3], [2, 4], [2, 5]),
]


test_sums_of_products = compared(
    *(node("Einsum", 12, *(floats(*shape) for shape in shapes), equation=equation) for equation, *shapes in EQUATIONS),
    node("Einsum", 12, np.arange(12).reshape(3, 4), np.arange(8).reshape(4, 2), equation="ij,jk->ik"),
    node("Einsum", 12, floats(3, 1), floats(4), equation="ij,j->ij", oracle="reference"),
    node("Einsum", 12, floats(2, 1, 3, 4), floats(5, 4, 2), equation="...ij,...jk->...ik", oracle="reference"),
    node("Einsum", 28, floats(3, 4), floats(4, 5), equation="ij,jk->ki", oracle="reference"),
)
