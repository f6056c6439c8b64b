"""Browser profiles: what one browser's WebNN accepts, as data, and why it refuses a node, a tensor or a graph.

::

    profile     a profile, and what it says about tensors, nodes and graphs
    rules       what browsers refuse beyond their limits, by name
    tables/     a profile each, as TOML
    reading     the tables
    writing     a table, from what a browser reports about itself; ``python -m webnn_py.browser_profiles.writing``
    report      what would fail in which browser, as a table and as JSON
"""

from webnn_py.browser_profiles.profile import BrowserProfile, Refusal
from webnn_py.browser_profiles.reading import NAMES, find
from webnn_py.browser_profiles.report import PortabilityReport

__all__ = ["NAMES", "BrowserProfile", "PortabilityReport", "Refusal", "find"]
