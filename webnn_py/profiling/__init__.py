"""Profiles of graphs: where the time of a dispatch goes, kernel by kernel."""

from webnn_py.profiling.measuring import DeviceRates as DeviceRates
from webnn_py.profiling.profile import profile as profile
from webnn_py.profiling.report import GraphProfile as GraphProfile
from webnn_py.profiling.report import KernelProfile as KernelProfile
from webnn_py.profiling.report import OperatorProfile as OperatorProfile
