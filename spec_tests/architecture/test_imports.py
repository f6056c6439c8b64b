"""``import webnn_py`` imports what a first program needs; features import the rest when they are used."""

import json
import subprocess
import sys
from functools import cache

import pytest

import webnn_py

MOST_MODULES = 88
"""Of this package, after ``import webnn_py``."""

HEAVY = (
    "decimal",
    "email",
    "fractions",
    "html",
    "importlib.metadata",
    "tomllib",
    "zipfile",
    "webnn_py.extensions.browser_limits",
    "webnn_py.core.device.compiling.expansion",
    "webnn_py.checking.non_finite",
    "webnn_py.profiling.measuring",
    "webnn_py.pictures",
    "webnn_py.devices.composites",
    "webnn_py.core.decompositions.activation",
    "webnn_py.devices.rewriting",
    "webnn_py.saved_graphs",
    "webnn_py.profiling.report",
    "webnn_py.tracing.chrome",
    "webnn_py.tracing.page",
    "webnn_py.web_export",
)
LATER = ("DeviceRates", "GraphPicture", "GraphProfile", "NonFinite", "ValueRange", "save_js")
FIRST_GRAPH = """
import sys, json
import numpy as np, trio, webnn_py

async def main():
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        builder = webnn_py.MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=[2])
        graph = await builder.build({"y": builder.relu(x)})
        given = await context.create_buffer(data_type="float32", shape=[2], writable=True)
        result = await context.create_buffer(data_type="float32", shape=[2], readable=True)
        context.write_buffer(given, np.float32([-1, 2]))
        context.dispatch(graph, {"x": given}, {"y": result})
        assert (await context.read_buffer(result)).tolist() == [0, 2]
        for thing in graph, given, result:
            thing.destroy()

trio.run(main)
"""


@cache
def modules(program):
    """Return the modules that a fresh interpreter has when a program has ended."""
    code = f"{program}\nimport sys, json\nprint(json.dumps(list(sys.modules)))"
    before = "import sys\nthere = set(sys.modules)\n"  # .pth files of an environment import some
    code = before + code.replace("list(sys.modules)", "sorted(set(sys.modules) - there)")
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def test_few_modules_of_the_package_are_imported():
    own = [name for name in modules("import webnn_py") if name.partition(".")[0] == "webnn_py"]
    assert 40 < len(own) <= MOST_MODULES, own


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_modules_are_not_imported(name):
    with_numpy = modules("import numpy, trio")
    assert name not in set(modules("import webnn_py")) - set(with_numpy)


@pytest.mark.parametrize(
    "name",
    [
        *("html", "tomllib", "webnn_py.extensions.browser_limits", "webnn_py.web_export"),
        *("webnn_py.pictures.svg", "webnn_py.profiling.report"),
        *("webnn_py.tracing.page", "webnn_py.saved_graphs"),
    ],
)
def test_a_first_graph_on_numpy_imports_no_feature_that_it_does_not_use(name):
    assert name not in modules(FIRST_GRAPH)


@pytest.mark.parametrize("name", LATER)
def test_a_name_that_is_imported_when_it_is_used_is_found_and_kept(name):
    assert getattr(webnn_py, name) is vars(webnn_py)[name]
    assert name in dir(webnn_py)


def test_a_name_that_there_is_not_is_refused_as_by_any_module():
    with pytest.raises(AttributeError, match=r"^module 'webnn_py' has no attribute 'MLTensr'$"):
        _ = webnn_py.MLTensr
