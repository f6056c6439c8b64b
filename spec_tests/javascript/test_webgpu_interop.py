"""The proposal "webgpu-interop" in JavaScript: with a stand-in for a GPUDevice, and with npm's ``webgpu``."""

import copy
import os
import shutil
from pathlib import Path

import pytest

from spec_tests.support.backends import BACKENDS
from webnn_py import cli
from webnn_py.javascript import descriptions
from webnn_py.javascript.proposals import with_proposals

STAND_IN = Path(__file__).with_name("stand_in_gpu.js").read_text(encoding="utf-8")

ASKED = ("--experimental", "webgpu-interop")

MEMBERS = "console.log('createExportableTensor' in MLContext.prototype, 'exportToGPU' in MLContext.prototype);"

START = """
const context = await navigator.ml.createContext();
const device = new GPUDevice();
const d = {dataType: 'float32', shape: [4]};
const floats = (...values) => new Float32Array(values);
const builder = new MLGraphBuilder(context);
const graph = await builder.build({y: builder.add(builder.input('x', d), builder.constant(d, floats(1, 2, 3, 4)))});
const x = await context.createExportableTensor({...d, readable: true, writable: true}, device);
const y = await context.createExportableTensor({...d, readable: true}, device);
const values = async (tensor) => new Float32Array(await context.readTensor(tensor)).join();
"""


@pytest.fixture
def say(run):
    """Run a program with the stand-in, and return the lines that it printed."""

    def in_this_process(source, *options):
        return run(STAND_IN + START + source, *ASKED, *options)

    return in_this_process


def test_nothing_of_it_is_there_unless_it_is_asked_for(run):
    assert run(MEMBERS) == ["false false"]
    assert run(MEMBERS, *ASKED) == ["true true"]


def operation(name, returns, *arguments):
    given = [{"name": given, "type": kind, "optional": False} for given, kind in arguments]
    return {"name": name, "overloads": [{"returns": returns, "arguments": given}]}


def test_newer_idl_that_has_the_members_is_bound_in_the_same_way():
    tensor = {"kind": "interface", "name": "MLTensor"}
    newer = copy.deepcopy(descriptions.of_specification())
    newer["interfaces"]["MLContext"]["operations"] += [
        operation(
            "createExportableTensor",
            {"kind": "promise", "of": tensor},
            ("descriptor", {"kind": "dictionary", "name": "MLTensorDescriptor"}),
            ("gpuDevice", {"kind": "interface", "name": "GPUDevice"}),
        ),
        operation("exportToGPU", {"kind": "interface", "name": "GPUBuffer"}, ("tensor", tensor)),
    ]
    bound = [
        with_proposals(description, {"webgpu-interop"}) for description in (newer, descriptions.of_specification())
    ]
    assert bound[0] == bound[1]


INTERFACES = """
const {createExportableTensor, exportToGPU} = MLContext.prototype;
console.log(createExportableTensor.length, exportToGPU.length, createExportableTensor.name, exportToGPU.name);
await said(() => createExportableTensor.call({}, d, device));
await said(() => context.createExportableTensor(d));
await said(() => context.createExportableTensor(d, {}));
await said(() => context.createExportableTensor(d, null));
await said(() => context.createExportableTensor({...d, dataType: 'float8'}, device));
await said(() => context.createExportableTensor({...d, shape: [0]}, device));
for (const usage of [0, 0x400, 0x81, 0xa, -1]) await said(() => context.createExportableTensor(d, device, usage));
try { context.exportToGPU({}); } catch ({name, message}) { console.log(name, message); }
console.log(context.exportToGPU(x) instanceof GPUBuffer, Object.keys(x).length);
"""

