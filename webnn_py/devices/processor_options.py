"""The option of devices that compute on the processor."""

from typing import Final

from webnn_py.core.device.registry import DeviceOption
from webnn_py.core.operators.idl import boolean

KEEP_SUBNORMALS: Final = DeviceOption(
    "keep_subnormals",
    "whether subnormal numbers in constants of products and convolutions stay; by default they become zeros where many "
    "of them make a graph several times slower",
    default=False,
    convert=boolean,
)
