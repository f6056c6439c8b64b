"""Browser profiles: what one browser's WebNN accepts, as data, and why it refuses a node, a tensor or a graph.

::

    profile     a profile, and what it says about tensors, nodes and graphs
    tables/     a profile each, as TOML
    rules       what browsers refuse beyond their limits, by name
    report      what would fail in which browser, as a table and as JSON
"""

from webnn_py.browser_profiles.profile import NAMES, BrowserProfile, Refusal, find
from webnn_py.browser_profiles.report import PortabilityReport

__all__ = ["NAMES", "BrowserProfile", "PortabilityReport", "Refusal", "find"]
