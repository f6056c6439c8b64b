"""WGSL as text: how the eight data types are stored, loaded and stored again.

Buffers hold elements as the host does: float16 two bytes, int8 and uint8 one. WGSL has no 8-bit types, and 16-bit ones
only with a feature, so those lie packed in words. Kernels compute in ``f32``, ``i32``, ``u32``, ``i64`` or ``u64``;
four neighbouring elements are the unit in which dense buffers are read and written.
"""

from typing import Final

import attrs
import numpy as np

from webnn_py.core.descriptors import FOUR_BITS, INT4, MLOperandDataType

WIDTH: Final = 4
"""The elements of a vec4: those that an invocation of an element-wise kernel computes."""

COMPONENTS: Final = "xyzw"
"""The names of a vec4's elements."""


@attrs.frozen
class Element:
    """The types in which a data type is stored and computed.

    Attributes:
        data_type: the data type.
        compute: the WGSL type of one element in a kernel.
        vec4: the WGSL type of four neighbouring elements in a buffer.
        one: the WGSL type of the smallest piece of a buffer that holds whole elements.
        per_one: elements in that piece.
    """

    data_type: MLOperandDataType
    compute: str
    vec4: str
    one: str
    per_one: int

    def unpack(self, vec4: str) -> list[str]:
        """Expressions for the four elements of ``vec4``, a variable of type ``self.vec4``."""
        components = [f"{vec4}.{component}" for component in COMPONENTS]
        if self.data_type in ("int8", "uint8"):
            return [self.byte(vec4, str(8 * component)) for component in range(4)]
        if self.data_type in FOUR_BITS:
            return [self._half_byte(vec4, f"{4 * component}u") for component in range(4)]
        if self.data_type == "float16":
            if self.one == "f16":
                return [f"f32({component})" for component in components]
            return [f"unpack2x16float({vec4}.{word}).{half}" for word in "xy" for half in "xy"]
        return components

    def pack(self, values: list[str]) -> str:
        """Return an expression of type ``self.vec4`` for four elements."""
        if self.data_type in ("int8", "uint8"):
            words = [f"(u32({value}) & 255u)" for value in values]
            return f"{words[0]} | ({words[1]} << 8u) | ({words[2]} << 16u) | ({words[3]} << 24u)"
        if self.data_type == "float16":
            if self.one == "f16":
                return f"vec4<f16>({', '.join(f'f16({value})' for value in values)})"
            low, high = (
                f"half_bits({first}) | (half_bits({second}) << 16u)" for first, second in (values[:2], values[2:])
            )
            return f"vec2<u32>({low}, {high})"
        return f"{self.vec4}({', '.join(values)})"

    def four(self, buffer: str, index: str) -> str:
        """Return the four elements number ``index`` of ``buffer``, an array of ``self.vec4``, for :meth:`unpack`."""
        if self.data_type in FOUR_BITS:
            return f"({buffer}[({index}) >> 1u] >> ((({index}) & 1u) << 4u))"
        return f"{buffer}[{index}]"

    def byte(self, word: str, shift: str) -> str:
        """Return the 8-bit element of ``word`` that begins at bit ``shift``."""
        if self.data_type == "int8":
            return f"(i32({word} << (24u - {shift}u)) >> 24u)"
        return f"(({word} >> {shift}u) & 255u)"

    def _half_byte(self, word: str, shift: str) -> str:
        """Return the 4-bit element of ``word`` that begins at bit ``shift``."""
        if self.data_type == INT4:
            return f"(i32({word} << (28u - {shift})) >> 28u)"
        return f"(({word} >> {shift}) & 15u)"

    def load(self, buffer: str, index: str) -> str:
        """Return the element number ``index`` of ``buffer``, an array of ``self.one``."""
        if self.data_type in FOUR_BITS:
            return self._half_byte(f"{buffer}[({index}) >> 3u]", f"((({index}) & 7u) << 2u)")
        if self.data_type == "int8":
            return f"(i32({buffer}[({index}) >> 2u] << (24u - 8u * (({index}) & 3u))) >> 24u)"
        if self.data_type == "uint8":
            return f"(({buffer}[({index}) >> 2u] >> (8u * (({index}) & 3u))) & 255u)"
        if self.data_type == "float16":
            if self.one == "f16":
                return f"f32({buffer}[{index}])"
            return f"unpack2x16float({buffer}[({index}) >> 1u])[({index}) & 1u]"
        return f"{buffer}[{index}]"

    def narrow(self, value: str, *, is_stored: bool = False) -> str:
        """Return a computed value as it would be read back: rounded to float16, wrapped to 8 bits.

        What is stored and not read before needs no rounding: :meth:`pack` does that.
        """
        if self.data_type == "int8":
            return f"((i32({value}) << 24u) >> 24u)"
        if self.data_type == "uint8":
            return f"(u32({value}) & 255u)"
        if self.data_type == "float16" and not is_stored:
            # By integers: quantizeToF16 makes zeros of subnormal numbers, and drivers drop f32(f16(x)).
            return f"rounded_half({value})"
        return value

    def literal(self, value: float) -> str:
        """Return a number as a WGSL expression of type ``self.compute``."""
        return literal(value, self.compute)


def compute_type(data_type: MLOperandDataType) -> str:
    """Return the WGSL type in which kernels compute a data type."""
    return element(data_type, shader_f16=False).compute


def literal(value: float, kind: str) -> str:
    """Return a number as a WGSL expression; infinities and NaN, which no constant expression may be, by a call."""
    if kind == "f32":
        number = np.float32(value)
        if np.isfinite(number):
            return f"f32({float(number)!r})"
        return f"float_of_bits({int(number.view(np.uint32))}u)"
    suffix = {"i32": "i", "u32": "u", "i64": "li", "u64": "lu"}[kind]
    lowest = {"i32": -(2**31), "i64": -(2**63)}.get(kind)
    if value == lowest:  # its absolute value is no literal
        return f"({int(value) + 1}{suffix} - 1{suffix})"
    return f"{int(value)}{suffix}"


def element(data_type: MLOperandDataType, *, shader_f16: bool) -> Element:
    """Return the storage of a data type on an adapter that has 16-bit floats in buffers, or not."""
    if data_type == "float16":
        if shader_f16:
            return Element(data_type, "f32", "vec4<f16>", "f16", 1)
        return Element(data_type, "f32", "vec2<u32>", "u32", 2)
    if data_type in ("int8", "uint8"):
        return Element(data_type, "i32" if data_type == "int8" else "u32", "u32", "u32", 4)
    if data_type in FOUR_BITS:  # which are read only
        return Element(data_type, "i32" if data_type == INT4 else "u32", "u32", "u32", 8)
    kind = {"float32": "f32", "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64"}[data_type]
    return Element(data_type, kind, f"vec4<{kind}>", kind, 1)
