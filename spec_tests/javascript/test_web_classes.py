"""Classes of the web that programs use and engines lack are alike in both engines."""

import json

from spec_tests.support.scripts import both_engines, lines_of, lines_of_each

HREFS = {
    "new URL('../b/./c d?x=1&y=é#h', 'https://User:pw@EXAMPLE.com:443/a/x/z')": (
        "https://User:pw@example.com/a/b/c%20d?x=1&y=%C3%A9#h"
    ),
    "new URL('file:///a/../b')": "file:///b",
    "new URL('?q', 'http://a/b?c#d')": "http://a/b?q",
    "new URL('#z', 'http://a/b?c#d')": "http://a/b?c#z",
    "new URL('//h:8080/p', 'https://a/')": "https://h:8080/p",
    "new URL('http://[::1]:80')": "http://[::1]/",
    "new URL('data:text/plain,a b')": "data:text/plain,a%20b",
    "new URL('  http://a/%7Efoo/../x\\\\y  ')": "http://a/x/y",
    "new URL('./data.json', 'file:///main.mjs')": "file:///data.json",
}

THROWN = "const thrown = (f) => { try { return f(); } catch (error) { return error.name; } };"

VALUES = {
    "[URL.canParse('x'), URL.canParse('http://'), URL.canParse('http://a:99999'), URL.parse('no')]": [
        *[False] * 3,
        None,
    ],
    "thrown(() => new URL('x'))": "TypeError",
    "((u) => [u.origin, u.host, u.port, u.search, u.hash, u.username])(new URL('http://u:p@h:1/p?q#f'))": [
        "http://h:1",
        *["h:1", "1", "?q", "#f", "u"],
    ],
    "((u) => { u.searchParams.append('c', 'd e&é'); u.hash = 'x'; return u.href; })(new URL('http://a/?b=1'))": (
        "http://a/?b=1&c=d+e%26%C3%A9#x"
    ),
    "((p) => { p.set('a', 2); p.append('b', 3); return [[...p], p.size, `${p}`]; })(new URLSearchParams({a: 1}))": [
        [["a", "2"], ["b", "3"]],
        *[2, "a=2&b=3"],
    ],
    "[btoa('hello'), atob(' aGVs bG8= '), atob(btoa('\\xff\\0a')).charCodeAt(0)]": ["aGVsbG8=", "hello", 255],
    "['a', 'a=bc', '€'].map((text) => thrown(() => atob(text)))": ["InvalidCharacterError"] * 3,
    "thrown(() => btoa('€'))": "InvalidCharacterError",
    "crypto.getRandomValues(new Uint8Array(4)).length": 4,
    "crypto.getRandomValues(new Uint32Array(64)).some(Boolean)": True,
    "[new Float32Array(1), new Uint8Array(65537)].map((view) => thrown(() => crypto.getRandomValues(view)))": [
        "TypeMismatchError",
        "QuotaExceededError",
    ],
    "/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())": True,
    "[window === globalThis, self === window]": [True, True],
}

CLONES = {
    "{a: [1, , 3], n: null, u: undefined, b: 1n, s: 'x'}": "c.a.length === 3 && !(1 in c.a) && 'u' in c && c.b === 1n",
    "new Date(5)": "c instanceof Date && c.getTime() === 5",
    "/x/gi": "c instanceof RegExp && String(c) === '/x/gi'",
    "new Map([[1, new Set([2])]])": "c.get(1).has(2) && c.get(1) !== given.get(1)",
    "new Float32Array([1, 2]).subarray(1)": "c[0] === 2 && c.byteOffset === 4 && c.buffer !== given.buffer",
    "new DataView(new ArrayBuffer(4), 1, 2)": "c.byteLength === 2 && c.byteOffset === 1",
    "new RangeError('bad')": "c instanceof RangeError && c.message === 'bad'",
    "Object(1)": "typeof c === 'object' && c.valueOf() === 1",
    "(() => { const o = {}; o.o = o; return o; })()": "c.o === c && c !== given",
    "((b) => [new Uint8Array(b), new Int8Array(b)])(new ArrayBuffer(4))": "c[0].buffer === c[1].buffer",
    "Object.create({inherited: 1}, {hidden: {value: 1}})": "Object.keys(c).length === 0 && !('inherited' in c)",
}

