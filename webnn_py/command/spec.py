"""``webnn-py spec``: the operators as data."""

import argparse
import difflib

from webnn_py.command import operator_table
from webnn_py.command.failures import BadInputError
from webnn_py.command.printing import print_json, print_lines
from webnn_py.message_text import shown, table


def spec(options: argparse.Namespace) -> int:
    """Print what is known of all operators, or of those that are named.

    Raises:
        BadInputError: there is no such operator.
        CommandFailedError: the extra ``onnx`` is not installed.
    """
    known = operator_table.by_any_name()
    for name in options.operators:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; there is {near[0]}" if near else "; webnn-py spec lists them"
            raise BadInputError(f"there is no operator {shown(name)}{hint}")
    found = operator_table.records([known[name] for name in options.operators] or operator_table.in_order())
    if options.json:
        print_json(found)
    else:
        print_lines(table(operator_table.rows(found)))
    return 0
