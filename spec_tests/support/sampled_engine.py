"""Of the tests that run on every device, a quick run has a share on onnxruntime: another one each day."""

from spec_tests.support.depth import deselect, has_turn, is_full

ENGINE = "onnxruntime"
PARTS = 13
"""One test of so many; a prime, so that every parameter has its turn."""


def choose(config, items):
    """Leave out the tests on the engine that have no turn."""
    if is_full(config):
        return
    positions = {}

    def is_wanted(item):
        given = getattr(item, "callspec", None)
        if given is None or given.params.get("backend") != ENGINE:
            return True
        function = item.nodeid.partition("[")[0]
        # Functions begin at different places, or all would have their first test on the same day.
        position = positions[function] = positions.get(function, sum(map(ord, function))) + 1
        return has_turn(config, position, PARTS)

    deselect(config, items, is_wanted)
