"""The conformance cases of all operators, for packages with devices of their own: see ``docs/adding_a_device.md``.

From the top::

    files     the cases as data, and Case
    drawing   a case as a graph, run
    tensors   arrays as they are written, and how results are compared
"""

from webnn_py.testing.device_cases.files import Case, load_all
from webnn_py.testing.device_cases.graphs import Drawn

__all__ = ["Case", "Drawn", "operator_cases"]


def operator_cases(*operators: str) -> list[Case]:
    """Return the cases of these operators, or of all, in a stable order.

    Args:
        operators: names of the builder's methods, such as ``"conv2d"``; all operators if there is none.

    Raises:
        ValueError: There are no cases of such an operator.
    """
    files = {file.operator: file for file in load_all()}
    unknown = [name for name in operators if name not in files]
    if unknown:
        raise ValueError(f"operator_cases(): there is no operator {unknown[0]!r}; there are {', '.join(files)}")
    return [case for name in (operators or files) for case in files[name].cases]


Case.__module__ = __name__
