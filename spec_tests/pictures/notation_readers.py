"""Readers of just so much of mermaid's and Graphviz' notation as pictures of graphs use; anything else is refused."""

import json
import re

import attrs


@attrs.define
class Read:
    """The parsed picture: boxes with their lines and frame, edges with their texts, titles of frames and of all."""

    boxes: dict[str, tuple[list[str], str]] = attrs.field(factory=dict)
    edges: list[tuple[str, str, str]] = attrs.field(factory=list)
    frames: dict[str, str] = attrs.field(factory=dict)
    title: str = ""


def _unique(read, key, lines, frame):
    assert key not in read.boxes, f"{key} is drawn twice"
    read.boxes[key] = (lines, frame)


MERMAID_TEXT = r"(?:[A-Za-z0-9 .,:_=()\[\]+*/]|#\d+;|<br/>)*"
MERMAID = {
    "box": re.compile(rf'(\w+)(?:\["|\(\[")({MERMAID_TEXT})(?:"\]\)|"\]):::(\w+)'),
    "edge": re.compile(rf'(\w+) -->\|"({MERMAID_TEXT})"\| (\w+)'),
    "frame": re.compile(rf'subgraph (\w+)\["({MERMAID_TEXT})"\]'),
    "class": re.compile(r"classDef (\w+) [\w#:,\- ]+"),
}


def _mermaid_text(text):
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), text)


def read_mermaid(text):
    first, *lines = text.splitlines()
    read, frame, classes, used = Read(), "", set(), set()
    if first == "---":
        title, end, first, *lines = lines
        assert (title[:7], end) == ("title: ", "---")
        read.title = json.loads(title[7:])
    assert first == "flowchart TD"
    for line in map(str.strip, lines):
        if line == "end":
            assert frame
            frame = ""
        elif found := MERMAID["edge"].fullmatch(line):
            read.edges.append((found[1], found[3], _mermaid_text(found[2])))
        elif found := MERMAID["box"].fullmatch(line):
            _unique(read, found[1], [_mermaid_text(part) for part in found[2].split("<br/>")], frame)
            used.add(found[3])
        elif found := MERMAID["frame"].fullmatch(line):
            assert not frame
            frame = found[1]
            read.frames[frame] = _mermaid_text(found[2])
        else:
            found = MERMAID["class"].fullmatch(line)
            assert found, f"not mermaid: {line}"
            classes.add(found[1])
    assert not frame
    assert used <= classes
    return read


DOT_TEXT = r'"((?:[^"\\&\n]|\\["\\n]|&amp;)*)"'
DOT = {
    "box": re.compile(rf'(\w+) \[label={DOT_TEXT}, shape=box(?:, style="[a-z,]+")?(?:, fillcolor="#\w{{6}}")?\];'),
    "edge": re.compile(rf"(\w+) -> (\w+) \[label={DOT_TEXT}\];"),
    "frame": re.compile(rf'subgraph cluster_(\w+) {{ label={DOT_TEXT}; fontname="monospace"; fontsize=10;'),
    "title": re.compile(rf'label={DOT_TEXT}; labelloc=t; fontname="monospace";'),
    "defaults": re.compile(r'(?:node|edge) \[fontname="monospace", fontsize=\d+\];'),
}


def _dot_lines(text):
    parts = re.split(r"(\\.)", text)
    whole = "".join({"\\n": "\n", "\\\\": "\\", '\\"': '"'}.get(part, part) for part in parts)
    return whole.replace("&amp;", "&").split("\n")


def read_dot(text):
    first, *lines, last = text.splitlines()
    assert (first, last) == ("digraph webnn {", "}")
    read, frame = Read(), ""
    for line in map(str.strip, lines):
        if line == "}":
            assert frame
            frame = ""
        elif found := DOT["edge"].fullmatch(line):
            read.edges.append((found[1], found[2], _dot_lines(found[3])[0]))
        elif found := DOT["box"].fullmatch(line):
            _unique(read, found[1], _dot_lines(found[2]), frame)
        elif found := DOT["frame"].fullmatch(line):
            assert not frame
            frame = found[1]
            (read.frames[frame],) = _dot_lines(found[2])
        elif found := DOT["title"].fullmatch(line):
            assert not read.boxes, "the title comes first"
            (read.title,) = _dot_lines(found[1])
        else:
            assert DOT["defaults"].fullmatch(line), f"not dot: {line}"
    assert not frame
    return read
