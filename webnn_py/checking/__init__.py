"""Finite checks: the first node of a graph that makes a NaN or an infinity."""

from webnn_py.checking.check_finite import check_finite as check_finite
from webnn_py.checking.non_finite import NonFinite as NonFinite
from webnn_py.checking.non_finite import ValueRange as ValueRange
