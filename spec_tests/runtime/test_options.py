"""Options of environments and sessions: the call that is given a wrong one refuses it, before anything is opened."""

import inspect

import numpy as np
import pytest

from spec_tests.support.onnx_programs import add, product
from webnn_py import ML, InvalidStateError
from webnn_py.core.api import ml as ml_module
from webnn_py.runtime import Environment, blocking
from webnn_py.runtime.environment import OWN_OPTIONS
from webnn_py.runtime.loop_thread import LoopThread

W = np.ones((4, 3), np.float32)

WRONG_OPTIONS = [
    (("numpyy",), {}, r"backend is 'numpyy'; it must be one of numpy, wgpu, .*, or None; did you mean 'numpy'\?"),
    (("GPU",), {}, "backend is 'GPU'; it must be one of numpy, wgpu"),
    ((5,), {}, "backend is 5; it must be one of"),
    (
        ("numpy",),
        {"thread": 2},
        r"thread is no option of the device 'numpy'; no device has it; did you mean 'threads'\?",
    ),
    (("onnxruntime",), {"thread": 2}, r"; did you mean 'threads'\?"),
    (("numpy",), {"threads": 2}, "threads is no option of the device 'numpy'; 'onnxruntime' has it"),
    (
        ("wgpu",),
        {"keep_subnormals": True},
        "keep_subnormals is no option of the device 'wgpu'; 'numpy' and 'onnxruntime' have it",
    ),
    (
        (),
        {"color": 1, "threads": 1, "width": 1},
        r"\(color: no device has it; threads: 'onnxruntime' has it; width: no device has it; 'numpy' has [^:]*\)",
    ),
    (
        ("numpy",),
        {"color": 1},
        "color is no option of the device 'numpy'; no device has it; 'numpy' has .*; 'onnxruntime' has threads",
    ),
    (
        (),
        {"adaptor": 0},
        r"no device has the options that are given \(adaptor: no device has it; did you mean 'adapter'\?\)",
    ),
    ((), {"threads": "two"}, "threads is 'two'"),
    ((), {"spinning": 1}, "spinning is 1; it must be True or False"),
    ((), {"execution_provider": 3}, "execution_provider is 3; it must be the name of one of onnxruntime's"),
    ((), {"adapter": -1}, "adapter is -1; it must be an adapter's index"),
    (
        (),
        {"power_preference": "lowpower"},
        r"power_preference is 'lowpower'; it must be one of .*; did you mean 'low-power'\?",
    ),
    ((), {"power_preferance": "low-power"}, r"did you mean 'power_preference'\?"),
    ((), {"accelerated": 1}, "accelerated is 1; it must be True or False"),
    ((), {"max_queued_bytes": -1}, "max_queued_bytes is -1"),
    ((), {"label": 3}, "label is 3; it must be a string"),
    ((), {"preserve_device": 1}, "preserve_device is 1; it must be True or False"),
    ((), {"preserve_devise": True}, r"did you mean 'preserve_device'\?"),
    ((), {"graph_cache": 3}, "graph_cache is 3; it must be the path of a folder"),
    ((), {"graph_cache_bytes": -1}, "graph_cache_bytes is -1; it must be a number of bytes"),
    ((), {"graphs_cache": "folder"}, r"did you mean 'graph_cache'\?"),
    ((), {"gpu_device": 1, "thread": 1}, "gpu_device: 'wgpu' has it; thread: no device has it; did you mean 'threads'"),
]

wrong_options = pytest.mark.parametrize(("arguments", "options", "words"), WRONG_OPTIONS)


@wrong_options
async def test_an_environment_refuses_a_wrong_option_at_once(ml, arguments, options, words):
    with pytest.raises(TypeError, match=rf"Environment\(\): .*{words}"):
        Environment(ml, *arguments, **options)
    async with Environment(ml, "numpy") as env, await env.create_session(add()) as session:
        np.testing.assert_array_equal((await session.run({"x": np.ones((2, 3), np.float32)}))["y"], 2)


