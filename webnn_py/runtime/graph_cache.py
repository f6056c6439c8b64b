"""Graphs of ONNX models in an environment's graph cache: found by a digest of all that they are made of."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Collection, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from webnn_py.core.api.context import MLContext
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.errors import OperationError, UnknownError
from webnn_py.errors import NotFoundError, QuotaExceededError
from webnn_py.runtime.contexts import OpenContext, received
from webnn_py.saved_graphs import SavedGraphs

if TYPE_CHECKING:
    from webnn_py.onnx_models import OnnxModel


def saved_graphs_of(opened: OpenContext) -> SavedGraphs | None:
    """Return where sessions load and save graphs: nowhere where an extension must see each build."""
    return None if any(each.sees_all for each in opened.context.extensions) else opened.owner.saved_graphs


def graph_key(
    model: OnnxModel,
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, np.ndarray[Any, Any]],
    outputs: tuple[str, ...],
    experimental: Collection[str],
) -> str:
    """Return the key of a model's graph; takes about a second for a gigabyte of weights, the first time.

    Args:
        model: the model.
        shapes: the shape of each input that is no constant.
        values: the inputs that are constants.
        outputs: the outputs that the graph has, in order.
        experimental: the proposals that were asked for, since data types of theirs may change a conversion.

    Returns:
        Text; devices and versions of this package are kept apart by the folder.
    """
    known = [(name, value.dtype.str, value.shape, _contents(value)) for name, value in sorted(values.items())]
    parts = (model.digest().hex(), sorted(shapes.items()), known, outputs, sorted(experimental))
    return f"onnx {blake2b(repr(parts).encode(), digest_size=32).hexdigest()}"


def _contents(value: np.ndarray[Any, Any]) -> str:
    encoded = repr(value.tolist()).encode() if value.dtype.hasobject else value.tobytes()
    return blake2b(encoded, digest_size=32).hexdigest()


async def loaded_or_built(
    saved: SavedGraphs, context: MLContext, key: str, build: Callable[[], Awaitable[MLGraph]]
) -> MLGraph:
    """Load the graph saved under a key; if there is none, build and save it.

    A file that cannot be read or written costs the time that it would have saved, and a ``RuntimeWarning`` says so.
    """
    try:
        return await received(saved.load(context, key))
    except NotFoundError:
        pass
    except (OperationError, UnknownError) as error:
        _warn("a graph is built again, since the one in the graph cache cannot be used", error)
    graph = await build()
    try:
        await _save(saved, key, graph)
    except BaseException:  # a warning may be made an error, too
        graph.destroy()
        raise
    return graph


async def _save(saved: SavedGraphs, key: str, graph: MLGraph) -> None:
    try:
        await saved.save(key, graph)
    except (QuotaExceededError, UnknownError) as error:
        _warn("a graph is not kept in the graph cache", error)


def _warn(what: str, error: Exception) -> None:
    warnings.warn(f"{what}: {error}", RuntimeWarning, stacklevel=2)
