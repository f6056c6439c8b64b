"""Graphs as JavaScript: a folder with a module that builds one by ``navigator.ml``, its weights, and a page.

    folder    writes all of it
    module    the module, and its TypeScript declarations
    weights   constants: short ones stand in the module, the others in one file
    names     of the module's variables
    literals  values as JavaScript writes them
    assets    what is the same for every graph: the running of it, and the page

Nothing here knows devices, promises or a user's arguments.
"""
