"""Checks that hold for the picture of any graph."""

from xml.etree import ElementTree as ET

from spec_tests.graph_pictures.notation_readers import read_dot, read_mermaid
from webnn_py.operators.registry import OPERATORS

MAY_BE_VIEWS = {"reshape", "transpose", "slice", "expand", "split", "identity", "reverse", "pad", "tile", "concat"}
MAY_BE_VIEWS |= {name for name, operator in OPERATORS.items() if operator.keeps_one_element}
"""Operators that some device looks at its operand for, in some cases, instead of running a kernel."""


def check_picture(graph):
    """Every operator is accounted for, and every notation shows the same boxes and wires."""
    picture = graph.picture()
    scene, plan, operators = picture._scene, graph._plan, graph._description.operators
    if plan is not None:
        places = {operator.place for operator in operators}
        for kernel in plan.kernels:
            assert kernel.operators, f"the kernel {kernel.name} computes nothing"
            assert places.issuperset(kernel.operators)
        for operator, box in zip(operators, (box for box in scene.boxes if box.key.startswith("n")), strict=True):
            if box.kind == "view":
                assert operator.operator.name in MAY_BE_VIEWS, f"{box.title} is computed by no kernel"
    mermaid, dot = read_mermaid(picture.to_mermaid()), read_dot(picture.to_dot())
    assert mermaid == dot
    assert len(mermaid.boxes) == len(operators) + len(graph.input_descriptors) + len(graph.output_descriptors)
    svg = ET.fromstring(picture.to_svg())  # noqa: S314 - of our own making
    assert sum(item.get("class", "").startswith("box ") for item in svg.iter()) == len(mermaid.boxes)
    assert picture.describe().startswith(f"graph of {len(operators)} operator")
