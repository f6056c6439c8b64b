"""The examples on real models; a test whose model cannot be downloaded is skipped, and says which."""

import re
from pathlib import Path

import pytest
import real_models

EXAMPLES = Path(real_models.__file__).parent


@pytest.fixture(scope="session")
def real_file():
    """Return a function from a name to a file of ``real_models``; each package is installed once."""
    refused = {}

    def get(name):
        package = real_models.FILES[name].package
        if package not in refused:
            try:
                return real_models.get(name)
            except real_models.RegistryError as error:
                refused[package] = error
        return pytest.skip(f"real model not tested: {refused[package]}")

    return get


@pytest.fixture
def files_of(real_file):
    """Return a function that fetches all files of an example."""

    def get(example):
        text = (EXAMPLES / f"{example}.py").read_text(encoding="utf-8")
        names = re.findall(r'real_models\.get\("(\w+)"\)', text)
        assert names, f"{example}.py uses no real model"
        for name in names:
            real_file(name)

    return get