INTERFACES_SAID = """
2 1 createExportableTensor exportToGPU
TypeError Illegal invocation: not an MLContext
TypeError createExportableTensor() got 1 arguments; it needs 2
TypeError createExportableTensor(): gpuDevice is a Object; it must be a GPUDevice
TypeError createExportableTensor(): gpuDevice is null; it must be a GPUDevice
TypeError createExportableTensor(): descriptor.dataType is "float8"; it must be one of float32, float16, int32, uint32,\
 int64, uint64, int8, uint8
TypeError create_exportable_buffer(): shape is [0]; dimension 0 must be from 1 to 2147483647
TypeError create_exportable_buffer(): usage is 0x0; it must be flags of GPUBufferUsage
TypeError create_exportable_buffer(): usage is 0x400; it must be flags of GPUBufferUsage
TypeError create_exportable_buffer(): usage is 0x81; MAP_READ may be combined with COPY_DST only
TypeError create_exportable_buffer(): usage is 0xa; MAP_WRITE may be combined with COPY_SRC only
TypeError createExportableTensor(): usage is -1; it must be an integer from 0 to 4294967295
TypeError exportToGPU(): tensor is a Object; it must be an MLTensor
true 0
"""


def test_arguments_are_converted_as_the_idl_says(say):
    assert say(INTERFACES) == INTERFACES_SAID.replace("\\\n", "").strip().splitlines()


ORDER = """
context.writeTensor(x, floats(1, 1, 1, 1));
const first = context.exportToGPU(x);  // nothing is waited for until the end
console.log(first.usage, first.size, first.mapState);
double(device, first);
first.destroy();
first.destroy();
context.dispatch(graph, {x}, {y});
const second = context.exportToGPU(y);
double(device, second);
const seen = contents(device, second);
second.destroy();
context.dispatch(graph, {x: y}, {y: x});
const third = context.exportToGPU(x);
device.queue.writeBuffer(third, 4, floats(9));
const [, last] = [third.destroy(), values(x)];
console.log(await seen, await values(y), await last);
console.log(first === third, [first, second, third].map(({state}) => state).join());
"""

ORDER_SAID = """
140 16 unmapped
6,8,10,12 6,8,10,12 7,9,13,16
false destroyed,destroyed,destroyed
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_work_of_both_sides_is_done_in_the_order_of_the_calls(say, backend):
    assert say(ORDER, "--backend", backend) == ORDER_SAID.strip().splitlines()


STATES = """
const plain = await context.createTensor({...d, readable: true});
await said(() => context.exportToGPU(plain));
const other = await navigator.ml.createContext();
await said(() => other.exportToGPU(x));
const lent = context.exportToGPU(x);
await said(() => context.exportToGPU(x));
await said(() => context.writeTensor(x, floats(0, 0, 0, 0)));
await said(() => context.readTensor(x));
await said(() => context.dispatch(graph, {x}, {y}));
await said(() => context.dispatch(graph, {x: y}, {y: x}));
context.dispatch(graph, {x: y}, {y: plain});  // what others do goes on
console.log(await values(plain));
double(device, lent);
x.destroy();
await said(() => context.exportToGPU(x));
console.log(await contents(device, lent), lent.state);  // outlives the tensor
lent.destroy();
await device.queue.onSubmittedWorkDone();
console.log(lent.state);
const ofLost = context.exportToGPU(y);
context.destroy();
await said(() => context.createExportableTensor(d, device));
ofLost.destroy();
await device.queue.onSubmittedWorkDone();
console.log(ofLost.state);
"""

REFUSED = "is exported to WebGPU; destroy() of its GPUBuffer brings it back"

STATES_SAID = f"""
TypeError export_to_gpu(): <MLBuffer float32 [4] readable> is not exportable; create_exportable_buffer() makes buffers\
 that are
TypeError export_to_gpu(): <MLBuffer float32 [4] readable writable> belongs to another context
TypeError export_to_gpu(): <MLBuffer float32 [4] readable writable, exported> {REFUSED}
TypeError write_buffer(): <MLBuffer float32 [4] readable writable, exported> {REFUSED}
TypeError read_buffer(): <MLBuffer float32 [4] readable writable, exported> {REFUSED}
TypeError dispatch(): <MLBuffer float32 [4] readable writable, exported> {REFUSED}
TypeError dispatch(): <MLBuffer float32 [4] readable writable, exported> {REFUSED}
1,2,3,4
InvalidStateError export_to_gpu(): <MLBuffer float32 [4] readable writable, destroyed> is destroyed: destroy() was\
 called on the buffer
