"""Which operators are element-wise is declared once; it is true, and what devices fuse follows from it."""

import numpy as np

from spec_tests.operators.minimal import computed, minimal, operand_rows, tensors_of
from spec_tests.support.cells import cells
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.devices.numpy import backend  # noqa: F401 - fills the table of numpy kernels
from webnn_py.devices.numpy import table as numpy_kernels
from webnn_py.devices.wgpu import kernels  # noqa: F401 - fills the table of WGSL kernels
from webnn_py.devices.wgpu.records import table as wgsl_kernels

ELEMENTWISE = sorted(name for name, operator in OPERATORS.items() if operator.is_elementwise)


def square(name):
    """A call on operands of the shape [2, 2], or of another where the operator has no such operands."""
    rows = operand_rows(OPERATORS[name])
    return minimal(name, rank={operand: 2 for operand, row in rows.items() if row.ranks.min <= 2 <= row.ranks.max})


@cells("name", ELEMENTWISE)
async def test_elements_in_another_order_give_the_results_in_that_order(numpy_context, rng, name):
    arrays = {key: rng.uniform(0, 4, value.shape).astype(value.data_type) for key, value in tensors_of(square(name))}
    order = np.array([2, 0, 3, 1])
    shuffled = {key: array.reshape(-1)[order].reshape(array.shape) for key, array in arrays.items()}
    results = [await computed(numpy_context, name, square(name), inputs) for inputs in (arrays, shuffled)]
    in_order, in_another = (result["output0"] for result in results)
    assert in_order.size == order.size
    np.testing.assert_array_equal(in_another.reshape(-1), in_order.reshape(-1)[order])


def test_the_gpu_has_expressions_of_exactly_the_elementwise_operators_that_are_no_views():
    entries = {name: wgsl_kernels.find(operator) for name, operator in OPERATORS.items()}
    expressions = [name for name, entry in entries.items() if entry.expression is not None]
    assert sorted(expressions) == [name for name in ELEMENTWISE if entries[name].layout is None]


def test_only_identity_is_elementwise_and_a_view():
    entries = {name: numpy_kernels.find(OPERATORS[name]) for name in ELEMENTWISE}
    views = [name for name, entry in entries.items() if entry is not None and entry.view is not None]
    assert views == ["identity"]
