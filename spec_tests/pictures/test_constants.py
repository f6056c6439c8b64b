"""Statistics of constants: those that numpy computes of the whole array, whatever the size and the data type."""

import math

import numpy as np
import pytest

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.pictures.constants import PIECE, ConstantStatistics


def statistics(array):
    return ConstantStatistics.from_data(array, MLOperandDescriptor(array.dtype.name, array.shape))


@pytest.mark.parametrize("data_type", ["float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8"])
def test_pieces_give_what_the_whole_array_gives(data_type):
    numbers = np.random.default_rng(1).integers(0, 100, [5, PIECE // 2])
    numbers[2, :3] = 0
    array = (numbers - (0 if data_type[0] == "u" else 50)).astype(data_type)
    found = statistics(array)
    assert (found.min, found.max) == (array.min(), array.max())
    assert found.mean == pytest.approx(array.astype(float).mean(), rel=1e-12)
    assert found.std == pytest.approx(array.astype(float).std(), rel=1e-12)
    assert (found.zeros, found.nan, found.infinite) == (np.sum(array == 0), 0, 0)


def test_nan_and_infinities_are_counted_and_left_out_of_the_mean():
    found = statistics(np.float32([math.nan, -math.inf, 1, 3, -0.0, 0]))
    assert (found.min, found.max) == (-math.inf, 3)
    assert (found.mean, found.std) == (1, pytest.approx(np.std([1, 3, 0, 0])))
    assert (found.zeros, found.nan, found.infinite) == (2, 1, 1)


def test_of_nothing_but_nan_there_is_no_mean():
    assert statistics(np.float32([math.nan] * 3)) == ConstantStatistics(None, None, None, None, 0, 3, 0)


def test_what_is_nearly_constant_and_large_has_its_own_deviation():
    array = np.int64([2**40, 2**40 + 1] * PIECE)
    assert statistics(array).std == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize(("data_type", "elements"), [("uint4", [1, 15, 0, 7, 3]), ("int4", [1, -1, 0, 7, 3])])
def test_elements_of_four_bits_are_looked_at_one_by_one(data_type, elements):
    packed = np.uint8([0xF1, 0x70] * PIECE + [0xF3])  # the last half is no element
    found = ConstantStatistics.from_data(packed, MLOperandDescriptor(data_type, [4 * PIECE + 1]))
    assert (found.min, found.max, found.zeros) == (min(elements), max(elements), PIECE)
    assert found.mean == pytest.approx(np.mean(elements[:4]), rel=1e-5)
