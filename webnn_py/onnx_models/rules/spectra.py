"""Fourier transforms: products with matrices of sines and cosines, which are known while building."""

import math

import numpy as np

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue
from webnn_py.onnx_models.rule_helpers.axes import counted
from webnn_py.onnx_models.rule_table.declaration import Integer, rule


@rule("DFT", 17, 20)
def transform(
    context: ConversionContext,
    input: MLOperand,
    dft_length: Integer | None = None,
    axis: Integer = -2,
    *,
    inverse: bool,
    onesided: bool,
) -> MLOperand:
    """Compute the discrete Fourier transform along an axis; the last axis has real parts, and maybe imaginary ones."""
    along = counted(axis, input.rank)
    if along == input.rank - 1 or input.shape[-1] not in (1, 2):
        refuse("the shape of the input and the axis", f"{list(input.shape)}, {along}", "[..., 1 or 2], another axis")
    size = input.shape[along]
    length = 2 * (size - 1) if inverse and onesided else size
    if dft_length is not None:
        length = dft_length
    if length < 1:
        refuse("input dft_length", length, "at least 1")
    order = [*(other for other in range(input.rank - 1) if other != along), along, input.rank - 1]
    last = context.transpose(input, permutation=order)
    y = _transformed(context, last, length, inverse=inverse, onesided=onesided)
    return context.transpose(y, permutation=[order.index(other) for other in range(input.rank)])


@rule("STFT", 17)
def transform_of_frames(
    context: ConversionContext,
    signal: MLOperand,
    frame_step: Integer,
    window: MLOperand | None = None,
    frame_length: Integer | None = None,
    *,
    onesided: bool,
) -> MLOperand:
    """Return the transforms of frames of a signal [batch, length, 1 or 2], each times a window."""
    if signal.rank == 2:
        signal = context.reshape(signal, [*signal.shape, 1])
    if signal.rank != 3 or signal.shape[-1] not in (1, 2):
        refuse("the shape of the signal", signal.shape, "[batch, length, 1 or 2]")
    length = signal.shape[1] if window is None else math.prod(window.shape)
    if frame_length is not None:
        length = frame_length
    if frame_step < 1 or not 1 <= length <= signal.shape[1]:
        refuse("frame_step and frame_length", (frame_step, length), f"at least 1, and at most {signal.shape[1]}")
    if window is not None and window.shape != (length,):
        refuse("the shape of the window", window.shape, f"[{length}], the frame_length")
    starts = np.arange(0, signal.shape[1] - length + 1, frame_step, dtype=np.int32)
    context.reserve(4 * len(starts) * length)
    frames = context.gather(signal, context.constant(starts[:, np.newaxis] + np.arange(length, dtype=np.int32)), axis=1)
    if window is not None:
        frames = context.mul(frames, context.reshape(window, [length, 1]))
    return _transformed(context, frames, length, inverse=False, onesided=onesided)


def _transformed(context: ConversionContext, x: MLOperand, length: int, *, inverse: bool, onesided: bool) -> MLOperand:
    """Transform along the axis before the last, cut off or padded with zeros to a length."""
    *batch, size, parts = x.shape
    real = inverse and onesided
    bins = length if real or not onesided else length // 2 + 1
    context.reserve(64 * bins * min(size, length) + 16 * size * parts * bins)
    matrix = _real_matrix(size, length) if real else _matrix(size, length, bins, inverse=inverse)
    matrix = matrix.reshape(size, 2, -1)[:, :parts].reshape(size * parts, -1).astype(x.data_type)
    y = context.matmul(context.reshape(x, [math.prod(batch), size * parts]), context.constant(matrix))
    return context.reshape(y, [*batch, bins, 1 if real else 2])


def _matrix(size: int, length: int, bins: int, *, inverse: bool) -> StaticValue:
    """Return the weights [size, real and imaginary, bins, real and imaginary]."""
    used = min(size, length)
    angles = _angles(used, length, bins)
    cosines, sines = np.cos(angles), np.sin(angles) if inverse else -np.sin(angles)
    matrix = np.zeros([size, 2, bins, 2])
    matrix[:used, 0, :, 0] = matrix[:used, 1, :, 1] = cosines
    matrix[:used, 0, :, 1] = sines
    matrix[:used, 1, :, 0] = -sines
    return matrix / length if inverse else matrix


def _real_matrix(size: int, length: int) -> StaticValue:
    """Return the weights of the inverse of a one-sided transform: [size, real and imaginary, length]."""
    used = min(size, length // 2 + 1)
    angles = _angles(used, length, length)
    shares = np.array([1 if 2 * index in (0, length) else 2 for index in range(used)])[:, np.newaxis] / length
    matrix = np.zeros([size, 2, length])
    matrix[:used, 0] = shares * np.cos(angles)
    matrix[:used, 1] = -shares * np.sin(angles)
    return matrix


def _angles(size: int, length: int, bins: int) -> StaticValue:
    """Return angles that are reduced to one turn exactly."""
    turns: StaticValue = np.outer(np.arange(size), np.arange(bins)) % length / length
    return 2 * np.pi * turns
