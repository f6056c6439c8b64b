"""The functions that stand for WebNN operators in a saved model, and the digests by which they are recognized."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

from onnx import FunctionProto, StringStringEntryProto

DOMAIN: Final = "org.w3.webnn"
"""The domain of the functions."""

OPTIONS: Final = "options"
"""The attribute of a call that has the operator's options, as JSON."""

DIGEST: Final = "digest"
"""The metadata of a function that tell whether it is as it was written."""


def digest_of(function: FunctionProto) -> str:
    """Return a digest of what a function computes, and of its name."""
    body = [function.name, *function.input, "", *function.output, ""]
    digest = blake2b("\n".join(body).encode(), digest_size=16)
    for node in function.node:
        digest.update(node.SerializeToString(deterministic=True))
    return digest.hexdigest()


def seal(function: FunctionProto) -> None:
    """Write the digest into a function."""
    function.metadata_props.append(StringStringEntryProto(key=DIGEST, value=digest_of(function)))


def options_text(options: Mapping[str, object]) -> str:
    """Return the options of a call, as they are written; absent ones are left out."""
    return json.dumps({name: value for name, value in options.items() if value is not None})
