# SPDX-License-Identifier: Apache-2.0
"""Writes a checkpoint in the form of the released Qwen3.5-MoE ones: BF16, fused experts, two shards."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from model import Weights
from spec import END_OF_TEXT, IM_END, ModelSpec, added_id

PREFIX = "model.language_model."


def keeps_float32(name: str) -> bool:
    """Qwen3.5 files hold these two in float32."""
    return name.endswith("linear_attn.A_log") or name.endswith("linear_attn.norm.weight")


def rounded(weights: Weights) -> Weights:
    """The weights as they will be after a round trip through the file, still float32."""
    return {name: value if keeps_float32(name) else value.bfloat16().float() for name, value in weights.items()}


def model_config(spec: ModelSpec) -> dict:
    """config.json."""
    text = {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "attn_output_gate": True,
        "bos_token_id": added_id(END_OF_TEXT),
        "dtype": "bfloat16",
        "eos_token_id": added_id(END_OF_TEXT),
        "full_attention_interval": spec.full_interval,
        "head_dim": spec.head_dim,
        "hidden_act": "silu",
        "hidden_size": spec.hidden,
        "initializer_range": 0.02,
        "layer_types": ["full_attention" if spec.is_full(i) else "linear_attention" for i in range(spec.layers)],
        "linear_conv_kernel_dim": spec.conv_kernel,
        "linear_key_head_dim": spec.gdn_dim,
        "linear_num_key_heads": spec.gdn_k_heads,
        "linear_num_value_heads": spec.gdn_v_heads,
        "linear_value_head_dim": spec.gdn_dim,
        "mamba_ssm_dtype": "float32",
        "max_position_embeddings": spec.max_positions,
        "mlp_only_layers": [],
        "model_type": "qwen3_5_moe_text",
        "moe_intermediate_size": spec.moe_inner,
        "mtp_num_hidden_layers": 0,
        "mtp_use_dedicated_embeddings": False,
        "num_attention_heads": spec.q_heads,
        "num_experts": spec.experts,
        "num_experts_per_tok": spec.experts_active,
        "num_hidden_layers": spec.layers,
        "num_key_value_heads": spec.kv_heads,
        "output_router_logits": False,
        "rms_norm_eps": spec.eps,
        "rope_parameters": {
            "mrope_interleaved": True,
            "mrope_section": [11, 11, 10],
            "partial_rotary_factor": spec.rotary_dim / spec.head_dim,
            "rope_theta": int(spec.rope_theta),
            "rope_type": "default",
        },
        "router_aux_loss_coef": 0.001,
        "shared_expert_intermediate_size": spec.shared_inner,
        "tie_word_embeddings": True,
        "use_cache": True,
        "vocab_size": spec.vocab,
    }
    return {
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "image_token_id": added_id("<|image_pad|>"),
        "model_type": "qwen3_5_moe",
        "text_config": text,
        "tie_word_embeddings": True,
        "video_token_id": added_id("<|video_pad|>"),
        "vision_end_token_id": added_id("<|vision_end|>"),
        "vision_start_token_id": added_id("<|vision_start|>"),
    }


def generation_config() -> dict:
    """generation_config.json."""
    end = added_id(END_OF_TEXT)
    return {
        "bos_token_id": end,
        "do_sample": True,
        "eos_token_id": [added_id(IM_END), end],
        "pad_token_id": end,
        "temperature": 0.8,
        "top_k": 40,
        "top_p": 0.95,
    }


def split_shards(tensors: dict[str, Tensor], count: int) -> list[dict[str, Tensor]]:
    """The tensors in order, cut into parts of about equal size."""
    size = {name: tensor.numel() * tensor.element_size() for name, tensor in tensors.items()}
    shards, share = [{} for _ in range(count)], sum(size.values()) / count
    seen = 0
    for name, tensor in tensors.items():
        shards[min(int(seen / share), count - 1)][name] = tensor
        seen += size[name]
    return shards


def write_json(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_configs(spec: ModelSpec, folder: Path) -> None:
    """config.json and generation_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", model_config(spec))
    write_json(folder / "generation_config.json", generation_config())


def write_checkpoint(weights: Weights, spec: ModelSpec, folder: Path) -> None:
    """Shards, index and configuration files."""
    write_configs(spec, folder)
    tensors = {PREFIX + name: (value.float() if keeps_float32(name) else value.bfloat16()).cpu().contiguous()
               for name, value in weights.items()}
    shards, where = split_shards(tensors, 2), {}
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, folder / file, metadata={"format": "pt"})
        where |= dict.fromkeys(shard, file)
    total = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    write_json(folder / "model.safetensors.index.json",
               {"metadata": {"total_size": total}, "weight_map": dict(sorted(where.items()))})


def main() -> None:
    import sys

    write_configs(ModelSpec(), Path(sys.argv[1]))


if __name__ == "__main__":
    main()
