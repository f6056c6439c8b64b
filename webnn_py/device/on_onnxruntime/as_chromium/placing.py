"""Sessions of models as Chromium makes them, and where onnxruntime places each node.

It happens in a process of its own (:mod:`engine_process`), which :func:`main` serves: providers of other makers end the
process on some models.
"""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import attrs
import onnxruntime

from webnn_py.browser_profiles.engines import BrowserEngine
from webnn_py.device.on_onnxruntime import engine as installed
from webnn_py.device.on_onnxruntime.as_chromium.drawing import ChromiumModel
from webnn_py.device.on_onnxruntime.providers import CPU
from webnn_py.errors import NotSupportedError

CONFIGURATION: Final = {
    "session.record_ep_graph_assignment_info": "1",
    "session.strict_shape_type_inference": "1",  # as Chromium sets it
}
"""The configuration of every session."""

DISABLES_FALLBACK: Final = {"session.disable_cpu_ep_fallback": "1"}
"""The configuration with which no session is made where the provider leaves anything."""

UNTOLD: Final = "onnxruntime has no words for it"
"""The error of a session where the exception has no text."""


@attrs.frozen
class Presence:
    """Whether a provider can be asked.

    Attributes:
        versions: the versions of onnxruntime and of the provider's package, if it has one of its own.
        missing: why it cannot be asked; "" if it can.
    """

    versions: str = ""
    missing: str = ""


@attrs.frozen(eq=False)
class Question:
    """A question about a model.

    Attributes:
        engine: the engine to ask.
        model: the model; None to ask only whether the engine is there.
        has_fallback: whether the CPU may compute what the provider leaves.
    """

    engine: BrowserEngine
    model: ChromiumModel | None = None
    has_fallback: bool = True


@attrs.frozen
class Placements:
    """The places of a model's nodes.

    Attributes:
        nodes: for each node the provider, the name, and the ONNX operator.
        error: onnxruntime's words where it makes no session; "" otherwise.
    """

    nodes: tuple[tuple[str, str, str], ...] = ()
    error: str = ""


def presence_of(engine: BrowserEngine, problems: Sequence[str] = ()) -> Presence:
    """Return whether a provider can be asked here, given what is wrong with packages of providers."""
    try:
        installed.find(engine.provider)
    except NotSupportedError:
        package = installed.register_installed().get(engine.provider)
        if package is not None:
            return Presence(missing=f"the package {package} finds no device for {engine.provider} here")
        return Presence(missing="; ".join([f"onnxruntime has no {engine.provider} here", engine.install, *problems]))
    versions = [f"onnxruntime {onnxruntime.__version__}"]
    package = installed.register_installed().get(engine.provider)
    if package is not None:
        name = package.replace("_", "-")
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(name)
    return Presence(" with ".join(versions))


def session_of(
    model: ChromiumModel, engine: BrowserEngine, *, has_fallback: bool = True
) -> onnxruntime.InferenceSession:
    """Make a session as Chromium does.

    Args:
        model: the model; its constants must outlive the session.
        engine: the engine.
        has_fallback: whether the CPU may compute what the provider leaves.

    Raises:
        NotSupportedError: there is no such provider here.
        Exception: onnxruntime makes no session; it has exceptions of its own.
    """
    provider = installed.find(engine.provider)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # failures are raised
    options.intra_op_num_threads = 1
    # The CPU cannot be told that it must not fall back to itself.
    more = {} if has_fallback or provider is CPU else DISABLES_FALLBACK
    for name, value in {**CONFIGURATION, **more}.items():
        options.add_session_config_entry(name, value)
    if model.beside:
        tensors = [*map(onnxruntime.OrtValue.ortvalue_from_numpy, model.beside.values())]
        options.add_external_initializers(list(model.beside), tensors)
    chosen = installed.EngineOptions(provider=provider, provider_options=engine.options).chosen(options, {})
    # It runs after the provider has taken its part, and may end the process.
    left_out = {installed.FUSES_TRANSPOSES} if {"Transpose", "Cast", "MatMul"} <= {*model.operators.values()} else set()
    session = onnxruntime.InferenceSession(model.encoded, options, disabled_optimizers=left_out, **chosen)
    if provider.name not in session.get_providers():
        raise RuntimeError(f"onnxruntime cannot use {provider.name} here")
    return session


def placements_of(question: Question) -> Placements:
    """Return where onnxruntime places the nodes of a model."""
    assert question.model is not None  # noqa: S101 - for type checkers
    try:
        session = session_of(question.model, question.engine, has_fallback=question.has_fallback)
    except Exception as error:  # noqa: BLE001 - onnxruntime's exceptions have no common base, and providers add more
        return Placements(error=str(error).rpartition("[ONNXRuntimeError] : ")[2] or UNTOLD)
    parts = session.get_provider_graph_assignment_info()
    nodes = [(part.ep_name, node.name, node.op_type) for part in parts for node in part.get_nodes()]
    return Placements(tuple(nodes))


def main() -> None:
    """Answer the questions of the standard input until it ends."""
    # Providers print; what they print must not get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        installed.register_installed()
    problems = [str(warning.message) for warning in caught]
    while True:
        try:
            question: Question = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that has started this one
        except EOFError:
            return
        answer: Any = presence_of(question.engine, problems) if question.model is None else placements_of(question)
        pickle.dump(answer, answers)
        answers.flush()
