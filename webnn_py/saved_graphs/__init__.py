"""Saved graphs: what is kept of a compiled graph, its file, and the folder of these files.

    folder   a file for each key, written at once or not at all, within a number of bytes
    sealed   the file: a short description, JSON and bytes, sealed with the folder's secret
    nodes    a graph of nodes as JSON and bytes, for devices that have no form of their own
    record   what a file says

Nothing here knows devices, promises or a user's arguments.
"""
