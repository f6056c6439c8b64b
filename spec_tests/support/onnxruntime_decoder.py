"""onnxruntime's own session as a decoder, with a cache that grows on the host, for comparisons with generation."""

import numpy as np
import onnxruntime

TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}


class OnnxruntimeDecoder:
    """The model of a folder of ``spec_tests.models.decoder_models``, token by token."""

    def __init__(self, folder, size, *, fixed=0, **providers):
        """Open the session; ``fixed`` is the length of caches that do not grow."""
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"), **providers)
        self._size, self._fixed = size, fixed
        self._names = [item.name for item in self._session.get_outputs()]
        self._inputs = {item.name: item.type for item in self._session.get_inputs()}
        self.begin()

    def begin(self):
        """Forget all tokens."""
        shape = (1, self._size.kv_heads, self._fixed, self._size.head)
        pasts = {name: kind for name, kind in self._inputs.items() if name.startswith("past")}
        self._past = {name: np.zeros(shape, TYPES[kind]) for name, kind in pasts.items()}
        self._count = 0

    def logits(self, tokens):
        """Return the logits behind new tokens."""
        end = self._count + len(tokens)
        feeds = {
            "input_ids": np.array([tokens]),
            "attention_mask": np.arange(self._fixed or end)[None] < end,
            "position_ids": np.arange(self._count, end)[None],
            **self._past,
        }
        known = {name: value.astype(TYPES[self._inputs[name]]) for name, value in feeds.items() if name in self._inputs}
        results = dict(zip(self._names, self._session.run(None, known), strict=True))
        self._past = {name.replace("present", "past_key_values"): value for name, value in results.items()}
        self._past.pop("logits")
        self._count = end
        return results["logits"][0, -1]

    def decode(self, prompt, count):
        """Return the likeliest tokens after a prompt, and the logits of each."""
        self.begin()
        tokens, logits, new = [], [], list(prompt)
        for _ in range(count):
            logits.append(self.logits(new))
            new = [int(logits[-1].argmax())]
            tokens += new
        return tokens, np.array(logits)
