"""Generating text: decoders of onnxruntime-genai's and optimum's layouts, with their cache on the device.

From the top::

    generator        Generator: a decoder, its tokenizer and its settings; create_generator() and generate()
    conversation     Conversation: sequences that grow; Generation: the tokens of one call
    checks           whether a cache of fixed capacity gives the logits that a model means
    audio            sounds as encoders read them
    steps            a step of a batch, and the cache that it reads and writes
    encoder_decoder  the decoder of an encoder-decoder as two models for sessions
    decoder          the decoder as a session's model, which makes its inputs and keeps its cache
    growing_caches   caches that a model lets grow, drawn as caches of fixed capacity
    tokens           text and tokens
    sampling         choosing the next token
    configuration    the configuration of a decoder, read from its folder

It stands on sessions. Needs the extra ``generation``.
"""

from webnn_py.extras import install_command

try:
    import onnx as _onnx
except ImportError as error:
    raise ImportError(f"webnn_py.runtime.generation needs more: {install_command('onnx')} ({error})") from error
del _onnx, install_command

from webnn_py.runtime.generation.configuration import (  # noqa: E402
    DecoderConfiguration,
    DecoderNames,
    EncoderConfiguration,
    SearchDefaults,
)
from webnn_py.runtime.generation.conversation import Conversation, Generation  # noqa: E402
from webnn_py.runtime.generation.generator import Generator, create_generator, generate  # noqa: E402
from webnn_py.runtime.generation.tokens import Token  # noqa: E402

__all__ = [
    "Conversation",
    "DecoderConfiguration",
    "DecoderNames",
    "EncoderConfiguration",
    "Generation",
    "Generator",
    "SearchDefaults",
    "Token",
    "create_generator",
    "generate",
]

for _name in __all__:
    globals()[_name].__module__ = __name__  # messages and reprs show the public name
del _name
