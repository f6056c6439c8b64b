"""Each leniency of the compatibility mode changes one behaviour of the specification of June 2026."""

import attrs
import pytest

from webnn_py.javascript import descriptions
from webnn_py.javascript.compatibility import MODES, NONE, WPT_2025_03, Compatibility

BEGIN = """
const tensor = (context, dataType, shape) =>
    context.createTensor({dataType, shape, readable: true, writable: true});
const operand = (builder, name, dataType, shape) => builder.input(name, {dataType, shape});
"""

END = """{
  const context = await navigator.ml.createContext();
  const result = body(new MLGraphBuilder(context), context);
  await result.then((value) => console.log(String(value)), (error) => console.log(error.name));
}"""

CASES = {
    "destroyed_is_invalid_state": (
        "const t = await tensor(context, 'float32', [1]); t.destroy(); await context.readTensor(t);",
        "TypeError",
        "InvalidStateError",
    ),
    "larger_output": (
        (
            "const t = await tensor(context, 'uint8', [1]); const into = new Uint8Array([7, 7]);"
            "await context.readTensor(t, into); return [...into];"
        ),
        "TypeError",
        "0,7",
    ),
    "unsigned_view": (
        (
            "const t = await tensor(context, 'int32', [1]); context.writeTensor(t, Uint32Array.of(0xFFFFFFFF));"
            "return [...new Int32Array(await context.readTensor(t))];"
        ),
        "TypeError",
        "-1",
    ),
    "any_view": (
        (
            "const t = await tensor(context, 'float32', [1]); context.writeTensor(t, new DataView(new ArrayBuffer(4)));"
            "const into = new Int8Array([1, 2, 3, 4]); await context.readTensor(t, into); return [...into];"
        ),
        "TypeError",
        "0,0,0,0",
    ),
    "repeated_input_names": (
        (
            "operand(builder, 'x', 'float32', [1]); const x = operand(builder, 'x', 'float32', [2]);"
            "const graph = await builder.build({y: builder.neg(x)});"
            "const [a, b] = [await tensor(context, 'float32', [2]), await tensor(context, 'float32', [2])];"
            "context.writeTensor(a, Float32Array.of(1, 2));"
            "context.dispatch(graph, {x: a}, {y: b}); return [...new Float32Array(await context.readTensor(b))];"
        ),
        "TypeError",
        "-1,-2",
    ),
    "scale_of_lower_rank": (
        (
            "return builder.quantizeLinear(operand(builder, 'x', 'float32', [2, 3]),"
            "operand(builder, 's', 'float32', []), operand(builder, 'z', 'int8', [])).shape;"
        ),
        "TypeError",
        "2,3",
    ),
    "softmax_without_axis": (
        "return builder.softmax(operand(builder, 'x', 'float32', [2, 3])).shape;",
        "TypeError",
        "2,3",
    ),
    "scalar_padding_refused": (
        "return builder.pad(operand(builder, 'x', 'float32', []), [], []).shape.length;",
        "0",
        "TypeError",
    ),
    "infinite_minimum_refused": (
        "return builder.clamp(operand(builder, 'x', 'float32', []), {minValue: -Infinity}).shape.length;",
        "0",
        "TypeError",
    ),
    "outputs_limits": (
        "return 'outputs' in context.opSupportLimits().gru;",
        "false",
        "true",
    ),
}

NEEDS_OLDER_IDL = {"symmetric_padding", "max_tensor_byte_length"}
"""Their names are not in the IDL of June 2026, so that nothing of theirs comes through without an older one."""


@pytest.fixture
def outcomes(run_with):
    """Run bodies in one program, and return their results by name."""

    def in_this_process(bodies, compatibility):
        scenes = ",\n".join(f"async (builder, context) => {{ {body} }}" for body in bodies.values())
        description = compatibility.adapted(descriptions.of_specification())
        source = f"{BEGIN}\nfor (const body of [{scenes}]) {END}"
        lines = run_with(source, compatibility=compatibility, description=description)
        return dict(zip(bodies, lines, strict=True))

    return in_this_process


