"""Saved graphs: compiled graphs in a folder, for later processes.

saved_graphs  the public class: saves, loads, lists and deletes on a context's device timeline
code          what devices save: code of their own, or nodes
nodes         a graph of nodes as JSON and bytes
folder        a file for each key, written at once or not at all, within a number of bytes
sealed        the file: a short description, JSON and bytes, sealed with the folder's secret
record        what a file says
"""

from webnn_py.saved_graphs.saved_graphs import SavedGraphs as SavedGraphs
