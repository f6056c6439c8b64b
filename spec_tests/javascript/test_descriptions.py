"""One description of the API from two sources: our declarations, and IDL that is given."""

import json

import pytest

from spec_tests.support.given import CHECKOUT, SPECIFICATION, given
from webnn_py.javascript import declared, descriptions
from webnn_py.javascript.engine import ENGINES, ScriptError, own_source, start

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

    opened = start(engine, host)
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


def expanded(description):
    """A description as scripts can see it: dictionaries by their members, enumerations by their values."""

    def members(name):
        found = []
        while name is not None:
            dictionary = description["dictionaries"][name]
            found += [{**member, "type": typed(member["type"])} for member in dictionary["members"]]
            name = dictionary["parent"]
        return sorted(found, key=lambda member: member["name"])

    def typed(idl_type):
        if idl_type["kind"] == "dictionary":
            return members(idl_type["name"])
        changed = dict(idl_type)
        if idl_type["kind"] == "enum":
            changed["name"] = description["enums"][idl_type["name"]]
        if "of" in idl_type:
            of = idl_type["of"]
            changed["of"] = [typed(item) for item in of] if isinstance(of, list) else typed(of)
        return changed

    def with_types(entries):
        return [{**entry, "type": typed(entry["type"])} for entry in entries]

    return {
        name: {
            "constructors": [with_types(one["arguments"]) for one in interface["constructors"] or ()],
            "attributes": with_types(interface["attributes"]),
            "operations": {
                operation["name"]: [
                    (typed(overload["returns"]), with_types(overload["arguments"]))
                    for overload in operation["overloads"]
                ]
                for operation in interface["operations"]
            },
        }
        for name, interface in description["interfaces"].items()
    }


def test_our_declarations_and_the_specifications_idl_give_the_same_description():
    idl = descriptions.read_idl(given(SPECIFICATION))
    parser = (given(CHECKOUT) / descriptions.PARSER).read_text(encoding="utf-8")
    theirs, ours = expanded(descriptions.from_idl(idl, parser)), expanded(json.loads(json.dumps(declared.describe())))
    assert theirs.keys() == ours.keys()
    for name, interface in theirs.items():
        for part in ("constructors", "attributes"):
            assert ours[name][part] == interface[part], f"{name}: {part}"
        assert ours[name]["operations"].keys() == interface["operations"].keys(), name
        for operation, overloads in interface["operations"].items():
            mine = json.loads(json.dumps(ours[name]["operations"][operation]))
            assert mine == json.loads(json.dumps(overloads)), f"{name}.{operation}"


def test_the_description_of_our_declarations_is_whole():
    ours = declared.describe()
    operations = {operation["name"] for operation in ours["interfaces"]["MLGraphBuilder"]["operations"]}
    assert len(operations) == 98
    expanded(ours)  # every name that it mentions is there
    assert json.loads(json.dumps(ours)) == ours
