"""What a script finds besides the API."""

import pytest

from spec_tests.support.scripts import both_engines, lines_of

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
    "console.log([typeof require, typeof process, typeof Buffer, typeof document].join())": (
        "undefined,undefined,undefined,undefined"
    ),
    "console.log(Object.keys(globalThis).filter((name) => name.startsWith('__')).length)": "0",
}


@both_engines
@pytest.mark.parametrize("source", LINES)
async def test_prints(source, engine):
    assert await lines_of(source, engine, files={"a.json": ENCODED}) == [LINES[source]]


@both_engines
async def test_interfaces_look_as_web_idl_says(engine):
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
