"""Texts of kernels that are kept for products like them are what would be written for each anew."""

import pytest

from spec_tests.operators.cases import load_all
from spec_tests.operators.exceptions import EXCEPTIONS
from spec_tests.operators.running import Computed
from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from webnn_py.device.on_wgpu.codegen.gemm import selection, tiled

pytestmark = pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)
FILES = {file.operator: file for file in load_all()}


class Rewritten(dict):
    """Texts that are never found, and so are written each time; the same key must give the same text."""

    repeats = 0

    def get(self, _key):
        return None

    def __setitem__(self, key, text):
        self.repeats += key in self
        assert self.setdefault(key, text) == text


@pytest.fixture(autouse=True)
def _all_in_tiles(monkeypatch):
    monkeypatch.setattr(selection, "MOST_VECTORS", 0)


@pytest.mark.parametrize("operator", ["matmul", "gemm", "conv2d", "conv_transpose2d"])
def test_products_with_the_same_key_have_the_same_text(monkeypatch, operator):
    texts = Rewritten()
    monkeypatch.setattr(tiled, "_MAINS", texts)
    monkeypatch.setattr(tiled, "MOST_MAINS", 10**9)
    file = FILES[operator]
    computed = Computed.of("wgpu", file)
    checked = [case for case in file.cases if ("wgpu", operator, case.name) not in EXCEPTIONS]
    wrong = {case.name: computed.what_is_wrong(case) for case in checked}
    assert not any(wrong.values()), {name: words for name, words in wrong.items() if words}
    assert texts.repeats
    assert len(texts) > 1


def test_only_so_many_texts_are_kept(monkeypatch):
    texts = {}
    monkeypatch.setattr(tiled, "_MAINS", texts)
    monkeypatch.setattr(tiled, "MOST_MAINS", 3)
    Computed.of("wgpu", FILES["gemm"])
    assert 1 <= len(texts) <= 3
