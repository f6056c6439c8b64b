"""The examples print what docs/examples.md says that they print, on each device."""

import importlib
import re
import shlex

import numpy as np
import pytest
import real_models

from spec_tests.support.backends import BACKENDS

ROOT = real_models.Path(real_models.__file__).parents[1]
PAGE = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
PRINTED = {
    name: (arguments, printed)
    for name, arguments, printed in re.findall(
        r"```sh\npython examples/(\w+)\.py([^\n]*)\n```\n\n```text\n(.*?)```", PAGE, re.DOTALL
    )
}
SLOW_TO_COMPILE = {"read_text", "transcribe"}
"""Software Vulkan takes half a minute and more for the kernels of two or three models."""
HANGS_ON_ROUNDING = {"transcribe": re.compile(r",|\d+(?= tokens| copies)")}
"""Its weights have 8 bits: whether there is a comma after "no matter", a token of its own, depends on the processor."""


def test_the_page_has_every_example_on_real_models():
    users = [path for path in (ROOT / "examples").glob("*.py") if "import real_models" in path.read_text("utf-8")]
    assert {path.stem for path in users} == PRINTED.keys()


@pytest.mark.sampled(29, full=2)
@pytest.mark.parametrize(
    ("name", "backend"),
    [(name, backend) for name in PRINTED for backend in BACKENDS if backend == "numpy" or name not in SLOW_TO_COMPILE],
)
def test_what_it_prints(name, backend, files_of, capsys, monkeypatch):
    files_of(name)
    monkeypatch.chdir(ROOT)
    arguments, printed = PRINTED[name]
    with np.errstate(under="ignore"):  # an embedding has an element of 1e-33, whose square is less than float32 has
        importlib.import_module(name).main([*shlex.split(arguments), f"--backend={backend}"])
    told = capsys.readouterr().out
    if name in HANGS_ON_ROUNDING:
        told, printed = (HANGS_ON_ROUNDING[name].sub("", text) for text in (told, printed))
    assert told == printed
