"""All decompositions; a build imports those of the categories that it needs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from webnn_py.core.decompositions.common import DECOMPOSED
from webnn_py.core.operators.declaration import Decomposition
from webnn_py.core.operators.registry import import_categories

import_categories("webnn_py.core.decompositions")

DECOMPOSITIONS: Final[Mapping[str, Decomposition]] = MappingProxyType(DECOMPOSED)
"""The decompositions by the operators' names."""
