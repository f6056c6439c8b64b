"""The passes that rewrite a graph before it is lowered to kernels, in their order.

``lowering.KERNEL_PASSES`` decide afterwards which nodes one kernel computes.
"""

from __future__ import annotations

from typing import Final

from webnn_py.core.operators import reduction
from webnn_py.devices.rewriting.passes import GraphPass, PassManager
from webnn_py.devices.rewriting.root_mean_square import RMS_NORMALIZATION
from webnn_py.devices.rewriting.rule import RulePass
from webnn_py.devices.wgpu.passes.composite_expansion import COMPOSITES, expand_composites
from webnn_py.devices.wgpu.passes.equal_nodes import EQUAL_NODES, merge_equal_nodes
from webnn_py.devices.wgpu.passes.horizontal_fusion import HORIZONTAL_FUSION, fuse_horizontally

PASSES: Final = PassManager(
    GraphPass(name=COMPOSITES, run=expand_composites, is_required=True),
    RulePass(
        name=RMS_NORMALIZATION.name,
        rules=(RMS_NORMALIZATION,),
        after=(COMPOSITES,),
        needs=frozenset({reduction.reduce_mean}),
    ),
    GraphPass(name=EQUAL_NODES, run=merge_equal_nodes, after=(COMPOSITES,)),
    GraphPass(name=HORIZONTAL_FUSION, run=fuse_horizontally, after=(COMPOSITES,)),
)