@pytest.fixture
def outcome(outcomes):
    """Run one body, and return its result."""
    return lambda body, compatibility: outcomes({"": body}, compatibility)[""]


def only(switch):
    changed = attrs.evolve(Compatibility(), **{switch: True})
    if switch != "outputs_limits":
        return changed

    @attrs.frozen
    class WithOutputs(Compatibility):
        def adapted(self, description):
            adapted = super().adapted(description)
            name = next(m["type"]["name"] for m in adapted["dictionaries"]["MLOpSupportLimits"]["members"]
                        if m["name"] == "gru")  # fmt: skip
            members = adapted["dictionaries"][name]["members"]
            members.append({**members[0], "name": "outputs"})
            return adapted

    return WithOutputs(outputs_limits=True)


@pytest.mark.parametrize("switch", CASES)
def test_a_switch_changes_its_behaviour(outcome, switch):
    body, _, lenient = CASES[switch]
    assert outcome(body, only(switch)) == lenient


@pytest.mark.parametrize("switch", CASES)
def test_without_a_switch_the_specification_holds_beside_all_others(outcome, switch):
    body, strict, _ = CASES[switch]
    assert outcome(body, attrs.evolve(WPT_2025_03, **{switch: False})) == strict


def test_without_switches_the_specification_holds(outcomes):
    bodies = {switch: body for switch, (body, _, _) in CASES.items()}
    assert outcomes(bodies, NONE) == {switch: strict for switch, (_, strict, _) in CASES.items()}


def test_symmetric_padding_is_made_of_gathers_where_the_idl_has_it(outcome):
    @attrs.frozen
    class WithSymmetric(Compatibility):
        def adapted(self, description):
            adapted = super().adapted(description)
            adapted["enums"]["MLPaddingMode"].append("symmetric")
            return adapted

    body = """
      const x = operand(builder, 'x', 'float32', [3]);
      const graph = await builder.build({y: builder.pad(x, [2], [1], {mode: 'symmetric'})});
      const [a, b] = [await tensor(context, 'float32', [3]), await tensor(context, 'float32', [6])];
      context.writeTensor(a, Float32Array.of(1, 2, 3));
      context.dispatch(graph, {x: a}, {y: b});
      return [...new Float32Array(await context.readTensor(b))];
    """
    assert outcome(body, WithSymmetric(symmetric_padding=True)) == "2,1,1,2,3,3"
    assert outcome(body, NONE) == "TypeError"


def test_the_byte_length_is_added_where_the_idl_lacks_it():
    description = {"dictionaries": {"MLOpSupportLimits": {"parent": None, "members": []}}}
    adapted = Compatibility(max_tensor_byte_length=True).adapted(description)
    assert [member["name"] for member in adapted["dictionaries"]["MLOpSupportLimits"]["members"]] == [
        "maxTensorByteLength"
    ]
    assert description["dictionaries"]["MLOpSupportLimits"]["members"] == []


def test_every_switch_is_tested_and_documented_and_off_by_default():
    switches = {field.name for field in attrs.fields(Compatibility)} - {"name"}
    assert switches == CASES.keys() | NEEDS_OLDER_IDL
    assert NONE.switches() == []
    assert set(WPT_2025_03.switches()) == switches - {"any_view"}
    assert all(f"{switch}:" in Compatibility.__doc__ for switch in switches)
    assert list(MODES) == ["none", "wpt-2025-03", "wpt-2026"]


@pytest.mark.parametrize(("options", "name"), [((), "InvalidStateError"), (("--compatibility", "none"), "TypeError")])
def test_a_program_has_the_compatibility_mode_unless_it_chooses_none(run, options, name):
    program = """
      const context = await navigator.ml.createContext();
      const t = await context.createTensor({dataType: 'float32', shape: [1], readable: true});
      t.destroy();
      await context.readTensor(t).catch((error) => console.log(error.name));
    """
    assert run(program, *options) == [name]
