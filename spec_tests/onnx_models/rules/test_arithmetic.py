import numpy as np

from spec_tests.onnx_models.single_node import check, each, node

rng = np.random.default_rng(1)
A, B, ROW = (rng.uniform(-2, 2, shape).astype(np.float32) for shape in ([2, 3, 4], [2, 3, 4], [4]))
POSITIVE = np.abs(A) + np.float32(0.1)
INTEGERS = rng.integers(-9, 9, [2, 3]).astype(np.int32)
OTHERS = np.array([[1, -2, 3]], np.int32)


@each(
    *(
        node(operator, [7, 13, 14], *inputs)
        for operator in ("Add", "Sub", "Mul", "Div")
        for inputs in ((A, B), (A, ROW), (ROW, A), (INTEGERS, OTHERS))
    ),
    *(node(operator, [14], A, ROW, known=(1,)) for operator in ("Add", "Sub", "Mul", "Div")),
    node("Add", 14, A.astype(np.float16), B.astype(np.float16), relative=2e-3),
    node("Mul", 14, INTEGERS.astype(np.int64), OTHERS.astype(np.int64)),
)
async def test_two_operands_broadcast(context, case):
    await check(context, case)


@each(
    *(node(operator, [6, 8, 13], A) for operator in ("Max", "Min", "Sum", "Mean")),
    *(node(operator, [6, 8, 13], A, B) for operator in ("Max", "Min", "Sum", "Mean")),
    *(node(operator, [8, 13], A, ROW, B) for operator in ("Max", "Min", "Sum", "Mean")),
    *(node(operator, 12, INTEGERS, OTHERS) for operator in ("Max", "Min")),
)
async def test_any_number_of_operands(context, case):
    await check(context, case)


@each(
    node("Pow", [7, 12, 13, 15], POSITIVE, ROW),
    node("Pow", [7, 12, 13, 15], A, np.array(2, np.float32), known=(1,)),
    node("Pow", [12, 13, 15], A, np.array(3, np.int64), known=(1,)),
    node("Pow", 15, POSITIVE, np.array([1, 2, 3, 4], np.int32)),
    node("Pow", 15, INTEGERS, np.array(2, np.int32)),
    node("Pow", 15, INTEGERS, np.array(2, np.float32), known=(1,)),
    node("Pow", 15, INTEGERS, np.array([0, 1, 3], np.int64), known=(1,)),
    node("Pow", 15, INTEGERS, np.array([0, 1, 3], np.int64)),
    node("Pow", 15, INTEGERS, np.array([0, 1, 3], np.float32)),
    node("Pow", 15, np.array([1, 4, 125, 49, 10], np.int64), np.array([0.5, 0.5, 1 / 3, 1.5, 2], np.float32)),
    node("Pow", 15, np.array([1, 4, 125, 49, 11], np.int32), np.array(0.5, np.float32), known=(1,)),
)
async def test_the_power_has_the_type_of_its_base(context, case):
    await check(context, case)


@each(
    node("Mod", [10, 13], np.array([[7], [-7], [6]], np.int32), np.array([3, -3, 2], np.int32), fmod=0),
    node("Mod", [10, 13], np.array([[7], [-7], [6]], np.int64), np.array([3, -3, 2], np.int64), fmod=1),
    node("Mod", 13, np.array([250, 7], np.uint8), np.array([9, 7], np.uint8)),
    node("Mod", [10, 13], A * 5, B, fmod=1, absolute=1e-5),
    *(
        node(
            "Mod",
            28,
            np.array([4.3, -4.3, 0.5, -np.inf, -0.0, 5], np.float32),
            np.array([[2.1], [-2.1], [np.inf], [1.5]], np.float32),
            fmod=fmod,
            oracle="reference",
        )
        for fmod in (0, 1)
    ),
)
async def test_remainders(context, case):
    await check(context, case)
