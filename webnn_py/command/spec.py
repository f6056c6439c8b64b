"""``webnn-py spec``: the operators as data."""

import argparse

from webnn_py.command import operator_table
from webnn_py.command.failures import BadInputError
from webnn_py.command.printing import print_json, print_lines
from webnn_py.core.message_text import nearest, shown, table


def spec(options: argparse.Namespace) -> int:
    """Print what is known of all operators, or of those that are named.

    Raises:
        BadInputError: there is no such operator.
        CommandFailedError: the extra ``onnx`` is not installed.
    """
    known = operator_table.by_any_name()
    for name in options.operators:
        if name not in known:
            raise BadInputError(f"no operator {shown(name)}; webnn-py spec lists them{nearest(name, known)}")
    named = list(dict.fromkeys(known[name] for name in options.operators))
    found = operator_table.records(named or operator_table.in_order())
    if options.json:
        print_json(found)
    else:
        print_lines(table(operator_table.rows(found)))
    return 0
