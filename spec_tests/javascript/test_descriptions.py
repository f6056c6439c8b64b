"""The description of the API: the specification's, which is shipped, and that of IDL that is given."""

import json

import pytest

from spec_tests.support.given import CHECKOUT, SPECIFICATION, given
from webnn_py.javascript import descriptions

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


def parser_of(folder, definitions):
    """Write a parser that returns syntax trees whatever it is given."""
    path = folder / "parser.js"
    path.write_text(f"module.exports = {{parse: () => {json.dumps(definitions)}}};", encoding="utf-8")
    return path


def test_a_syntax_tree_becomes_a_description(tmp_path):
    thing = descriptions.from_idl("", parser_of(tmp_path, [PARSED]))["interfaces"]["Thing"]
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


def test_partial_definitions_are_put_together(tmp_path):
    parser = parser_of(tmp_path, [PARSED, {**PARSED, "members": PARSED["members"][2:]}])
    (take,) = descriptions.from_idl("", parser)["interfaces"]["Thing"]["operations"]
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


def test_idl_that_cannot_be_parsed_is_refused(tmp_path):
    parser = tmp_path / "parser.js"
    parser.write_text("module.exports = {parse() { throw new Error('no name'); }};", encoding="utf-8")
    with pytest.raises(ValueError, match="the IDL cannot be parsed: no name"):
        descriptions.from_idl("interface", parser)


# --- against the specification -------------------------------------------------------------------------------------


def test_the_shipped_description_is_that_of_the_specifications_idl():
    idl = descriptions.read_idl(given(SPECIFICATION))
    parser = given(CHECKOUT) / descriptions.PARSER
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
