"""``webnn-py node --browser`` shows a script one browser's API; ``--portability`` lists what browsers would refuse."""

import json

import pytest

CHROMIUM = "chromium-153-litert"

PROGRAM = """
const context = await navigator.ml.createContext();
console.log(context.opSupportLimits().preferredInputLayout);
const told = async (name, body) => {
  try { console.log(name, await body()); } catch (error) { console.log(name, error.name); }
};
const float32 = {dataType: 'float32', shape: [2]};
const builder = new MLGraphBuilder(context);
const x = builder.input('x', float32);
await told('cast', () => builder.cast(x, 'uint64').dataType);
await told('build', async () => {
  await builder.build({y: builder.neg(x)});
});
await told('edges', async () => {
  const other = new MLGraphBuilder(context);
  await other.build({y: other.pad(other.input('x', float32), [1], [1], {mode: 'edge'})});
});
await told('constant tensor', () => context.createConstantTensor(float32, new Float32Array(2)));
const tensor = await context.createTensor({...float32, readable: true, writable: true});
await told('longer', async () => { await context.readTensor(tensor, new Float32Array(3)); });
tensor.destroy();
await told('destroyed', () => context.readTensor(tensor));
"""

IN_CHROMIUM = """\
nhwc
cast TypeError
build undefined
edges NotSupportedError
constant tensor NotSupportedError
longer undefined
destroyed InvalidStateError
"""


def test_a_script_sees_the_browsers_api(end_of):
    assert end_of(PROGRAM, "--browser", CHROMIUM) == (0, IN_CHROMIUM, "")


def test_portability_lists_failures_and_refuses_nothing(end_of):
    status, out, err = end_of(PROGRAM, "--portability=json")
    assert status == 0
    assert out.startswith("nchw\ncast uint64\n")
    (told,) = json.loads(err).values()
    assert not told["runs"]
    failing = {(one["what"], one["when"], one["error"]): one for one in told["failing"]}
    assert failing.keys() == {
        ("cast", "call", "TypeError"),
        ("pad", "build", "NotSupportedError"),
        ("createConstantTensor", "call", "NotSupportedError"),
    }
    assert failing["pad", "build", "NotSupportedError"]["reason"] == "mode must not be edge"
    assert all(one["times"] == 1 for one in told["failing"])


def test_portability_is_a_table_with_a_line_for_each_reason(end_of):
    body = (
        "b.cast(x, 'uint64', {label: 'one'}); b.cast(x, 'uint64', {label: 'two'}); b.pad(x, [1], [1], {mode: 'edge'});"
    )
    start = "const b = new MLGraphBuilder(await navigator.ml.createContext()); "
    declared = "const x = b.input('x', {dataType: 'float32', shape: [2]}); "
    status, _, err = end_of(start + declared + body, "--portability")
    heading, casts, pad = err.splitlines()
    assert status == 0
    assert heading.split() == ["browser", "profile", "what", "times", "fails", "why", "labels"]
    assert casts.split()[:6] == [CHROMIUM, "cast", "2", "at", "once,", "TypeError"]
    assert casts.endswith("one, two")
    assert pad.split()[:6] == [CHROMIUM, "pad", "1", "at", "build(),", "NotSupportedError"]


def test_a_browsers_own_refusals_are_no_portability(end_of):
    with pytest.raises(SystemExit) as end:
        end_of("", "--portability", "--browser", CHROMIUM)
    assert end.value.code == 2


def test_portability_reports_that_nothing_fails(end_of):
    status, _, err = end_of("await navigator.ml.createContext()", "--portability")
    assert status == 0
    assert err.splitlines()[1].split() == [CHROMIUM, "all", "of", "it", "no"]
