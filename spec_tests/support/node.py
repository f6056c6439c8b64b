"""The Node of the extra ``javascript``, before that of the machine, which may be older."""

import os

from webnn_py.javascript.node_files import own_node


def path_with_own_node():
    """Return a PATH that begins with its folder."""
    return os.pathsep.join([str(own_node().parent), os.environ.get("PATH", os.defpath)])
