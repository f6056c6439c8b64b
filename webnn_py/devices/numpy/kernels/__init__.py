"""The numpy kernels, one module per category of operators; importing this package fills the table."""

from webnn_py.core.operators.registry import import_categories

import_categories(__name__)
