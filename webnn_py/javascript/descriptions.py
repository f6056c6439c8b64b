"""The description of the API, which the bindings are made from: the specification's, or that of IDL that is given.

The specification's is shipped as data, made from its IDL by ``spec_tests/idl/make_spec_facts.py``. The parser of IDL is
webidl2, which web-platform-tests bring along; it runs in an engine like any script.
"""

import json
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from webnn_py.javascript.engine import EngineName, ScriptError, own_source, start
from webnn_py.javascript.engine_commands import UNLIMITED

Description = dict[str, Any]

PARSER = "resources/webidl2/lib/webidl2.js"
"""Where a checkout of web-platform-tests has the parser."""


_TELL = """(runtime) => {
  runtime.tell = (idl) => runtime.send(JSON.stringify(runtime.describe(WebIDL2.parse(idl))), null);
}"""


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


def from_idl(idl: str, parser: str, engine_name: EngineName = "quickjs") -> Description:
    """Describe the API that ``idl`` defines.

    Args:
        idl: the text of the IDL.
        parser: the source of webidl2.js.
        engine_name: where the parser runs.

    Raises:
        ValueError: the IDL cannot be parsed.
    """
    answers: list[str] = []

    def host(text: str, _payload: memoryview | None) -> tuple[str, memoryview | None]:
        answers.append(text)
        return "{}", None

    engine = start(engine_name, UNLIMITED, host)
    try:
        engine.evaluate(parser, PARSER)
        engine.load(own_source("description.js"), "description.js")
        engine.load(_TELL, "tell")
        engine.call("tell", json.dumps(idl))
    except ScriptError as error:
        raise ValueError(f"the IDL cannot be parsed: {error}") from error
    finally:
        engine.close()
    description: Description = json.loads(answers[0])
    return description
