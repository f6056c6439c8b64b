"""An environment on each device; its sessions' models are small."""

from contextlib import asynccontextmanager

import numpy as np
import pytest

from webnn_py.runtime import Environment

pytest.importorskip("onnx")


@asynccontextmanager
async def opened(ml, **options):
    """Open an environment, and dispose of the tensors that a test has created by ``create_tensor()`` at its end."""
    async with Environment(ml, **options) as environment:
        create, tensors = environment.create_tensor, []

        async def create_tensor(*data, **described):
            tensors.append(await create(*data, **described))
            return tensors[-1]

        environment.create_tensor = create_tensor
        yield environment
        for tensor in tensors:
            tensor.dispose()


@pytest.fixture
def contexts(ml, monkeypatch):
    """Return the list of contexts that environments open."""
    create, found = ml.create_context, []

    def create_context(_ml, **options):
        promise = create(**options)
        promise.on_settled(lambda: found.append(promise.outcome))
        return promise

    monkeypatch.setattr(type(ml), "create_context", create_context)
    return found


@pytest.fixture
async def env(ml, options):
    async with opened(ml, **options) as environment:
        yield environment


@pytest.fixture
def x():
    return np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
async def gpu_env(ml, shared_gpu):
    async with opened(ml, gpu_device=shared_gpu) as environment:
        yield environment