async def test_an_environment_names_its_contexts_by_its_label(ml):
    async with Environment(ml, "numpy", label="speech") as env:
        assert env.label == "speech"
        assert repr(env) == "<Environment 'speech' 0 sessions, no device>"
        context = (await env.open_device()).context
        assert context.label == "speech"
        tensor = await env.create_tensor(W)
        context.destroy()
        with pytest.raises(InvalidStateError, match=r"is gone with its device \[speech\], which was lost"):
            await tensor.get_data()
    assert (Environment(ml, "numpy").label, repr(Environment(ml))) == ("", "<Environment 0 sessions, no device>")


async def test_an_environment_has_the_label_of_the_context_that_it_was_given(ml):
    context = await ml.create_context(backend="numpy", label="speech")
    async with Environment(ml, context=context) as env:
        assert env.label == "speech"
        context.destroy()
        with pytest.raises(InvalidStateError, match=r"the context \[speech\] that the environment was given is lost"):
            await env.create_session(add())
    with pytest.raises(TypeError, match="give no backend and no options with it"):
        Environment(ml, context=context, label="other")


def test_a_blocking_environment_names_its_contexts_by_its_label():
    with blocking.Environment("numpy", label="speech") as env:
        assert env.label == env.open_device().context.label == "speech"


def test_a_refused_blocking_environment_leaves_the_loop_usable():
    with blocking.Environment("numpy") as env:
        with pytest.raises(TypeError, match="thread is no option"):
            blocking.Environment("numpy", thread=2)
        with env.create_session(add()) as session:
            np.testing.assert_array_equal(session.run({"x": np.ones((2, 3), np.float32)})["y"], 2)
    assert not LoopThread.running


def test_the_options_that_are_no_devices_are_those_of_the_signatures():
    own = [name for name in inspect.signature(ML.create_context).parameters if name not in {"self", "options"}]
    assert sorted(ml_module.OWN_OPTIONS) == sorted(own)
    of_environment = inspect.signature(Environment).parameters.keys() - {"ml", "backend", "options"}
    assert of_environment == set(OWN_OPTIONS)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"preferred_output_location": "gpu-bufer"},
            r"preferred_output_location is 'gpu-bufer'; it must be one of cpu, .*; did you mean 'gpu-buffer'\?",
        ),
        ({"preferred_output_location": 1}, "preferred_output_location is 1; it must be one of"),
        ({"preferred_output_location": {"y": "gpu"}}, r"preferred_output_location\['y'\] is 'gpu'"),
        ({"enable_graph_capture": 1}, "enable_graph_capture is 1; it must be True or False"),
        ({"progress": 5}, "progress is 5; it must be a function of two numbers, or None"),
        ({"free_dimensions": [1]}, r"free_dimensions is \[1\]; it must be a mapping"),
        ({"free_dimensions": {"batch": "1"}}, r"free_dimensions\['batch'\] is '1'"),
        ({"input_values": [1]}, r"input_values is \[1\]; it must be a mapping of names to arrays"),
        ({"output_names": "y"}, "output_names is 'y'; it must be a sequence of names of outputs"),
        ({"output_names": 5}, "output_names is 5; it must be a sequence of names of outputs"),
        ({"output_names": ["y", 5]}, r"output_names\[1\] is 5; it must be a string"),
    ],
)
async def test_a_session_refuses_a_wrong_option_before_it_reads_the_model(env, given, words):
    with pytest.raises(TypeError, match=rf"create_session\(\): {words}"):
        await env.create_session("missing.onnx", **given)
    assert env.device is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"preferred_output_location": {"Y": "cpu"}}, r"has 'Y'; the outputs are \['y'\]; did you mean 'y'\?"),
        (
            {"free_dimensions": {"bacth": 1}},
            r"has \['bacth'\]; the model's inputs have \['batch'\]; did you mean 'batch'",
        ),
        ({"free_dimensions": {3: 1}}, r"free_dimensions has \[3\]; the model's inputs have"),
        ({"input_values": {"X": 1, 3: 1}}, r"input_values has \[3, 'X'\]; the inputs are \['x'\]"),
        ({"output_names": ["Y"]}, r"output_names is \['Y'\]; the outputs are \['y'\]; did you mean 'y'\?"),
        ({"output_names": []}, r"output_names is \[\]; the outputs are \['y'\]"),
    ],
)
async def test_a_session_names_the_inputs_and_outputs_of_the_model(env, given, words):
    with pytest.raises(TypeError, match=rf"create_session\(\): .*{words}"):
        await env.create_session(product(W), **given)
    assert env.device is None
