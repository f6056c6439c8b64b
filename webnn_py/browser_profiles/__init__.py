"""Browser profiles: what one browser's WebNN accepts, as data, and why it refuses a node, a tensor or a graph.

::

    profile     a profile, and what it says about tensors, nodes and graphs
    rules       what browsers refuse beyond their limits, by name
    engines     the engines that are asked which operators they take
    verdict     what an engine answered about a graph
    tables/     a profile each, as TOML
    reading     the tables
    writing     a table, from what a browser reports about itself; ``python -m webnn_py.browser_profiles.writing``
    report      what would fail in which browser, as a table and as JSON
"""

from webnn_py.browser_profiles.engines import ENGINES, BrowserEngine
from webnn_py.browser_profiles.profile import BrowserProfile, Refusal
from webnn_py.browser_profiles.reading import ALL_NAMES, NAMES, find
from webnn_py.browser_profiles.report import PortabilityReport
from webnn_py.browser_profiles.verdict import EngineVerdict, OperatorVerdict

__all__ = [
    "ALL_NAMES",
    "ENGINES",
    "NAMES",
    "BrowserEngine",
    "BrowserProfile",
    "EngineVerdict",
    "OperatorVerdict",
    "PortabilityReport",
    "Refusal",
    "find",
]
