"""The register of all operators: importing the modules of all categories fills it."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from webnn_py.core.operators.declaration import DECLARED, Operator

CATEGORIES: Final = (
    "arithmetic",
    "logical",
    "unary",
    "activation",
    "conversion",
    "reduction",
    "movement",
    "indexing",
    "matrix",
    "convolution",
    "pooling",
    "resampling",
    "normalization",
    "recurrent",
)
"""Operators are sorted into these: a module of the name here, and for decompositions, kernels and ONNX rules each."""


def import_categories(package: str) -> None:
    """Import a package's module for each category; what they declare enters its table."""
    for category in CATEGORIES:
        import_module(f"{package}.{category}")


import_categories("webnn_py.core.operators")

OPERATORS: Mapping[str, Operator[..., Any]] = MappingProxyType(DECLARED)
"""Every operator by its Python name."""

BY_SPEC_NAME: Mapping[str, Operator[..., Any]] = {operator.spec_name: operator for operator in OPERATORS.values()}
