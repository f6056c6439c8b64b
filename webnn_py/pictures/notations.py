"""Graphs for other programs that draw: mermaid's flowcharts and Graphviz' dot."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from webnn_py.core.message_text import visible
from webnn_py.pictures.scene import Box, Scene

_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:_=()[]+*/")

_MERMAID_SHAPES: Final = {"input": ('(["', '"])'), "output": ('(["', '"])')}

_MERMAID_CLASSES: Final = (
    "classDef input fill:#dbeafe,stroke:#1d4ed8,color:#111",
    "classDef output fill:#dcfce7,stroke:#15803d,color:#111",
    "classDef operator fill:#fff,stroke:#555,color:#111",
    "classDef folded fill:#f3f4f6,stroke:#9ca3af,color:#555,stroke-dasharray:4 3",
    "classDef view fill:#fff,stroke:#9ca3af,color:#333,stroke-dasharray:2 3",
)

_DOT_STYLES: Final = {
    "input": 'shape=box, style="rounded,filled", fillcolor="#dbeafe"',
    "output": 'shape=box, style="rounded,filled", fillcolor="#dcfce7"',
    "operator": "shape=box",
    "folded": 'shape=box, style="dashed,filled", fillcolor="#f3f4f6"',
    "view": 'shape=box, style="dashed"',
}


def to_mermaid(scene: Scene, label: str = "") -> str:
    """Return a flowchart, from top to bottom; a label is its title."""
    # Of what YAML has, a title is a string as JSON writes it.
    title = ["---", f"title: {json.dumps(visible(label))}", "---"] if label else []
    lines = [*title, "flowchart TD", *_nested(scene, _mermaid_box, 'subgraph {key}["{title}"]', "end", mermaid_text)]
    lines += [f'  {wire.source} -->|"{mermaid_text(wire.text)}"| {wire.target}' for wire in scene.wires]
    lines += [f"  {line}" for line in _MERMAID_CLASSES]
    return "\n".join(lines) + "\n"


def mermaid_text(text: str) -> str:
    """Return a text between quotes in mermaid, which takes entities for whatever could mean something else."""
    return "".join(character if character in _PLAIN else f"#{ord(character)};" for character in text)


def _mermaid_box(box: Box) -> str:
    begin, end = _MERMAID_SHAPES.get(box.kind, ('["', '"]'))
    return f"{box.key}{begin}{'<br/>'.join(map(mermaid_text, (box.title, *box.lines)))}{end}:::{box.kind}"


def to_dot(scene: Scene, label: str = "") -> str:
    """Return a digraph; a label is its title."""
    lines = [
        "digraph webnn {",
        *([f'  label="{dot_text(visible(label))}"; labelloc=t; fontname="monospace";'] if label else []),
        '  node [fontname="monospace", fontsize=11];',
        '  edge [fontname="monospace", fontsize=10];',
        *_nested(
            scene,
            _dot_box,
            'subgraph cluster_{key} {{ label="{title}"; fontname="monospace"; fontsize=10;',
            "}",
            dot_text,
        ),
    ]
    lines += [f'  {wire.source} -> {wire.target} [label="{dot_text(wire.text)}"];' for wire in scene.wires]
    return "\n".join([*lines, "}"]) + "\n"


def dot_text(text: str) -> str:
    """Return a text between quotes in dot, which takes HTML's entities there, too."""
    return text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')


def _dot_box(box: Box) -> str:
    text = "\\n".join(map(dot_text, (box.title, *box.lines)))
    return f'{box.key} [label="{text}", {_DOT_STYLES[box.kind]}];'


def _nested(
    scene: Scene, draw: Callable[[Box], str], begin: str, end: str, escaped: Callable[[str], str]
) -> Iterator[str]:
    """Yield the boxes, those of a frame within it."""
    boxes: Mapping[str, Box] = {box.key: box for box in scene.boxes}
    framed = {key for frame in scene.frames for key in frame.members}
    yield from (f"  {draw(box)}" for box in scene.boxes if box.key not in framed)
    for frame in scene.frames:
        yield "  " + begin.format(key=frame.key, title=escaped(frame.title))
        yield from (f"    {draw(boxes[key])}" for key in frame.members)
        yield f"  {end}"
