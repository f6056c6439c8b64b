"""Methods raise documented errors alone, whatever their arguments are and do."""

from functools import partial

from spec_tests.operators.minimal import draw_operands, minimal
from spec_tests.support.cells import cells
from spec_tests.support.hostile import VALUES
from spec_tests.support.own_statistics import own_statistics
from spec_tests.support.scene import ONES, PROMISES, assert_works, set_scene
from webnn_py import (
    DestroyedBufferError,
    InvalidStateError,
    MLBuffer,
    MLGraphBuilder,
    MLPromise,
    NotSupportedError,
    UnknownError,
)
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.devices.wgpu import interop

LONGEST_MESSAGE = 2000


def gpu_buffer(scene):
    """Create a user's own GPU buffer where the context runs on a GPU."""
    if "gpu_device" not in scene.options:
        return None
    return scene.options["gpu_device"].create_buffer(size=32, usage="STORAGE|COPY_SRC|COPY_DST")


CALLS = {
    "create_context": (lambda s: s.ml.create_context, {}),
    "create_buffer": (lambda s: s.context.create_buffer, {"data_type": "float32", "shape": [2]}),
    "create_constant_buffer": (
        lambda s: s.context.create_constant_buffer,
        {"data": ONES, "data_type": "float32", "shape": [2]},
    ),
    "write_buffer": (lambda s: s.context.write_buffer, {"buffer": lambda s: s.x, "data": ONES}),
    "read_buffer": (lambda s: s.context.read_buffer, {"buffer": lambda s: s.x, "out": None}),
    "dispatch": (
        lambda s: s.context.dispatch,
        {"graph": lambda s: s.graph, "inputs": lambda s: {"x": s.x}, "outputs": lambda s: {"y": s.y}},
    ),
    "MLGraphBuilder": (lambda _: MLGraphBuilder, {"context": lambda s: s.context}),
    "input": (lambda s: s.builder.input, {"name": "another", "data_type": "float32", "shape": [2]}),
    "constant": (lambda s: s.builder.constant, {"value": ONES, "data_type": "float32", "shape": [2]}),
    "build": (lambda s: s.builder.build, {"outputs": lambda s: {"y": s.output}}),
    "import_buffer": (
        lambda s: partial(interop.import_buffer, s.context),
        {"gpu_buffer": gpu_buffer, "data_type": "float32", "shape": [2]},
    ),
    "export_to_gpu": (lambda s: partial(interop.export_to_gpu, s.context), {"buffer": lambda s: s.flagless}),
}
"""The public methods that take values, each with a right call's arguments."""

OPTIONAL = {
    "create_context": [
        "power_preference",
        "accelerated",
        "backend",
        "max_queued_bytes",
        "label",
        "gpu_device",
        "unknown",
    ],
    "create_buffer": ["readable", "writable"],
    "import_buffer": ["readable", "writable"],
}
"""Arguments that a right call does without."""

DOCUMENTED = {
    "create_context": (TypeError, NotSupportedError),
    "create_constant_buffer": (TypeError, UnknownError),
    "write_buffer": (TypeError, UnknownError),
    "constant": (TypeError, UnknownError),
    "build": (TypeError, InvalidStateError),
    "read_buffer": (TypeError, DestroyedBufferError),
    "import_buffer": (TypeError, NotSupportedError),
    "export_to_gpu": (TypeError, NotSupportedError),
}
"""The errors that each method may raise; where it is not listed, TypeError."""


def arguments_of(method):
    return [*CALLS[method][1], *OPTIONAL.get(method, [])]


def right(scene, method):
    """The method, bound, and the arguments of a right call."""
    bound, arguments = CALLS[method]
    return bound(scene), {name: value(scene) if callable(value) else value for name, value in arguments.items()}


async def refusal(method, call):
    """The error with which a call is refused, which is a documented one; None when it is not refused."""
    documented = DOCUMENTED.get(method, (TypeError,))
    try:
        answer = call()
    except documented as error:
        assert method not in (*PROMISES, "export_to_gpu"), f"{method}() must give a promise"
        refused = error
    else:
        if isinstance(answer, MLBuffer):
            answer.destroy()
        if not (isinstance(answer, MLPromise) and (answer.state == "rejected" or method == "create_context")):
            return None
        try:
            await answer
        except documented as error:
            refused = error
        else:
            return None
    words = str(refused)
    assert words.startswith(f"{method}()"), words
    assert len(words) <= LONGEST_MESSAGE, f"a message of {len(words)} characters: {words[:200]}..."
    assert words.isprintable(), words
    return refused


async def assert_harmless(scene, method, call):
    """A call with hostile arguments is refused as documented, and leaves nothing in the queues; or it is right."""
    before = own_statistics(scene.context), own_statistics(scene.other)
    if await refusal(method, call) is not None:
        after = own_statistics(scene.context), own_statistics(scene.other)
        assert after == before, "a refused call enqueued something"


CASES = [(method, argument) for method in CALLS for argument in arguments_of(method)]


@cells(("method", "argument"), CASES)
async def test_a_hostile_argument_does_no_harm(ml, options, method, argument):
    scene = await set_scene(ml, options)
    scene.context.device_timeline.pause()  # so that all that is enqueued is seen
    for what, make in VALUES.items():
        bound, arguments = right(scene, method)
        try:
            await assert_harmless(scene, method, partial(bound, **{**arguments, argument: make()}))
        except BaseException as error:
            error.add_note(f"the argument: {what}")
            raise
        if method == "build":
            scene = await again(scene)
    scene.context.device_timeline.resume()
    await assert_works("dispatch" if method in ("import_buffer", "export_to_gpu") else method, scene)


async def again(scene):
    """A scene with a builder that has not built."""
    if not scene.builder._has_built:
        return scene
    scene.builder = MLGraphBuilder(scene.context)
    scene.input = scene.builder.input("x", data_type="float32", shape=[2])
    scene.output = scene.builder.add(scene.input, scene.input)
    return scene


OF_EACH_KIND = {
    parameter.convert: (name, argument)
    for name, operator in OPERATORS.items()
    for argument, parameter in operator.parameters.items()
}
"""An operator and an argument for each way in which arguments are converted, which operators have in common."""


@cells(("name", "argument"), [*OF_EACH_KIND.values(), ("conv2d", "unknown")])
async def test_a_hostile_argument_of_an_operator_does_no_harm(numpy_context, name, argument):
    builder = MLGraphBuilder(numpy_context)
    method = getattr(builder, name)
    arguments = draw_operands(builder, minimal(name))
    for what, make in VALUES.items():
        try:
            await refusal(name, partial(method, **{**arguments, argument: make()}))
        except BaseException as error:
            error.add_note(f"the argument {argument}: {what}")
            raise
    drawn = method(**arguments)
    outputs = drawn if isinstance(drawn, list) else [drawn]
    graph = await builder.build({str(index): output for index, output in enumerate(outputs)})
    assert len(graph.output_descriptors) == len(outputs)
