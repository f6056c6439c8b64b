"""Of the tests that run on every device, a run has a share on onnxruntime: another one each day."""

from spec_tests.support.depth import amount, deselect, has_cells, has_turn
from webnn_py.device.on_onnxruntime import device_record

ENGINE = "onnxruntime"
CPU = "CPUExecutionProvider"
PARTS = {"quick": 13, "full": 5, "thorough": 1}
"""One test of so many; primes, so that every parameter has its turn."""


OPTION = "--execution-provider"


def pytest_addoption(parser):
    parser.addoption(OPTION, metavar="NAME", help="test all of the onnxruntime device, on this execution provider")


def configure(config):
    provider = config.getoption(OPTION)
    if provider is not None:
        device_record.DEFAULT_PROVIDER = provider


def owner(backend):
    """Return the name under which facts of a backend are listed: the execution provider's, where one is tested."""
    return backend if backend != ENGINE or device_record.DEFAULT_PROVIDER == CPU else device_record.DEFAULT_PROVIDER


def choose(config, items):
    """Leave out the tests on the engine that have no turn, unless a provider is tested."""
    if config.getoption(OPTION) is not None:
        return
    parts, positions = amount(config, **PARTS), {}

    def is_wanted(item):
        given = getattr(item, "callspec", None)
        if given is None or given.params.get("backend") != ENGINE or has_cells(item):
            return True
        function = item.nodeid.partition("[")[0]
        # Functions begin at different places, or all would have their first test on the same day.
        position = positions[function] = positions.get(function, sum(map(ord, function))) + 1
        return has_turn(config, position, parts)

    deselect(config, items, is_wanted)
