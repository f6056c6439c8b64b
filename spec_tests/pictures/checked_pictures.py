"""Checks that hold for the picture of any graph."""

from xml.etree import ElementTree as ET

from spec_tests.pictures.notation_readers import read_dot, read_mermaid
from webnn_py import pictures
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.pictures.drawn_graph import DrawnGraph
from webnn_py.pictures.scene import Scene

MAY_BE_VIEWS = {"reshape", "transpose", "slice", "expand", "split", "identity", "reverse", "pad", "tile", "concat"}
MAY_BE_VIEWS |= {name for name, operator in OPERATORS.items() if operator.keeps_one_element}
"""Operators that some device looks at its operand for, in some cases, instead of running a kernel."""


def check_picture(graph):
    """Every operator is accounted for, and every notation shows the same boxes and wires."""
    picture = pictures.picture(graph)
    plan, nodes = picture.plan, graph.source.nodes
    if plan is not None:
        scene = Scene.from_graph(DrawnGraph.from_plan(graph.source, plan))
        places = {place for node in nodes for place in node.drawn}
        for kernel in plan.kernels:
            assert kernel.operators, f"the kernel {kernel.name} computes nothing"
            assert places.issuperset(kernel.operators)
        for node, box in zip(nodes, (box for box in scene.boxes if box.key.startswith("n")), strict=True):
            if box.kind == "view":
                assert node.operator.name in MAY_BE_VIEWS, f"{box.title} is computed by no kernel"
    mermaid, dot = read_mermaid(picture.to_mermaid()), read_dot(picture.to_dot())
    assert mermaid == dot
    assert len(mermaid.boxes) == len(nodes) + len(graph.input_descriptors) + len(graph.output_descriptors)
    svg = ET.fromstring(picture.to_svg())  # noqa: S314 - of our own making
    assert sum(item.get("class", "").startswith("box ") for item in svg.iter()) == len(mermaid.boxes)
    assert picture.describe().startswith(f"graph of {len(nodes)} operator")
