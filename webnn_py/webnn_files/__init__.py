"""``.webnn`` files: graphs as text, with the weights in a file of their own (webmachinelearning/proposals issue 16).

    text      the records of a file, and its text: reading and writing
    weights   constants as safetensors
    drawing   a file's graph drawn with a builder
    writing   a builder's graph as a file

Nothing here knows devices, promises or a user's arguments.
"""