UNCLONABLE = ["() => 1", "Symbol('x')", "Promise.resolve()", "new WeakMap()", "navigator.ml", "[{deep: () => 1}]"]


async def values_of(expressions, engine):
    """The value of each expression, in one realm."""
    programs = {text: f"{{ {THROWN} console.log(JSON.stringify({text})); }}" for text in expressions}
    return [json.loads(line) for (line,) in (await lines_of_each(programs, engine)).values()]


@both_engines
async def test_urls_are_parsed_and_resolved(engine):
    values = await values_of([f"({expression}).href" for expression in HREFS], engine)
    assert dict(zip(HREFS, values, strict=True)) == HREFS


@both_engines
async def test_expressions_have_their_values(engine):
    assert dict(zip(VALUES, await values_of(VALUES, engine), strict=True)) == VALUES


@both_engines
async def test_a_structured_clone_is_equal_and_another(engine):
    programs = {
        given: f"{{ const given = {given}; const c = structuredClone(given); console.log({equal}); }}"
        for given, equal in CLONES.items()
    }
    assert await lines_of_each(programs, engine) == {given: ["true"] for given in CLONES}


@both_engines
async def test_cloning_other_values_is_a_data_clone_error(engine):
    source = f"""
      for (const value of [{", ".join(UNCLONABLE)}]) {{
        try {{ structuredClone(value); }} catch (error) {{ console.log(error.name, error instanceof DOMException); }}
      }}
    """
    assert await lines_of(source, engine) == ["DataCloneError true"] * len(UNCLONABLE)


@both_engines
async def test_a_clone_transfers_buffers(engine):
    source = """
      const given = new ArrayBuffer(8);
      const got = structuredClone({given}, {transfer: [given]}).given;
      console.log(given.byteLength, given.detached, got.byteLength);
    """
    assert await lines_of(source, engine) == ["0 true 8"]


@both_engines
async def test_an_abort_signal_fires_once_with_its_reason(engine, autojump_clock):
    source = """
      const controller = new AbortController();
      const {signal} = controller;
      signal.onabort = () => console.log('handler');
      signal.addEventListener('abort', (event) => console.log(event.type, event.target === signal));
      controller.abort();
      controller.abort(1);
      console.log(signal.aborted, signal.reason.name);
      try { signal.throwIfAborted(); } catch (error) { console.log(error === signal.reason); }
      fetch('x', {signal}).catch((error) => console.log(error.name));
      AbortSignal.timeout(5).onabort = (event) => console.log(event.target.reason.name);
      console.log(AbortSignal.any([AbortSignal.abort(7)]).reason);
    """
    lines = await lines_of(source, engine)
    assert lines == ["abort true", "handler", "true AbortError", "true", "7", "AbortError", "TimeoutError"]


@both_engines
async def test_messages_are_tasks_that_carry_clones_in_their_order(engine):
    source = """
      const {port1, port2} = new MessageChannel();
      const sent = {list: [1]};
      port1.postMessage(sent);
      sent.list.push(2);
      port1.postMessage('second');
      port2.onmessage = (event) => {
        console.log(JSON.stringify(event.data), event.target === port2);
        Promise.resolve().then(() => console.log('microtask'));
      };
      port1.addEventListener('message', (event) => console.log('back', event.data));
      port1.start();
      port2.postMessage(3);
      console.log('script');
    """
    assert await lines_of(source, engine) == [
        "script",
        '{"list":[1]} true',
        "microtask",
        '"second" true',
        "microtask",
        "back 3",
    ]


@both_engines
async def test_animation_frames_are_tasks_with_the_time(engine, autojump_clock):
    source = """
      cancelAnimationFrame(requestAnimationFrame(() => console.log('never')));
      requestAnimationFrame((time) => console.log(typeof time, Number.isFinite(time)));
    """
    assert await lines_of(source, engine) == ["number true"]


@both_engines
async def test_errors_name_missing_globals(engine):
    names = ["document", "Worker", "WebSocket", "XMLHttpRequest", "localStorage", "Blob"]
    programs = {
        name: f"""
          console.log(typeof {name});
          try {{ {name}(); }} catch (error) {{ console.log(error.name, /{name}/.test(error.message)); }}
        """
        for name in names
    }
    assert await lines_of_each(programs, engine) == {name: ["undefined", "ReferenceError true"] for name in names}
