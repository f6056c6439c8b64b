"""The description of the API, which the bindings are made from: the specification's, or that of IDL that is given.

The specification's is shipped as data, made from its IDL by ``spec_tests/idl/make_spec_facts.py``. The parser of IDL is
webidl2, which web-platform-tests bring along; it runs in Node.
"""

import json
import re
import subprocess
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from webnn_py.javascript.node_files import own_node, own_path

Description = dict[str, Any]

PARSER = "resources/webidl2/lib/webidl2.js"
"""Where a checkout of web-platform-tests has the parser."""


@cache
def of_specification() -> Description:
    """Return the API of the specification, of the revision that ``"source"`` names."""
    text = files(__package__).joinpath("specification", "api.json").read_text(encoding="utf-8")
    description: Description = json.loads(text)
    return description


def read_idl(path: Path) -> str:
    """Return the IDL in a file: an ``.idl`` file as it is, of a specification's Bikeshed source its IDL blocks."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".idl":
        return text
    blocks = re.findall(r"<script type=\"?idl\"?>\n(.*?)</script>", text, re.DOTALL)
    if not blocks:
        raise ValueError(f"{path} has no IDL blocks")
    return "\n".join(blocks)


def from_idl(idl: str, parser: Path) -> Description:
    """Describe the API that ``idl`` defines.

    Args:
        idl: the text of the IDL.
        parser: the file webidl2.js.

    Raises:
        NotSupportedError: Node is not installed.
        ValueError: the IDL cannot be parsed.
    """
    answer = subprocess.run(  # noqa: S603 - our own program
        [own_node(), own_path("describe_idl.cjs"), parser],
        input=idl,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if answer.returncode != 0:
        raise ValueError(f"the IDL cannot be parsed: {answer.stderr.strip()}")
    description: Description = json.loads(answer.stdout)
    return description