0,0,0,0 alive
destroyed
InvalidStateError create_exportable_buffer(): the context is lost: destroy() was called on the context
destroyed
"""


def test_an_exported_tensor_is_the_devices_alone(say):
    assert say(STATES) == STATES_SAID.replace("\\\n", "").strip().splitlines()


SIZES = """
const bytes = {dataType: 'uint8', shape: [2, 3], readable: true, writable: true};
const b = await context.createExportableTensor(bytes, device);
context.writeTensor(b, new Uint8Array([1, 2, 3, 4, 5, 6]));
const buffer = context.exportToGPU(b);
console.log(buffer.size, await contents(device, buffer, Uint8Array));
const view = new Uint16Array([0x0707, 0x0808]);
device.queue.writeBuffer(buffer, 0, view);
buffer.destroy();
console.log(new Uint8Array(await context.readTensor(b)).join());
for (const usage of [0x1, 0x9, 0x2, 0x104]) {
  const tensor = await context.createExportableTensor({...d, readable: true, writable: true}, device, usage);
  context.writeTensor(tensor, floats(1, 2, 3, 4));
  const mapped = context.exportToGPU(tensor);
  if (usage & 3) {
    await mapped.mapAsync(usage);
    const data = new Float32Array(mapped.getMappedRange());
    if (usage === 2) data[0] = 5;
    console.log(data.join());
  }
  mapped.destroy();  // mapped as it is
  console.log(mapped.usage, mapped.asked, await values(tensor));
}
"""

SIZES_SAID = """
8 1,2,3,4,5,6,0,0
7,7,8,8,5,6
1,2,3,4
1 9 1,2,3,4
1,2,3,4
9 9 1,2,3,4
5,2,3,4
2 6 5,2,3,4
260 268 1,2,3,4
"""


def test_sizes_are_rounded_up_and_usages_are_those_asked_for(say):
    assert say(SIZES) == SIZES_SAID.strip().splitlines()


FAILURES = """
context.writeTensor(x, floats(1, 2, 3, 4));
const a = context.exportToGPU(x);
const b = context.exportToGPU(y);
a.destroy();  // its contents are on the way back
device.destroy();
await device.lost;
b.destroy();
for (const tensor of [x, y]) await said(() => context.readTensor(tensor));
await said(() => context.exportToGPU(x));
await said(() => context.createExportableTensor(d, device));
context.writeTensor(x, floats(1, 2, 3, 4));
console.log(await values(x));
const gone = new GPUDevice();
gone.lose();
await said(() => context.createExportableTensor(d, gone));
"""

FAILURES_SAID = """
UnknownError read_buffer(): the buffer holds no data, because export_to_gpu() failed: the GPUBuffer could not be read:\
 lost
