"""Extensions: proposals and browsers' limits, each of which attaches by ``webnn_py.core.extension.Extension`` alone.

::

    int4            integers of four bits
    subgraph        operators that are drawn once, named, and called
    dynamic_shapes  graphs whose dimensions have names, compiled for each set of sizes
    compute_policy  one option in the place of power_preference and accelerated
    browser_limits  what browsers accept

``open_ml(experimental={"subgraph"})`` and the like stand for the first four.
"""

from webnn_py.core.extension import SHORT_FORMS, Extension


def _int4() -> Extension:
    from webnn_py.extensions.int4 import Int4  # noqa: PLC0415 - imported when it is used

    return Int4()


def _compute_policy() -> Extension:
    from webnn_py.extensions.compute_policy import ComputePolicy  # noqa: PLC0415 - imported when it is used

    return ComputePolicy()


def _dynamic_shapes() -> Extension:
    from webnn_py.extensions.dynamic_shapes import DynamicShapes  # noqa: PLC0415 - imported when it is used

    return DynamicShapes()


def _subgraph() -> Extension:
    from webnn_py.extensions.subgraph import Subgraphs  # noqa: PLC0415 - imported when it is used

    return Subgraphs()


SHORT_FORMS["int4"] = _int4
SHORT_FORMS.update({"compute-policy": _compute_policy, "dynamic-shapes": _dynamic_shapes, "subgraph": _subgraph})
