# SPDX-License-Identifier: Apache-2.0
"""transformers' Qwen3.5 as the oracle: loading, prefill, decode and states in liverow's layouts.

Everything runs in eager mode: attention, experts and the gated delta rule as plain torch operations, TF32
off. A machine where a faster kernel could step in (fla, causal_conv1d) is refused.
"""

import importlib.util
import json
from pathlib import Path

import torch
import transformers

from weights import model_state


def exact_float32():
    """No TF32 anywhere; no kernel package that transformers would prefer."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    transformers.logging.set_verbosity_error()
    for package in ("fla", "causal_conv1d"):
        if importlib.util.find_spec(package) is not None:
            raise RuntimeError(f"{package} is installed: transformers would use its kernels instead of torch")


def load_model(folder, tensors, dtype, device):
    """The text model of a checkpoint folder. In bfloat16 every parameter is rounded, as transformers does."""
    config = json.loads((Path(folder) / "config.json").read_text())
    text = config.get("text_config", config)
    moe = text["model_type"].startswith("qwen3_5_moe")
    family = transformers.models.qwen3_5_moe if moe else transformers.models.qwen3_5
    name = "Qwen3_5Moe" if moe else "Qwen3_5"
    text_config = getattr(family, f"{name}TextConfig")(**text)
    state = model_state(tensors)
    text_config.tie_word_embeddings = "lm_head.weight" not in state
    state.setdefault("lm_head.weight", state["model.embed_tokens.weight"])
    options = {"attn_implementation": "eager", "dtype": torch.float32}
    if moe:
        options["experts_implementation"] = "eager"
    model = getattr(family, f"{name}ForCausalLM")._from_config(text_config, **options)
    model.load_state_dict(state, strict=True)
    return model.to(device=device, dtype=dtype).eval()


def layer_states(cache, config):
    """[{name: float32 tensor}] per layer, in the layouts of the engine.

    conv       [C, 3]        the last three inputs, oldest first (transformers keeps four)
    recurrent  [Hv, dv, dk]  (transformers: [Hv, dk, dv])
    key, value [T, Hkv, d]   (transformers: [Hkv, T, d])
    """
    states = []
    for kind, layer in zip(config.layer_types, cache.layers):
        if kind == "linear_attention":
            conv, recurrent = layer.conv_states[0], layer.recurrent_states[0]
            states.append({"conv": conv[0, :, -3:], "recurrent": recurrent[0].transpose(1, 2)})
        else:
            states.append({"key": layer.keys[0].transpose(0, 1), "value": layer.values[0].transpose(0, 1)})
    return [{name: value.float().cpu().clone() for name, value in state.items()} for state in states]


class Probe:
    """Collects what layers put out and the router logits, while it is entered."""

    def __init__(self, model):
        self.model, self.hidden, self.router = model, [], []

    def __enter__(self):
        def layer_hook(_module, _inputs, output):
            value = output[0] if isinstance(output, tuple) else output
            self.hidden.append(value[0].float().cpu())

        def router_hook(_module, _inputs, output):
            self.router.append(output[0].reshape(-1, output[0].shape[-1]).float().cpu())

        self.handles = []
        for layer in self.model.model.layers:
            self.handles.append(layer.register_forward_hook(layer_hook))
            if hasattr(layer.mlp, "gate"):
                self.handles.append(layer.mlp.gate.register_forward_hook(router_hook))
        return self

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()


@torch.no_grad()
def forward(model, ids, cache=None):
    """Logits [T, V] (float32) after `cache`, and the cache."""
    tokens = torch.tensor([list(ids)], dtype=torch.long, device=model.device)
    out = model(input_ids=tokens, past_key_values=cache, use_cache=True)
    return out.logits[0].float().cpu(), out.past_key_values


def router_margin(probe, per_token):
    """The smallest gap between the K-th and the next router logit; infinite for dense models."""
    smallest = float("inf")
    for logits in probe.router:
        top = logits.topk(per_token + 1, dim=-1).values
        smallest = min(smallest, float((top[:, -2] - top[:, -1]).min()))
    return smallest
