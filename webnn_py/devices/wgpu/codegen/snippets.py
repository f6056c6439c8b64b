"""WGSL helper functions; modules include those that they call.

Functions of floats are in ``math.wgsl``, ``powers.wgsl`` and ``angles.wgsl``; those of integers are generated here for
each type.
"""

import re
from importlib.resources import files
from typing import Final

INTEGERS: Final = {"i32": "i", "u32": "u", "i64": "li", "u64": "lu"}
"""The integer types that kernels compute in, and the suffixes of their literals."""

OTHER_SIGNEDNESS: Final = {"i32": "u32", "u32": "i32", "i64": "u64", "u64": "i64"}


def text(name: str) -> str:
    """Return the text of a WGSL file in this package."""
    return (files("webnn_py.devices.wgpu.codegen") / name).read_text(encoding="utf-8")


def functions(wgsl: str) -> dict[str, str]:
    """Return the functions of a WGSL text by name, without comments."""
    code = re.sub(r"^\s*//.*\n", "", wgsl, flags=re.MULTILINE)
    return {match[1]: match[0] for match in re.finditer(r"^fn (\w+)\(.*?^}$", code, re.MULTILINE | re.DOTALL)}


def quotient_of_integers(kind: str, suffix: str) -> str:
    """Return the function for a / b, truncated; a / 0 is 0, and the lowest integer / -1 wraps to itself."""
    wraps = f" || (b == -1{suffix} && a == -a)" if kind.startswith("i") else ""
    return f"""fn quotient_{kind}(a: {kind}, b: {kind}) -> {kind} {{
  return select(a / select(b, 1{suffix}, b == 0{suffix}{wraps}), 0{suffix}, b == 0{suffix});
}}"""


def power_of_integers(kind: str, suffix: str) -> str:
    """Return the function for aᵇ, with wrap-around; truncated for negative b."""
    fraction = f"""
  if (b < 0{suffix}) {{
    return select(0{suffix}, select(1{suffix}, a, (b & 1{suffix}) == 1{suffix}), a == 1{suffix} || a == -1{suffix});
  }}"""
    return f"""fn power_{kind}(a: {kind}, b: {kind}) -> {kind} {{{fraction if kind.startswith("i") else ""}
  var power = 1{suffix};
  var square = a;
  for (var rest = b; rest != 0{suffix}; rest = rest >> 1u) {{
    power = select(power, power * square, (rest & 1{suffix}) == 1{suffix});
    square = square * square;
  }}
  return power;
}}"""


def position(kind: str, suffix: str) -> str:
    """Return the function that clamps an index to an axis; negative indices count from the end."""
    if kind == "u32":
        return "fn position_u32(index: u32, size: u32) -> u32 {\n  return min(index, size - 1u);\n}"
    return f"""fn position_{kind}(index: {kind}, size: u32) -> u32 {{
  let counted = select(index, index + {kind}(size), index < 0{suffix});
  return u32(clamp(counted, 0{suffix}, {kind}(size) - 1{suffix}));
}}"""


def flipped(kind: str) -> str:
    """Return the function that flips an integer's sign bit and changes its signedness, which keeps the order."""
    other = OTHER_SIGNEDNESS[kind]
    highest = f"{1 << int(kind[1:]) - 1:#x}{INTEGERS['u' + kind[1:]]}"
    return f"""fn flipped_{kind}(x: {kind}) -> {other} {{
  return bitcast<{other}>(x) ^ bitcast<{other}>({highest});
}}"""


def extreme_of_integers(function: str, kind: str) -> str:
    """Return the function for the maximum (``max``) or minimum (``min``) of two integers, by their flipped bits.

    It works around NVIDIA's driver 580, which fuses nested calls of WGSL's own functions into one instruction that
    loses the negation of an operand, and which takes 64-bit absolute values for nonnegative, although that of the
    lowest integer is negative. Flipped operands are neither negations nor absolute values.
    """
    compared = f"{function}(flipped_{kind}(a), flipped_{kind}(b))"
    return f"""fn {function}_{kind}(a: {kind}, b: {kind}) -> {kind} {{
  return flipped_{OTHER_SIGNEDNESS[kind]}({compared});
}}"""


WIDENED: Final = {
    "widened_i32": """fn widened_i32(x: i32) -> i64 {
  return (i64(x >> 31u) << 32u) | i64(u64(bitcast<u32>(x)));
}""",
    "widened_u32": """fn widened_u32(x: u32) -> i64 {
  return i64(u64(x));
}""",
}
"""Conversions of 32-bit integers to i64. Mesa 22.3 folds comparisons of ``i64(x)`` with constants incorrectly."""


def _saturated(kind: str, below: str, beyond: str, lowest: str, highest: str) -> str:
    """Return the function that converts a float to an integer: truncating and saturating, 0 for NaN."""
    zero = f"0{INTEGERS[kind]}"
    return f"""fn saturated_{kind}(x: f32) -> {kind} {{
  if (is_nan(x)) {{ return {zero}; }}
  if (x <= {below}) {{ return {lowest}; }}
  if (x >= {beyond}) {{ return {highest}; }}
  return {kind}(x);
}}"""


SNIPPETS: Final[dict[str, str]] = {
    **functions(text("math.wgsl")),
    **functions(text("powers.wgsl")),
    **functions(text("angles.wgsl")),
    **{f"quotient_{kind}": quotient_of_integers(kind, suffix) for kind, suffix in INTEGERS.items()},
    **{f"power_{kind}": power_of_integers(kind, suffix) for kind, suffix in INTEGERS.items()},
    **{f"position_{kind}": position(kind, INTEGERS[kind]) for kind in ("i32", "u32", "i64")},
    **{f"flipped_{kind}": flipped(kind) for kind in INTEGERS},
    **{f"{name}_{kind}": extreme_of_integers(name, kind) for name in ("max", "min") for kind in INTEGERS},
    **WIDENED,
    "saturated_i32": _saturated("i32", "-2147483648.0", "2147483648.0", "-2147483647i - 1i", "2147483647i"),
    "saturated_u32": _saturated("u32", "0.0", "4294967296.0", "0u", "4294967295u"),
    "saturated_i64": _saturated(
        "i64",
        "-9223372036854775808.0",
        "9223372036854775808.0",
        "-9223372036854775807li - 1li",
        "9223372036854775807li",
    ),
    "saturated_u64": _saturated("u64", "0.0", "18446744073709551616.0", "0lu", "18446744073709551615lu"),
}
"""The helper functions by name. A call ``name(`` in a module includes the function and its callees."""
