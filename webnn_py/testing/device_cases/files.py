"""Cases as data: the files of this folder, and what they mean.

A file holds the cases of one operator, in the folder of its category::

    {"operator": "add", "oracle": "what computed the expectations", "cases": [
    {"name": "…", "inputs": {"a": T, "b": T}, "options": {}, "expected": [T], "tolerance": {"ulp": 1}},
    …]}

``inputs`` has the operands by the method's parameter names, a list where the method takes a sequence. A tensor T is
``{"data_type": "float32", "shape": [2], "data": [0.5, "nan"]}``; with ``"constant": true`` it is drawn as a constant
instead of a graph input. NaN, infinities and -0 are the strings "nan", "inf", "-inf" and "-0".

A tolerance is one of ``{"exact": true}`` (the same bits, any NaN for a NaN), ``{"ulp": n}`` (units in the last place
of the data type, zeros of both signs being one; for integers the difference) and ``{"absolute": x}``. NaN and
infinities must stand where they are expected whatever the tolerance.

Wheels have all files in one, ``cases.xz``, which ``hatch_build.py`` packs: a compressed object of JSON.
"""

import json
import lzma
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, cast

import attrs
import numpy as np

from webnn_py.core.api.context import MLContext
from webnn_py.testing.device_cases.graphs import DRAWERS, Drawn, run
from webnn_py.testing.device_cases.tensors import Array, decode, difference

FOLDER: Final = Path(__file__).parent

PACKED: Final = FOLDER / "cases.xz"
"""All files in one, as wheels have them."""

SMALLEST_NORMAL: Final = float(np.finfo(np.float32).smallest_normal)


@attrs.frozen(slots=False, eq=False)
class Case:
    """One call of one operator, with the results that it must have; arrays are decoded on first use.

    Attributes:
        category: of the operator, such as ``"arithmetic"``.
        operator: the name of the builder's method.
        raw: the case as it is in the file; ``webnn_py.testing.device_cases.files`` describes the format.
    """

    category: str
    operator: str
    raw: dict[str, Any]

    def __str__(self) -> str:
        """Return the operator and the name, by which a test can be called."""
        return f"{self.operator}: {self.name}"

    @property
    def name(self) -> str:
        """Its name, which no other case of the operator has."""
        return cast("str", self.raw["name"])

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of the call that are no operands."""
        return {name: _number(value) for name, value in self.raw.get("options", {}).items()}

    @property
    def tolerance(self) -> dict[str, Any]:
        """The allowed deviation of a result: none, in units in the last place, or absolute."""
        return cast("dict[str, Any]", self.raw["tolerance"])

    @cached_property
    def expected(self) -> list[Array]:
        """Return the results, one array for each output."""
        return [decode(tensor) for tensor in self.raw["expected"]]

    @property
    def inputs(self) -> dict[str, Any]:
        """The operands as they are written, by parameter: a tensor, or a list of them."""
        return cast("dict[str, Any]", self.raw["inputs"])

    @property
    def has_subnormals(self) -> bool:
        """Return whether an operand or a result has subnormal float32 numbers, which GPUs may take for zero."""
        arrays = [*(decode(tensor) for _, tensor in self._operands()), *self.expected]
        singles = [array for array in arrays if array.dtype == np.float32]
        return any(bool(((array != 0) & (np.abs(array) < SMALLEST_NORMAL)).any()) for array in singles)

    def is_supported(self, context: MLContext) -> bool:
        """Return whether the operands are within the limits of ``context.op_support_limits()``.

        A device that lacks a data type, say int64, refuses the cases that have it: skip them.
        """
        limits = context.op_support_limits()
        of_operator, of_inputs = limits[self.operator], limits["input"]
        return all(
            tensor["data_type"] in row["data_types"]
            and row["rank_range"]["min"] <= len(tensor["shape"]) <= row["rank_range"]["max"]
            for parameter, tensor in self._operands()
            for row in (of_operator[parameter], of_inputs)
        )

    async def check(self, context: MLContext, *, drawn: Drawn = "as_written") -> None:
        """Draw, build, dispatch and read the case, and compare the results with what is expected.

        Args:
            context: where it runs; nothing of the case is left behind there.
            drawn: how the operands are drawn: ``"as_written"``, graph inputs and constants as the file has them;
                ``"as_constant"``, so that the device may compute the result at build; ``"as_view"`` and ``"as_part"``,
                as results of slices, transpositions and reversals of larger inputs.

        Raises:
            AssertionError: A result is not what is expected; the text says which output, where and by how much.
        """
        results = await run(context, self, DRAWERS[drawn])
        if len(results) != len(self.expected):
            raise AssertionError(f"{self} ({drawn}): {len(results)} outputs; expected {len(self.expected)}")
        for index, (got, expected) in enumerate(zip(results, self.expected, strict=True)):
            wrong = difference(got, expected, self.tolerance)
            if wrong is not None:
                raise AssertionError(f"{self} ({drawn}): output {index}: {wrong}")

    def _operands(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the parameter and the tensor of each operand, sequences flattened."""
        return [
            (parameter, tensor)
            for parameter, given in self.inputs.items()
            for tensor in (given if isinstance(given, list) else [given])
        ]


def _number(value: object) -> object:
    """Return an option's value: the strings of numbers that JSON has not are numbers."""
    return float(value) if isinstance(value, str) and value in {"nan", "inf", "-inf", "-0"} else value


@attrs.frozen
class CaseFile:
    """The cases of one operator."""

    category: str
    operator: str
    oracle: str
    cases: tuple[Case, ...]


@cache
def load(category: str, operator: str) -> CaseFile:
    """Read the cases of one operator."""
    name = f"{category}/{operator}"
    content = unpacked(PACKED)[name] if PACKED.is_file() else json.loads(FOLDER.joinpath(f"{name}.json").read_bytes())
    cases = tuple(Case(category, operator, raw) for raw in content["cases"])
    return CaseFile(category, operator, content["oracle"], cases)


def load_all() -> list[CaseFile]:
    """Read the cases of all operators."""
    if PACKED.is_file():
        names = [name.split("/") for name in unpacked(PACKED)]
    else:
        names = [[path.parent.name, path.stem] for path in sorted(FOLDER.glob("*/*.json"))]
    return [load(category, operator) for category, operator in names]


@cache
def unpacked(path: Path) -> dict[str, Any]:
    """Return the contents of all files, by category and operator such as ``"arithmetic/add"``."""
    return cast("dict[str, Any]", json.loads(lzma.decompress(path.read_bytes())))
