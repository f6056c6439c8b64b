"""The description of the API: the specification's, which is shipped, and that of IDL that is given."""

import json

import pytest

from spec_tests.support.given import CHECKOUT, SPECIFICATION, given
from webnn_py.javascript import descriptions
from webnn_py.javascript.engine import ENGINES, ScriptError, own_source, start
from webnn_py.javascript.engine_commands import UNLIMITED

PARSED = {
    "type": "interface",
    "name": "Thing",
    "inheritance": None,
    "members": [
        {"type": "constructor", "arguments": []},
        {
            "type": "attribute",
            "name": "ready",
            "idlType": {"generic": "Promise", "extAttrs": [], "idlType": [{"idlType": "undefined", "extAttrs": []}]},
            "extAttrs": [],
        },
        {
            "type": "operation",
            "name": "take",
            "idlType": {"idlType": "boolean", "extAttrs": []},
            "arguments": [
                {
                    "name": "size",
                    "optional": True,
                    "idlType": {"idlType": "unsigned long", "extAttrs": []},
                    "extAttrs": [{"name": "EnforceRange"}],
                    "default": {"type": "number", "value": "0x10"},
                }
            ],
        },
    ],
}


def described(definitions, engine="quickjs"):
    answers = []

    def host(text, payload):
        answers.append(json.loads(text))
        return "{}", None

    opened = start(engine, UNLIMITED, host)
    opened.load(own_source("description.js"), "description.js")
    opened.load("(r) => { r.tell = (d) => r.send(JSON.stringify(r.describe(d)), null); }", "tell")
    opened.call("tell", json.dumps(definitions))
    opened.close()
    return answers[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_syntax_tree_becomes_a_description(engine):
    thing = described([PARSED], engine)["interfaces"]["Thing"]
    assert thing == {
        "constructors": [{"arguments": []}],
        "attributes": [{"name": "ready", "type": {"kind": "promise", "of": {"kind": "undefined"}}}],
        "operations": [
            {
                "name": "take",
                "overloads": [
                    {
                        "returns": {"kind": "boolean"},
                        "arguments": [
                            {
                                "name": "size",
                                "type": {"kind": "unsigned long", "enforceRange": True},
                                "optional": True,
                                "default": 16,
                            }
                        ],
                    }
                ],
            }
        ],
    }


def test_partial_definitions_are_put_together():
    (take,) = described([PARSED, {**PARSED, "members": PARSED["members"][2:]}])["interfaces"]["Thing"]["operations"]
    assert len(take["overloads"]) == 2


def test_the_idl_of_a_specification_is_in_its_blocks(tmp_path):
    source = tmp_path / "index.bs"
    source.write_text(
        'text\n<script type="idl">\nenum A {"a"};\n</script>\n<script type=idl>\nenum B {"b"};\n</script>'
    )
    assert descriptions.read_idl(source) == 'enum A {"a"};\n\nenum B {"b"};\n'
    source.write_text("nothing")
    with pytest.raises(ValueError, match="no IDL blocks"):
        descriptions.read_idl(source)


def test_idl_that_cannot_be_parsed_is_refused():
    with pytest.raises(ValueError, match="cannot be parsed") as caught:
        descriptions.from_idl("interface", "globalThis.WebIDL2 = {parse() { throw new Error('no'); }}")
    assert isinstance(caught.value.__cause__, ScriptError)


# --- against the specification -------------------------------------------------------------------------------------


def test_the_shipped_description_is_that_of_the_specifications_idl():
    idl = descriptions.read_idl(given(SPECIFICATION))
    parser = (given(CHECKOUT) / descriptions.PARSER).read_text(encoding="utf-8")
    shipped = dict(descriptions.of_specification())
    assert shipped.pop("source").startswith("webmachinelearning/webnn ")
    assert descriptions.from_idl(idl, parser) == shipped


def test_every_type_that_the_shipped_description_mentions_is_described_or_webgpus():
    shipped = descriptions.of_specification()
    kinds = {"enum": "enums", "dictionary": "dictionaries", "interface": "interfaces"}
    mentioned = {kind: set() for kind in kinds}

    def look(thing):
        if isinstance(thing, list):
            for item in thing:
                look(item)
        elif isinstance(thing, dict):
            if thing.get("kind") in mentioned and "name" in thing:
                mentioned[thing["kind"]].add(thing["name"])
            look(list(thing.values()))

    look(shipped)
    missing = {name for kind, names in mentioned.items() for name in names - set(shipped[kinds[kind]])}
    assert missing == {"GPUDevice"}
