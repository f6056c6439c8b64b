"""``GraphPicture``: a graph to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from html import escape
from typing import Final

from webnn_py.core.graph import Graph
from webnn_py.devices.compiled_plan import CompiledPlan
from webnn_py.devices.rewriting.report import PassReport, describe
from webnn_py.pictures import text
from webnn_py.pictures.drawn_graph import DrawnGraph
from webnn_py.pictures.notations import to_dot, to_mermaid
from webnn_py.pictures.page import page_of
from webnn_py.pictures.scene import Scene
from webnn_py.pictures.svg import to_svg

MOST_DRAWN: Final = 200
"""A notebook shows a picture of so many operators, and of more only the text."""

SECTION: Final = 50
"""The operators in each part of that text that can be folded."""


class GraphPicture:
    """A graph to look at: as text, in mermaid's or Graphviz' notation, as SVG, as a page, or in a notebook.

    It shows operators with labels, options and constants, data types and shapes on the edges, and, where a device has
    compiled the graph, what it has made of it: what one kernel computes together, what was computed when the graph was
    built, what is but a view, and the memory that it takes. Made by :func:`webnn_py.pictures.picture`.

    Attributes:
        plan: the kernels and the memory of the compiled graph; None where the device reports none, of a graph that is
            not compiled yet, and of one that was destroyed.
        passes: what each pass of the device did to the graph; empty on devices without passes.
    """

    __module__ = "webnn_py"  # where it is public

    def __init__(self, graph: Graph, label: str = "", where: str = "", compiled: object = None) -> None:
        # Devices that have no kernels or passes to show leave the attributes out.
        self.plan: CompiledPlan | None = getattr(compiled, "plan", None)
        self.passes: Sequence[PassReport] = getattr(compiled, "passes", ())
        self._drawn = DrawnGraph.from_plan(graph, self.plan)
        self._label = label
        self._where = where
        self._operator_count = len(graph.nodes)

    @cached_property
    def _scene(self) -> Scene:
        return Scene.from_graph(self._drawn)

    def describe(self, *, passes: bool = False) -> str:
        """Return the graph as text: a line for each input, output, operator and kernel.

        Args:
            passes: whether to add what each pass of the device did to the graph: its nodes before and after, the time
                that it took, and the rules that it applied, or did not apply and why. There is nothing to add on
                devices without passes.
        """
        whole = text.whole(self._drawn, self._where, self._label)
        return f"{whole}\npasses\n{describe(self.passes)}" if passes and self.passes else whole

    def to_mermaid(self) -> str:
        """Return a flowchart in mermaid's notation, which GitHub and many editors draw."""
        return to_mermaid(self._scene, self._label)

    def to_dot(self) -> str:
        """Return a digraph in Graphviz' notation."""
        return to_dot(self._scene, self._label)

    def to_svg(self) -> str:
        """Return a picture in SVG, complete in itself, light or dark as the reader's system is."""
        return to_svg(self._scene, self._title)

    def to_html(self, title: str | None = None) -> str:
        """Return a page to look around in, complete in itself: it loads nothing, and needs no network.

        It has pan, zoom and search, by pointer, fingers and keys; of an operator it shows attributes, operands and
        results, of a weight its shape and statistics (min, max, mean, standard deviation, zeros, NaN and infinities),
        of a kernel the operators that it computes. Statistics are computed here, which takes about a second for 50
        million elements; weights that only the device has, in constant buffers, have none.

        Args:
            title: of the page; if not given, the graph's label and how many operators it has.
        """
        return page_of(self._drawn, list(self._summary()), title or self._title)

    @property
    def _title(self) -> str:
        return text.title(self._drawn, self._label)

    def _summary(self) -> Iterator[str]:
        return text.summary(self._drawn, self._where, self._label)

    def _repr_svg_(self) -> str | None:
        """For notebooks: the picture, unless it would be too large to be of use."""
        return self.to_svg() if self._operator_count <= MOST_DRAWN else None

    def _repr_html_(self) -> str:
        """For notebooks: the picture, and the text in sections that can be folded."""
        parts = [f'<div><pre style="white-space:pre-wrap">{escape(chr(10).join(self._summary()))}</pre>']
        if self._operator_count > MOST_DRAWN:
            parts.append(f"<p>Not drawn, since it has more than {MOST_DRAWN} operators; to_svg() draws it.</p>")
        else:
            parts.append(to_svg(self._scene, self._title, fits=True))
        parts += self._sections()
        return "\n".join([*parts, "</div>\n"])

    def _sections(self) -> Iterator[str]:
        yield _section("inputs and outputs", text.ends(self._drawn))
        for start in range(0, self._operator_count, SECTION):
            stop = min(start + SECTION, self._operator_count)
            yield _section(f"operators {start + 1} to {stop}", text.operators(self._drawn, start, stop))
        if self.plan is not None:
            yield _section(f"kernels ({len(self.plan.kernels)})", text.kernels(self._drawn))

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        return f"<GraphPicture {next(self._summary())}>"


def _section(title: str, lines: Iterator[str]) -> str:
    text = escape(chr(10).join(lines))
    return f'<details><summary>{title}</summary><pre style="overflow:auto">{text}</pre></details>'
