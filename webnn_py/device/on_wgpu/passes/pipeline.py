"""The passes that rewrite a graph before it is lowered to kernels, in their order."""

from __future__ import annotations

from typing import Final

from webnn_py.device.on_wgpu.passes.composite_expansion import expand_composites
from webnn_py.device.on_wgpu.passes.horizontal_fusion import fuse_horizontally
from webnn_py.device.on_wgpu.records.variants import KernelVariant
from webnn_py.rewriting.passes import GraphPass, PassManager

PASSES: Final = PassManager(
    GraphPass(name="composites", run=lambda graph, _context: expand_composites(graph), is_required=True),
    GraphPass(
        name=KernelVariant.HORIZONTAL_FUSION,
        run=lambda graph, _context: fuse_horizontally(graph),
        after=("composites",),
    ),
)
"""Attention, element-wise and epilogue fusion are no passes: they say what a kernel computes, and change no graph."""
