"""Computes what transformers turns positions by for the configs here, into rotations.json beside this file.

    pip install numpy && pip install --no-deps 'transformers==5.24.0' && python rotations.py

Its own functions run, in single precision, with numpy in the place of the few functions of torch that they call.
"""

import importlib.util
import json
import pathlib
import sys
import types

import numpy

LLAMA = {"model_type": "llama", "vocab_size": 64, "hidden_size": 128, "intermediate_size": 64, "num_hidden_layers": 1,
         "num_attention_heads": 2, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5}
QWEN25 = LLAMA | {"model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4,
                  "max_position_embeddings": 32768, "rope_theta": 1000000.0}
QWEN3 = LLAMA | {"model_type": "qwen3", "hidden_size": 2560, "num_attention_heads": 32, "num_key_value_heads": 8,
                 "head_dim": 128, "max_position_embeddings": 40960}
LLAMA31 = LLAMA | {"hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 131072, "rope_theta": 500000.0}
PHI = LLAMA | {"model_type": "phi3", "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LONG = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}

CONFIGS = {
    "Qwen 2.5 as its page says": QWEN25 | {"rope_scaling": LONG},
    "Qwen 3 as transformers 5 writes it": QWEN3 | {"rope_parameters": {
        "rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "original_max_position_embeddings": 32768}},
    "yarn of the whole context": LLAMA | {"rope_scaling": {"rope_type": "yarn", "factor": 2.5}},
    "yarn with an original context beside it": LLAMA | {
        "original_max_position_embeddings": 1024,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}},
    "yarn with a narrower ramp": LLAMA | {"rope_scaling": LONG | {"beta_fast": 16, "beta_slow": 2.5}},
    "yarn with a factor of attention": LLAMA | {"rope_scaling": LONG | {"attention_factor": 1.5}},
    "yarn with two scales": LLAMA | {"rope_scaling": LONG | {"factor": 40.0, "mscale": 0.707, "mscale_all_dim": 1.0}},
    "yarn with one scale": LLAMA | {"rope_scaling": LONG | {"factor": 40.0, "mscale": 0.707}},
    "yarn with no rounding": LLAMA | {"rope_scaling": LONG | {"truncate": False}},
    "yarn by the contexts": LLAMA | {"max_position_embeddings": 163840, "rope_scaling": {
        "rope_type": "yarn", "factor": None, "original_max_position_embeddings": 4096}},
    "yarn that is a step": LLAMA | {"rope_scaling": LONG | {"original_max_position_embeddings": 6}},
    "yarn that divides nothing": LLAMA | {"rope_scaling": LONG | {"factor": 1.0}},
    "yarn of a part of each head": PHI | {"partial_rotary_factor": 0.5, "original_max_position_embeddings": 1024,
                                          "rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
    "Llama 3.1": LLAMA31 | {"rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}},
    "Llama 3.2": LLAMA31 | {"hidden_size": 2048, "rope_scaling": {
        "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}},
    "llama3 of the whole context": LLAMA | {"rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 2.0, "high_freq_factor": 3.0}},
    "linear": LLAMA | {"rope_scaling": {"type": "linear", "factor": 4.0}},
    "dynamic up to its context": LLAMA | {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
}


def torch():
    """The functions of torch that are called, by numpy."""
    class Array(numpy.ndarray):
        def to(self, device=None, dtype=None):
            return self.astype(dtype)

    def arange(*limits, dtype=numpy.int64):
        return numpy.arange(*limits, dtype=dtype).view(Array)

    module = types.ModuleType("torch")
    module.int64, module.float, module.float32 = numpy.int64, numpy.float32, numpy.float32
    module.Tensor, module.arange, module.clamp, module.where = Array, arange, numpy.clip, numpy.where
    return module


def functions():
    """transformers' module of ropes, without the rest of it."""
    folder = pathlib.Path(importlib.util.find_spec("transformers").submodule_search_locations[0])
    package, utils = types.ModuleType("transformers"), types.ModuleType("transformers.utils")
    package.__path__ = [str(folder)]
    utils.is_torch_available = lambda: True
    utils.logging = types.SimpleNamespace(get_logger=lambda name: types.SimpleNamespace(warning=print))
    sys.modules |= {"transformers": package, "transformers.utils": utils, "torch": torch()}
    spec = importlib.util.spec_from_file_location("transformers.modeling_rope_utils", folder / "modeling_rope_utils.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    ropes = functions()

    class Config(ropes.RotaryEmbeddingConfigMixin):
        def __init__(self, keys):
            keys = dict(keys)
            self.rope_parameters = dict(keys.pop("rope_parameters", {}))
            scaling = dict(keys.pop("rope_scaling", {}))
            for key, value in keys.items():
                setattr(self, key, value)
            self.head_dim = keys.get("head_dim", self.hidden_size // self.num_attention_heads)
            self.convert_rope_params_to_dict(rope_scaling=scaling)

    cases = []
    for name, keys in CONFIGS.items():
        config = Config(keys)
        kind = config.rope_parameters["rope_type"]
        frequencies, attention = ropes.ROPE_INIT_FUNCTIONS[kind](config, None)
        assert frequencies.dtype == numpy.float32, name
        numbers = [float(number) for number in frequencies]
        cases.append({"name": name, "config": keys, "attention_factor": float(attention), "frequencies": numbers})
    text = json.dumps(cases).replace("{\"name\"", "\n{\"name\"").replace("}]", "}\n]")
    pathlib.Path(__file__).with_suffix(".json").write_text(text + "\n")


if __name__ == "__main__":
    main()
