"""Pictures of graphs: as text, for mermaid and Graphviz, and as SVG, with what a device has made of the graph."""
