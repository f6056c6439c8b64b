"""Of the tests that run on every device, a run has a share on onnxruntime."""

from spec_tests.support.depth import amount, deselect, has_cells, share_of_items
from webnn_py.devices.onnxruntime import device_record

ENGINE = "onnxruntime"
CPU = "CPUExecutionProvider"
PARTS = {"quick": 13, "full": 5, "thorough": 1}
"""One test of so many; primes, so that tests that are sampled besides are not always the same ones."""

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
    """Leave out the tests on the engine that are not in this run's share, unless a provider is tested."""
    if config.getoption(OPTION) is not None:
        return
    parts = amount(config, **PARTS)

    def parts_of(item):
        given = getattr(item, "callspec", None)
        return None if given is None or given.params.get("backend") != ENGINE or has_cells(item) else parts

    deselect(config, items, share_of_items(config, items, parts_of))
