"""Optional kernels, and fusion that is decided as kernels are written: each can be left out.

:func:`~webnn_py.devices.rewriting.passes.passes_left_out` leaves them out by name, as it does passes. The general
kernels then compute the same values, as ``spec_tests/on_wgpu/test_variants.py`` checks for random subsets, and
``python -m spec_tests.labs.benchmarks.gpu_variants`` measures what each gains.
"""

from __future__ import annotations

from enum import StrEnum

from webnn_py.devices.rewriting.passes import is_left_out


class KernelVariant(StrEnum):
    """The name of an optional kernel or fusion."""

    # Matrix products
    GEMV = "gemv"  # one side has few vectors
    GEMV_FOUR_BITS = "gemv-four-bits"  # the matrix has four bits an element, in blocks along its rows
    GEMV_LARGE_WORKGROUPS = "gemv-large-workgroups"  # up to 1,024 invocations, and loads that are unrolled
    GEMM_PIXELS = "gemm-pixels"  # pointwise convolutions of several images are one product
    GEMM_SHARED_LOADS = "gemm-shared-loads"  # some invocations fetch one side, the others the other
    GEMM_SLICES = "gemm-slices"  # invocations of a workgroup share the inner axis of a tile
    GEMM_SPLIT_K = "gemm-split-k"  # workgroups share the inner axis
    GEMM_LARGE_TILES = "gemm-large-tiles"  # measured tiles for large products
    GEMM_MIDDLE_TILE = "gemm-middle-tile"  # for products of a hundred rows or some more
    GEMM_IMAGE_TILES = "gemm-image-tiles"  # measured tiles for convolutions

    # Convolution and pooling
    WINOGRAD = "winograd"
    DIRECT_CONVOLUTION = "direct-convolution"  # groups of few channels need no matrix product
    DIRECT_STRIPS = "direct-strips"  # four neighbours of a row at once
    DIRECT_CHANNELS = "direct-channels"  # four channels at once
    LONG_WINDOWS = "long-windows"  # windows that mostly meet padding
    GLOBAL_POOLING = "global-pooling"  # a window that is the whole image is a reduction

    # Reduction, attention, recurrence, data movement
    REGISTER_ROWS = "register-rows"  # softmax and normalizations keep rows in registers
    CACHED_ATTENTION = "cached-attention"  # only the keys that are in a cache are read
    ATTENTION_LANES = "attention-lanes"  # lanes that share rows exchange scores by shuffles
    RECURRENCE_ONE_LAUNCH = "recurrence-one-launch"  # all steps of a network in one workgroup
    RECURRENCE_STEPS = "recurrence-steps"  # networks are not unrolled
    BLOCK_TRANSPOSE = "block-transpose"  # copies exchange axes of 4 × 4 blocks in registers
    TRANSPOSED_STORE = "transposed-store"  # a kernel stores its result as the transposition behind it wants it

    # Fusion that is decided while kernels are written
    EPILOGUE_FUSION = "epilogue-fusion"  # a kernel computes the element-wise nodes behind it
    OPERAND_FUSION = "operand-fusion"  # a reduction computes the element-wise nodes in front of it
    PARTIAL_SUMS = "partial-sums"  # the kernel that reads a product adds up its parts

    @property
    def is_on(self) -> bool:
        """Return whether graphs that are built now may use it."""
        return not is_left_out(self)