UnknownError read_buffer(): the buffer holds no data, because export_to_gpu() failed: the GPUDevice is lost
InvalidStateError exportToGPU(): the GPUDevice is lost
InvalidStateError createExportableTensor(): the GPUDevice is lost
1,2,3,4
InvalidStateError createExportableTensor(): the GPUDevice is lost
"""


FORGOTTEN = """
let tensor = await context.createExportableTensor({...d, readable: true}, device);
let lent = context.exportToGPU(tensor);
tensor = null;
console.log(await contents(device, lent));
lent.destroy();
lent = null;
console.log(await contents(device, context.exportToGPU(y)));
"""


def test_a_tensor_that_a_script_has_let_go_of_comes_back(say):
    assert say(FORGOTTEN) == ["0,0,0,0", "0,0,0,0"]


def test_what_a_lost_device_had_is_lost(say):
    assert say(FAILURES) == FAILURES_SAID.replace("\\\n", "").strip().splitlines()


EMPTY = """
process.on('unhandledRejection', ({name, message}) => console.log(name, message));
device.lose();
await device.lost;
const fresh = new GPUDevice();
const [a, b] = await Promise.all([0, 1].map(() => context.createExportableTensor({...d, readable: true}, fresh)));
const lent = context.exportToGPU(a);
fresh.lose();
await fresh.lost;
context.dispatch(graph, {x: a}, {y: b});  // of a tensor without data
const third = new GPUDevice();
const exported = await context.createExportableTensor(d, third);
context.dispatch(graph, {x: b}, {y: exported});
console.log(await contents(third, context.exportToGPU(exported)));
"""


def test_a_tensor_without_data_is_exported_as_zeros_and_the_reason_is_not_lost(say):
    reason, zeros = say(EMPTY)
    assert reason.startswith("UnknownError export_to_gpu(): the buffer holds no data, because the input 'x' of a")
    assert reason.endswith("the GPUDevice is lost")
    assert zeros == "0,0,0,0"


LIBRARIES = os.environ.get("WEBNN_WEB_LIBRARIES")

REAL = """
import {create, globals} from 'webgpu';
Object.assign(globalThis, globals);
const gpu = create([]);
const adapter = await gpu.requestAdapter();
if (adapter === null) {
  console.log('no adapter');
  process.exit(0);
}
const device = await adapter.requestDevice();
const context = await navigator.ml.createContext();
const d = {dataType: 'float32', shape: [4]};
const builder = new MLGraphBuilder(context);
const one = builder.constant(d, new Float32Array([1, 2, 3, 4]));
const graph = await builder.build({y: builder.add(builder.input('x', d), one)});
const x = await context.createExportableTensor({...d, writable: true}, device);
const y = await context.createExportableTensor({...d, readable: true}, device, GPUBufferUsage.STORAGE);
const module = device.createShaderModule({code: `
  @group(0) @binding(0) var<storage, read_write> b: array<f32>;
  @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { b[i] = 2.0 * b[i]; }`});
const pipeline = device.createComputePipeline({layout: 'auto', compute: {module, entryPoint: 'main'}});
function double(buffer) {
  const entries = [{binding: 0, resource: {buffer}}];
  const group = device.createBindGroup({layout: pipeline.getBindGroupLayout(0), entries});
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  pass.dispatchWorkgroups(1);
  pass.end();
  device.queue.submit([encoder.finish()]);
}
context.writeTensor(x, new Float32Array(4).fill(1));
for (let time = 0; time < 3; time += 1) {
  const before = context.exportToGPU(x);
  double(before);
  before.destroy();
  context.dispatch(graph, {x}, {y});
  const after = context.exportToGPU(y);
  double(after);
  after.destroy();
}
console.log(new Float32Array(await context.readTensor(y)).join());
const mapped = await context.createExportableTensor(d, device, GPUBufferUsage.MAP_READ);
context.dispatch(graph, {x: y}, {y: mapped});
const buffer = context.exportToGPU(mapped);
await buffer.mapAsync(GPUMapMode.READ);
console.log(buffer instanceof GPUBuffer, buffer.usage, new Float32Array(buffer.getMappedRange()).join());
buffer.destroy();
context.exportToGPU(y);
device.destroy();
await device.lost;
await context.readTensor(y).catch(({name}) => console.log(name));
"""


@pytest.mark.skipif(
    shutil.which("node") is None or LIBRARIES is None or not (Path(LIBRARIES) / "node_modules" / "webgpu").exists(),
    reason="needs Node on the PATH, and npm's webgpu in node_modules of the folder that WEBNN_WEB_LIBRARIES names",
)
def test_a_device_of_npms_webgpu_shares_tensors(tmp_path, capfd, monkeypatch):
    (tmp_path / "node_modules").symlink_to(Path(LIBRARIES).resolve() / "node_modules")
    (tmp_path / "program.mjs").write_text(REAL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["node", "--backend", "numpy", *ASKED, "--", "node", "program.mjs"]) == 0
    printed = capfd.readouterr().out.splitlines()
    if printed == ["no adapter"]:
        pytest.skip(
            "Dawn has no adapter here; Chromium's software one is named by VK_ICD_FILENAMES=vk_swiftshader_icd.json"
        )
    assert printed == ["18,20,22,24", "true 1 19,22,25,28", "UnknownError"]
