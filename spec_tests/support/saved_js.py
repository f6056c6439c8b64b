"""Graphs that are saved as JavaScript, run in Node in one program, and compared with Python's bits."""

import json
import os
import subprocess
import sys

import attrs
import numpy as np

from spec_tests.support.computing import compute
from spec_tests.support.node import path_with_own_node
from webnn_py import MLGraphBuilder, open_ml, save_js

PLAYER = """
const told = {};
for (const [name, module] of Object.entries(modules)) {
  const bytes = await (await fetch(`./${name}/given.bin`)).arrayBuffer();
  const given = {};
  let begin = 0;
  for (const input of orders[name]) {
    given[input] = bytes.slice(begin, begin + input_bytes[name][input]);
    begin += input_bytes[name][input];
  }
  const model = await module.load();
  const results = await model.run(given);
  model.destroy();
  const hexOf = (byte) => byte.toString(16).padStart(2, '0');
  const hex = (array) => Array.from(new Uint8Array(array.buffer), hexOf).join('');
  told[name] = Object.fromEntries(Object.entries(results).map(([output, array]) => [output, hex(array)]));
}
console.log(JSON.stringify(told));
"""


@attrs.frozen
class Player:
    """Plays the saved graphs of a folder by ``webnn-py node``."""

    folder: object

    def play(self, given):
        """Return the outputs of each graph as bytes by their names; ``given`` has its inputs by the graphs' names."""
        lines = [f"import * as m{index} from './{name}/model.js';" for index, name in enumerate(given)]
        lines.append(f"const modules = {{{', '.join(f'{name}: m{i}' for i, name in enumerate(given))}}};")
        sizes = {name: {key: array.nbytes for key, array in arrays.items()} for name, arrays in given.items()}
        lines.append(f"const orders = {json.dumps({name: [*arrays] for name, arrays in given.items()})};")
        lines.append(f"const input_bytes = {json.dumps(sizes)};")
        for name, arrays in given.items():
            contents = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
            (self.folder / name / "given.bin").write_bytes(contents)
        program = self.folder / "player.mjs"
        program.write_text("\n".join([*lines, PLAYER]), encoding="utf-8")
        command = [sys.executable, "-m", "webnn_py", "node", "--backend", "numpy", str(program)]
        environment = os.environ | {"PATH": path_with_own_node()}
        ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, env=environment)
        assert (ended.returncode, ended.stderr) == (0, "")
        told = json.loads(ended.stdout)
        return {name: {key: bytes.fromhex(text) for key, text in results.items()} for name, results in told.items()}


def differences(got, expected):
    """Return the outputs, as ``graph.output``, whose bits differ; every NaN is the same."""
    wrong = [] if got.keys() == expected.keys() else [f"graphs {sorted(got)} instead of {sorted(expected)}"]
    for name, results in expected.items():
        if got[name].keys() != results.keys():
            wrong.append(f"{name} has {sorted(got[name])} instead of {sorted(results)}")
        for output, array in results.items():
            there = np.frombuffer(got[name][output], array.dtype).reshape(array.shape)
            if not np.array_equal(_bits(there), _bits(array)):
                wrong.append(f"{name}.{output}: {there.tolist()} instead of {array.tolist()}"[:300])
    return wrong


def _bits(array):
    array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array) if array.dtype.kind == "f" else array
    return np.ascontiguousarray(array).view(np.uint8)


async def save_and_compute(folder, drawings):
    """Save the graphs that functions of a builder draw; return their inputs and outputs by the graphs' names."""
    given, expected = {}, {}
    async with open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        for name, draw in drawings.items():
            builder = MLGraphBuilder(context)
            outputs, given[name] = draw(builder)
            save_js(outputs, folder / name)
            expected[name] = await compute(context, builder, given[name], outputs)
    return given, expected
