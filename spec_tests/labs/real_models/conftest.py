"""A model that is not in the list, and its file."""

import pytest

from spec_tests.labs.real_models.listed import Model, Package


@pytest.fixture
def model():
    package = Package("no-such-package", "1.0", "MIT")
    return Model(package=package, file="model.onnx", sha256="0" * 64, inputs={"x": "noise 3 8"})


@pytest.fixture
def path(request, tmp_path):
    """The file of what the module's ``written()`` makes."""
    path = tmp_path / "model.onnx"
    path.write_bytes(request.module.written())
    return path
