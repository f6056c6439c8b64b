"""``webnn-py completion``: a script with which a shell completes the command's words."""

import argparse

from webnn_py.command.failures import needed
from webnn_py.javascript.words import say


def completion(options: argparse.Namespace) -> int:
    """Print the script of a shell."""
    shtab = needed("shtab", "completion")
    say(shtab.complete(options.parser, shell=options.shell))
    return 0
