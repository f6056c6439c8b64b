"""The decompositions of all operators that have one."""

from webnn_py.core.operators.registry import OPERATORS

DECOMPOSITIONS = {
    name: operator.decomposition for name, operator in OPERATORS.items() if operator.decomposition is not None
}
