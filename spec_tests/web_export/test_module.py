"""The module of a saved graph runs it in programs, and declares its types for TypeScript."""

import pytest
import trio

import webnn_py
from webnn_py import MLGraphBuilder, cli

PROGRAM = """
import {build, facts, fetchWeights, inputs, load, outputs} from './sum/model.js';

const refused = (error) => `${error.name}: ${error.message}`;
const told = async (what) => console.log(await what.then((value) => `${value}`, refused));
const model = await load();
const runs = [1, 2, 3].map((value) => model.run({x: new Float32Array(10).fill(value), h: new Uint16Array([0x3c00])}));
for (const {sum} of await Promise.all(runs)) console.log(sum[0], sum[9]);
const [{half}] = await Promise.all(runs);
console.log(half.byteLength, new Uint16Array(half.buffer)[0].toString(16));
await told(model.run({x: new Float32Array(9), h: new Uint16Array(1)}));
await told(model.run({h: new Uint16Array(1)}));
await told(build(model.context, new ArrayBuffer(8)));
await told(build(model.context, await fetchWeights()).then((graph) => graph.constructor.name));
const shared = await load({context: model.context, weights: await fetchWeights()});
console.log(shared.context === model.context, facts.operators, facts.weightBytes, inputs.x.shape, outputs.sum.shape);
model.destroy();
await told(model.run({x: new Float32Array(10), h: new Uint16Array(1)}).then(() => 'ran'));
"""


@pytest.fixture
def saved(tmp_path):
    """The folder of a graph that adds 0 to 9, and 1 in float16."""

    async def main():
        async with webnn_py.open_ml() as ml:
            builder = MLGraphBuilder(await ml.create_context(backend="numpy"))
            x = builder.input("x", data_type="float32", shape=[10])
            h = builder.input("h", data_type="float16", shape=[1])
            table = builder.constant(numbers(), data_type="float32", shape=[10])
            half = builder.add(h, builder.constant(1, data_type="float16"))
            webnn_py.save_js({"sum": builder.add(x, table), "half": half}, tmp_path / "sum")

    trio.run(main)
    return tmp_path


def numbers():
    return b"".join(bytes.fromhex(text) for text in ["00000000", "0000803f", "00000040", "00004040", "00008040"]) * 2


def test_a_program_runs_a_graph_several_times_at_once_and_wrong_inputs_are_refused(saved, capfd):
    program = saved / "program.mjs"
    program.write_text(PROGRAM, encoding="utf-8")
    status = cli.main(["node", "--backend", "numpy", str(program)])
    out, err = capfd.readouterr()
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[:4] == ["1 5", "2 6", "3 7", "2 4000"]
    assert lines[4:6] == [
        "TypeError: run(): x has 36 bytes; it must be float32 [10], 40 bytes",
        "TypeError: run(): x has no bytes; it must be float32 [10], 40 bytes",
    ]
    assert lines[6].startswith("RangeError: ")
    assert lines[7] == "MLGraph"
    assert lines[8].startswith("true 2 66 ")
    assert "ran" not in lines[9]


def test_weights_of_another_graph_are_refused(saved, capfd):
    (saved / "sum" / "weights.bin").write_bytes(bytes(30))
    program = saved / "program.mjs"
    program.write_text("import {load} from './sum/model.js'; await load();", encoding="utf-8")
    assert cli.main(["node", "--backend", "numpy", str(program)]) == 1
    assert "weights.bin has 30 bytes instead of 66: it is another graph's" in capfd.readouterr().err


def test_the_declarations_have_the_arrays_of_inputs_and_outputs(saved):
    text = (saved / "sum" / "model.d.ts").read_text(encoding="utf-8")
    assert '  "x": ArrayBuffer | Float32Array; // float32 [10]: 10\n' in text
    assert '  "half": Float16Array | Uint16Array; // float16 [1]: 1\n' in text
