"""The globals of a script besides the API."""

import re

import pytest

from spec_tests.support.scripts import both_engines, lines_of, lines_of_each

ENCODED = memoryview('["née", 1]'.encode())

LINES = {
    "console.log('a', 1, -0, 2n, null, [1, 'x'], {a: {b: 1}})": 'a 1 -0 2n null [1, "x"] {a: {b: 1}}',
    "console.warn(new TypeError('bad'))": "TypeError: bad",
    "console.log(new Float16Array(2), new ArrayBuffer(3))": "Float16Array(2) [0, 0] ArrayBuffer(3)",
    "console.log(String(navigator), typeof navigator.ml)": "[object Navigator] object",
    "console.log(new DOMException('m', 'InvalidStateError').code, new DOMException() instanceof Error)": "11 true",
    "console.log(new URLSearchParams('?a=1&b=x%20y&a=2').getAll('a'), new URLSearchParams('b=x+y').get('b'))": (
        '["1", "2"] x y'
    ),
    "console.log(new TextEncoder().encode('é€😀'))": "Uint8Array(9) [195, 169, 226, 130, 172, 240, 159, 152, 128]",
    "console.log(new TextDecoder().decode(Uint8Array.of(195, 169)))": "é",
    "console.log(performance.now() >= 0, typeof performance.timeOrigin)": "true number",
    "fetch('a.json').then((r) => r.json()).then((v) => console.log(v[0], v[1]))": "née 1",
    "fetch('b').then((r) => console.log(r.ok, r.status))": "false 404",
    "console.log('%d apples %s %i %f %o %% %j %c.', '42', 'x', 3.7, '1.5', {a: 1}, {b: [1]}, 'css', 'rest')": (
        '42 apples x 3 1.5 {a: 1} % {"b":[1]} . rest'
    ),
    "console.log('%d', 10n, '%s'); console.log('100%', 5)": "10n %s\n100% 5",
    "console.log(new Map([['a', {b: 1}]]), new Set([1, 'x']), new Date(0), /x/g, Symbol('s'))": (
        'Map(1) {"a" => {b: 1}} Set(2) {1, "x"} 1970-01-01T00:00:00.000Z /x/g Symbol(s)'
    ),
    "console.log({get a() { throw 1; }}, Object.create(null), (() => { const o = {}; o.o = o; return o; })())": (
        "{a: undefined} {} {o: {o: {o: {o: {…}}}}}"
    ),
    "console.dir({a: new Map([[1, [2]]])})": "{a: Map(1) {1 => [2]}}",
    "console.table([{a: 1, b: 'x'}, {b: [1]}])": (
        "┌─────────┬───┬─────┐\n│ (index) │ a │ b   │\n├─────────┼───┼─────┤\n"
        '│ 0       │ 1 │ "x" │\n│ 1       │   │ [1] │\n└─────────┴───┴─────┘'
    ),
    "console.table(new Set(['a']))": (
        '┌─────────┬────────┐\n│ (index) │ Values │\n├─────────┼────────┤\n│ 0       │ "a"    │\n└─────────┴────────┘'
    ),
    "console.time('t'); console.timeEnd('none')": "Timer 'none' does not exist",
    "console.group('g'); console.log('a\\nb'); console.groupEnd(); console.count(); console.count()": (
        "g\n  a\n  b\ndefault: 1\ndefault: 2"
    ),
    "console.assert(true, 'no'); console.assert(false, 'words', 1)": "Assertion failed: words 1",
    "console.log([typeof require, typeof process, typeof Buffer, typeof document].join())": (
        "undefined,undefined,undefined,undefined"
    ),
    "console.log(Object.keys(globalThis).filter((name) => name.startsWith('__')).length)": "0",
}


@both_engines
async def test_programs_print(engine):
    lines = await lines_of_each({source: source for source in LINES}, engine, files={"a.json": ENCODED})
    assert {source: "\n".join(told) for source, told in lines.items()} == LINES


@both_engines
async def test_the_console_prints_times(engine):
    (line,) = await lines_of("console.time('t'); console.timeEnd('t');", engine)
    assert re.fullmatch(r"t: \d+\.\d{3}ms", line)


@both_engines
async def test_interfaces_have_the_properties_of_web_idl(engine):
    source = """
      const method = Object.getOwnPropertyDescriptor(MLGraphBuilder.prototype, 'conv2d');
      console.log(method.enumerable, method.writable, method.value.length, method.value.name);
      console.log(Object.getOwnPropertyDescriptor(globalThis, 'MLContext').enumerable, String(MLContext.prototype));
      console.log(MLGraphBuilder.length, navigator.ml === navigator.ml, navigator.ml instanceof ML);
      class Mine extends MLGraphBuilder {}
      navigator.ml.createContext().then((context) => console.log(new Mine(context) instanceof Mine));
    """
    assert await lines_of(source, engine) == ["true true 2 conv2d", "false [object MLContext]", "1 true true", "true"]


@both_engines
async def test_modules_may_await_at_their_top(engine):
    source = "const context = await navigator.ml.createContext(); console.log(context.accelerated); export {};"
    assert await lines_of(source, engine, module=True) == ["true"]


async def test_objects_that_scripts_drop_are_dropped_by_the_host():
    source = """
      (async () => {
        const context = await navigator.ml.createContext();
        for (let i = 0; i < 300; i += 1) await context.createTensor({dataType: 'float32', shape: [1]});
      })();
    """
    from webnn_py.javascript import host  # noqa: PLC0415 - looked into here only

    kept = []
    handle = host.Host.handle

    def counting(self, text, payload):
        answer = handle(self, text, payload)
        kept.append(len(self._objects))
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host.Host, "handle", counting)
        await lines_of(source)
    assert max(kept) < 100


LABELLED = """
const descriptor = {dataType: 'float32', shape: [2], label: 'weights'};
navigator.ml.createContext({label: 'all'}).then(async (context) => {
    const builder = new MLGraphBuilder(context);
    const x = builder.input('x', descriptor);
    const things = [context, await context.createTensor(descriptor),
        await context.createConstantTensor(descriptor, new Float32Array(2)),
        await builder.build({y: builder.relu(x)}), x];
    console.log(things.map((thing) => 'label' in thing).join(' '));
});
"""


@both_engines
async def test_only_operators_have_labels_in_scripts(engine):
    assert await lines_of(LABELLED, engine) == ["false false false false false"]
