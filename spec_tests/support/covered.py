"""Which tests are measured where coverage is: ``--cover-in=PATH``, more than once for more folders and files.

Tracing takes Python as long again as the tests do. Where folders are named, tests of others are not traced, nor are
those on another device than numpy: what does not depend on devices is tested on each.
"""

import importlib
import pkgutil

import pytest

OPTION = "--cover-in"


def pytest_addoption(parser):
    parser.addoption(
        OPTION,
        action="append",
        default=[],
        metavar="PATH",
        help="measure coverage in the tests of this folder or file alone",
    )


class CoveredFolders:
    """Stops and starts the measuring of pytest-cov between tests."""

    def __init__(self, measuring, folders):
        self._measuring = measuring
        self._folders = folders

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        is_covered = self._covers(item)
        if is_covered and not self._measuring.started:
            self._measuring.resume()
        if self._measuring.started and not is_covered:
            self._measuring.pause()
        return (yield)

    def _covers(self, item):
        given = getattr(item, "callspec", None)
        backend = "numpy" if given is None else given.params.get("backend", "numpy")
        return backend == "numpy" and any(item.path.is_relative_to(folder) for folder in self._folders)


def _import_measured(folders):
    """Import all modules that are measured, since one that is imported late may be so in a test that is not."""
    for folder in folders:
        package = str(folder).replace("/", ".")
        for module in pkgutil.walk_packages([str(folder)], f"{package}."):
            importlib.import_module(module.name)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    config = session.config
    folders = [config.rootpath / folder for folder in config.getoption(OPTION)]
    missing = [str(folder) for folder in folders if not folder.exists()]
    if missing:
        raise pytest.UsageError(f"{OPTION}: there is no {', '.join(missing)}")
    cov = config.pluginmanager.getplugin("_cov")
    if folders and cov is not None and cov.cov_controller is not None:
        _import_measured(config.getoption("cov_source"))
        cov.cov_controller.pause()
        config.pluginmanager.register(CoveredFolders(cov.cov_controller, folders))
