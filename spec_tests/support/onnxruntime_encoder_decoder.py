"""onnxruntime's own sessions as an encoder-decoder, with a cache that grows on the host, for comparisons."""

import numpy as np
import onnxruntime


class OnnxruntimeEncoderDecoder:
    """The models of a folder of optimum's layout, token by token."""

    def __init__(self, folder):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        merged = folder / "decoder_model_merged.onnx"
        files = [folder / "encoder_model.onnx"]
        files += (
            [merged] if merged.exists() else [folder / "decoder_model.onnx", folder / "decoder_with_past_model.onnx"]
        )
        sessions = [onnxruntime.InferenceSession(str(path), options) for path in files]
        self._encoder, self._first, self._later = sessions[0], sessions[1], sessions[-1]

    def decode(self, heard, prompt, count, *, suppressed=(), suppressed_first=(), end=None):
        """Return the likeliest tokens after a prompt, and the logits of each."""
        (hidden,) = self._encoder.run(None, heard)
        pasts, tokens, logits, new = {}, [], [], list(prompt)
        for _ in range(count):
            session = self._later if pasts else self._first
            feeds = {
                "input_ids": np.array([new]),
                "encoder_hidden_states": hidden,
                "use_cache_branch": np.array([bool(pasts)]),
                **pasts,
            }
            inputs = {item.name: item for item in session.get_inputs()}
            empty = {
                name: np.zeros([1, *item.shape[1:2], 0, *item.shape[3:]], np.float32)
                for name, item in inputs.items()
                if "past" in name
            }
            names = [item.name for item in session.get_outputs()]
            given = {name: value for name, value in {**empty, **feeds}.items() if name in inputs}
            results = dict(zip(names, session.run(None, given), strict=True))
            row = results.pop("logits")[0, -1]
            row[[*suppressed]] = np.finfo(np.float32).min
            logits.append(row.copy())
            if not tokens:
                row[[*suppressed_first]] = np.finfo(np.float32).min
            kept = {} if not pasts else {name: value for name, value in pasts.items() if ".encoder." in name}
            pasts = {name.replace("present", "past_key_values"): value for name, value in results.items()} | kept
            new = [int(row.argmax())]
            tokens += new
            if new == [end]:
                break
        return tokens, np.array(logits)
