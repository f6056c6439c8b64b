"""Pictures of graphs: as text, for mermaid and Graphviz, as SVG and as pages, with what a device has made of the graph.

picture        makes a picture of a graph, or of operands before a build
graph_picture  the picture
text, notations, svg, page  its forms
drawn_graph, scene, layers  what is drawn, and where
"""

from webnn_py.pictures.graph_picture import GraphPicture as GraphPicture
from webnn_py.pictures.picture import picture as picture
