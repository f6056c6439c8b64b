"""``GraphPicture``: a graph to look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from html import escape
from typing import Final

from webnn_py.graph_pictures import text
from webnn_py.graph_pictures.constants import Array
from webnn_py.graph_pictures.description import GraphDescription
from webnn_py.graph_pictures.notations import to_dot, to_mermaid
from webnn_py.graph_pictures.page import page_of
from webnn_py.graph_pictures.plan import CompiledPlan
from webnn_py.graph_pictures.scene import Scene
from webnn_py.graph_pictures.svg import to_svg

MOST_DRAWN: Final = 200
"""A notebook shows a picture of so many operators, and of more only the text."""

SECTION: Final = 50
"""The operators in each part of that text that can be folded."""


class GraphPicture:
    """A graph to look at: as text, in mermaid's or Graphviz' notation, as SVG, as a page, or in a notebook.

    It shows operators with labels, options and constants, data types and shapes on the edges, and, where a device has
    compiled the graph, what it has made of it: what one kernel computes together, what was computed when the graph was
    built, what is but a view, and the memory that it takes. Made by :meth:`MLGraphBuilder.picture` and
    :meth:`MLGraph.picture`.
    """

    __module__ = "webnn_py"  # where it is public

    def __init__(
        self,
        graph: GraphDescription,
        plan: CompiledPlan | None,
        where: str,
        constants: Mapping[int, Array] | None = None,
        label: str = "",
    ) -> None:
        self._graph = graph
        self._plan = plan
        self._where = where
        self._constants = constants or {}
        self._label = label

    @cached_property
    def _scene(self) -> Scene:
        return Scene.of(self._graph, self._plan)

    def describe(self) -> str:
        """Return the graph as text: a line for each input, output, operator and kernel."""
        return text.whole(self._graph, self._plan, self._where, self._label)

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
        million elements; they are there where the picture has the weights: see :meth:`MLGraphBuilder.picture` and
        :meth:`MLGraph.picture`.

        Args:
            title: of the page; if not given, the graph's label and how many operators it has.
        """
        return page_of(self._graph, self._plan, self._constants, list(self._summary()), title or self._title)

    def _weights_for(self, graph: GraphDescription) -> Mapping[int, Array]:
        """Return the weights of this picture for another description of the same graph."""
        if not self._graph.is_like(graph):
            raise ValueError("picture(): drawn is a picture of another graph; it must be of what was built")
        return self._constants

    @property
    def _title(self) -> str:
        return next(text.summary(self._graph, None, "", self._label)).removesuffix(text.NOT_BUILT)

    def _summary(self) -> Iterator[str]:
        return text.summary(self._graph, self._plan, self._where, self._label)

    def _repr_svg_(self) -> str | None:
        """For notebooks: the picture, unless it would be too large to be of use."""
        return self.to_svg() if len(self._graph.operators) <= MOST_DRAWN else None

    def _repr_html_(self) -> str:
        """For notebooks: the picture, and the text in sections that can be folded."""
        parts = [f'<div><pre style="white-space:pre-wrap">{escape(chr(10).join(self._summary()))}</pre>']
        if len(self._graph.operators) > MOST_DRAWN:
            parts.append(f"<p>Not drawn, since it has more than {MOST_DRAWN} operators; to_svg() draws it.</p>")
        else:
            parts.append(to_svg(self._scene, self._title, fits=True))
        parts += self._sections()
        return "\n".join([*parts, "</div>\n"])

    def _sections(self) -> Iterator[str]:
        graph, plan = self._graph, self._plan
        yield _section("inputs and outputs", text.ends(graph))
        count = len(graph.operators)
        for start in range(0, count, SECTION):
            stop = min(start + SECTION, count)
            yield _section(f"operators {start + 1} to {stop}", text.operators(graph, plan, start, stop))
        if plan is not None:
            yield _section(f"kernels ({len(plan.kernels)})", text.kernels(graph, plan))

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        return f"<GraphPicture {next(self._summary())}>"


def _section(title: str, lines: Iterator[str]) -> str:
    text = escape(chr(10).join(lines))
    return f'<details><summary>{title}</summary><pre style="overflow:auto">{text}</pre></details>'
