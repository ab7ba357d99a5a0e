# SPDX-License-Identifier: Apache-2.0
"""The Qwen3.5-MoE text model as functions over a dictionary of float32 weights, made for training.

The names of the weights are those of a released checkpoint without the prefix `model.language_model.`.
Every expert is computed for every token and the outputs of the unselected ones are multiplied by zero: with eight small
experts this is faster than sorting tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from delta import gated_delta_rule
from spec import ModelSpec

Weights = dict[str, Tensor]


def init_weights(spec: ModelSpec, seed: int) -> Weights:
    """Fresh weights on the CPU."""
    rng = torch.Generator().manual_seed(seed)
    out_std = 0.02 / math.sqrt(2 * spec.layers)

    def normal(*shape: int, std: float = 0.02) -> Tensor:
        return torch.randn(*shape, generator=rng) * std

    def uniform(count: int, low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, generator=rng)

    weights = {"embed_tokens.weight": normal(spec.vocab, spec.hidden), "norm.weight": torch.zeros(spec.hidden)}
    for layer in range(spec.layers):
        name = f"layers.{layer}."
        weights[name + "input_layernorm.weight"] = torch.zeros(spec.hidden)
        weights[name + "post_attention_layernorm.weight"] = torch.zeros(spec.hidden)
        if spec.is_full(layer):
            part = name + "self_attn."
            weights[part + "q_proj.weight"] = normal(2 * spec.q_heads * spec.head_dim, spec.hidden)
            weights[part + "k_proj.weight"] = normal(spec.kv_heads * spec.head_dim, spec.hidden)
            weights[part + "v_proj.weight"] = normal(spec.kv_heads * spec.head_dim, spec.hidden)
            weights[part + "o_proj.weight"] = normal(spec.hidden, spec.q_heads * spec.head_dim, std=out_std)
            weights[part + "q_norm.weight"] = torch.zeros(spec.head_dim)
            weights[part + "k_norm.weight"] = torch.zeros(spec.head_dim)
        else:
            part = name + "linear_attn."
            step = torch.exp(uniform(spec.gdn_v_heads, math.log(1e-3), math.log(1e-1)))
            weights[part + "in_proj_qkv.weight"] = normal(spec.conv_dim, spec.hidden)
            weights[part + "in_proj_z.weight"] = normal(spec.value_dim, spec.hidden)
            weights[part + "in_proj_b.weight"] = normal(spec.gdn_v_heads, spec.hidden)
            weights[part + "in_proj_a.weight"] = normal(spec.gdn_v_heads, spec.hidden)
            weights[part + "conv1d.weight"] = uniform(spec.conv_dim * spec.conv_kernel, -0.5, 0.5).view(
                spec.conv_dim, 1, spec.conv_kernel)
            weights[part + "A_log"] = uniform(spec.gdn_v_heads, 1.0, 16.0).log()
            weights[part + "dt_bias"] = step + torch.log(-torch.expm1(-step))  # softplus of it is the step
            weights[part + "norm.weight"] = torch.ones(spec.gdn_dim)
            weights[part + "out_proj.weight"] = normal(spec.hidden, spec.value_dim, std=out_std)
        part = name + "mlp."
        weights[part + "gate.weight"] = normal(spec.experts, spec.hidden)
        weights[part + "experts.gate_up_proj"] = normal(spec.experts, 2 * spec.moe_inner, spec.hidden)
        weights[part + "experts.down_proj"] = normal(spec.experts, spec.hidden, spec.moe_inner, std=out_std)
        weights[part + "shared_expert.gate_proj.weight"] = normal(spec.shared_inner, spec.hidden)
        weights[part + "shared_expert.up_proj.weight"] = normal(spec.shared_inner, spec.hidden)
        weights[part + "shared_expert.down_proj.weight"] = normal(spec.hidden, spec.shared_inner, std=out_std)
        weights[part + "shared_expert_gate.weight"] = normal(1, spec.hidden)
    return weights


def centred_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """RMS norm whose scale is 1 + weight, in float32."""
    x = x.float()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * (1 + weight.float())


def rope_table(spec: ModelSpec, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosines and sines [length, rotary_dim / 2]."""
    power = torch.arange(0, spec.rotary_dim, 2, dtype=torch.float32) / spec.rotary_dim
    angle = torch.arange(length, dtype=torch.float32)[:, None] / spec.rope_theta**power
    return angle.cos().to(device), angle.sin().to(device)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of the first dimensions of x [batch, heads, time, dim]; pairs are half the rotary part apart."""
    half = cos.shape[-1]
    low, high, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
    return torch.cat([low * cos - high * sin, high * cos + low * sin, rest], -1)


def causal_conv(x: Tensor, weight: Tensor) -> Tensor:
    """Depthwise convolution over time of x [batch, time, channels], then SiLU; the last tap meets the current token."""
    taps = weight.shape[-1]
    padded = F.pad(x, (0, 0, taps - 1, 0)).float()
    out = sum(padded[:, i:i + x.shape[1]] * weight[:, 0, i].float() for i in range(taps))
    return F.silu(out).to(x.dtype)


def delta_net(x: Tensor, w: Weights, spec: ModelSpec) -> Tensor:
    """Gated DeltaNet of the normalised input x, in x's type."""
    batch, time, _ = x.shape
    mixed = causal_conv(x @ w["in_proj_qkv.weight"].to(x.dtype).T, w["conv1d.weight"])
    q, k, v = mixed.split([spec.key_dim, spec.key_dim, spec.value_dim], -1)
    z = (x @ w["in_proj_z.weight"].to(x.dtype).T).view(batch, time, -1, spec.gdn_dim)
    gates = torch.cat([w["in_proj_b.weight"], w["in_proj_a.weight"]]).to(x.dtype)
    b, a = (x @ gates.T).float().chunk(2, -1)
    log_decay = -w["A_log"].exp() * F.softplus(a + w["dt_bias"])
    heads = (batch, time, -1, spec.gdn_dim)
    out = gated_delta_rule(q.reshape(heads), k.reshape(heads), v.reshape(heads), log_decay, b.sigmoid()).float()
    out = out * torch.rsqrt(out.square().mean(-1, keepdim=True) + spec.eps) * w["norm.weight"]
    out = (out * F.silu(z.float())).to(x.dtype).reshape(batch, time, -1)
    return out @ w["out_proj.weight"].to(x.dtype).T


def attention(x: Tensor, w: Weights, spec: ModelSpec, cos: Tensor, sin: Tensor) -> Tensor:
    """Gated softmax attention of the normalised input x, in x's type."""
    batch, time, _ = x.shape

    def project(name: str, width: int) -> Tensor:
        return (x @ w[f"{name}_proj.weight"].to(x.dtype).T).view(batch, time, -1, width).transpose(1, 2)

    q, gate = project("q", 2 * spec.head_dim).chunk(2, -1)
    k, v = project("k", spec.head_dim), project("v", spec.head_dim)
    q = rotate(centred_norm(q, w["q_norm.weight"], spec.eps), cos, sin).to(x.dtype)
    k = rotate(centred_norm(k, w["k_norm.weight"], spec.eps), cos, sin).to(x.dtype)
    group = spec.q_heads // spec.kv_heads
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    out = (out.float() * gate.float().sigmoid()).to(x.dtype).transpose(1, 2).reshape(batch, time, -1)
    return out @ w["o_proj.weight"].to(x.dtype).T


def route(x: Tensor, weight: Tensor, active: int) -> tuple[Tensor, Tensor]:
    """Routing weights [tokens, experts], zero for unselected experts, and the load-balance loss (1 if balanced)."""
    probability = (x @ weight.to(x.dtype).T).float().softmax(-1)
    chosen, rest = torch.zeros_like(probability), probability.detach()
    for _ in range(active):
        best = rest.argmax(-1, keepdim=True) == torch.arange(rest.shape[-1], device=rest.device)
        chosen = chosen + best
        rest = rest.masked_fill(best, -1.0)
    kept = probability * chosen
    balance = probability.shape[-1] * (chosen.mean(0) / active * probability.mean(0)).sum()
    return kept / kept.sum(-1, keepdim=True), balance


def mixture(x: Tensor, w: Weights, spec: ModelSpec) -> tuple[Tensor, Tensor]:
    """Routed and shared experts of the normalised input x, in x's type, and the load-balance loss."""
    shape, x = x.shape, x.flatten(0, 1)
    share, balance = route(x, w["gate.weight"], spec.experts_active)
    gate, up = (x @ w["experts.gate_up_proj"].flatten(0, 1).to(x.dtype).T).view(
        len(x), spec.experts, 2, spec.moe_inner).unbind(2)
    inner = (F.silu(gate.float()) * up.float() * share[..., None]).to(x.dtype).flatten(1)
    out = inner @ w["experts.down_proj"].transpose(1, 2).flatten(0, 1).to(x.dtype)

    both = torch.cat([w["shared_expert.gate_proj.weight"], w["shared_expert.up_proj.weight"]]).to(x.dtype)
    gate, up = (x @ both.T).chunk(2, -1)
    open_part = (x.float() @ w["shared_expert_gate.weight"].T).sigmoid()
    inner = (F.silu(gate.float()) * up.float() * open_part).to(x.dtype)
    out = out + inner @ w["shared_expert.down_proj.weight"].to(x.dtype).T
    return out.view(shape), balance


def sub_weights(weights: Weights, prefix: str) -> Weights:
    """The weights whose names begin with the prefix, without it."""
    return {name[len(prefix):]: value for name, value in weights.items() if name.startswith(prefix)}


class Network:
    """The layers as functions of hidden state and weights; `compile` replaces them by compiled ones."""

    def __init__(self, spec: ModelSpec, dtype: torch.dtype, dropout: float = 0.0, edge_dropout: float = 0.0) -> None:
        self.spec, self.dtype, self.dropout, self.edge_dropout = spec, dtype, dropout, edge_dropout
        self.delta_layer: Callable = self.plain_delta_layer
        self.full_layer: Callable = self.plain_full_layer
        self.tables: dict[tuple[int, torch.device], tuple[Tensor, Tensor]] = {}

    def compile(self) -> Network:
        """One compiled function for each kind of layer, shared by all layers of the kind."""
        self.delta_layer = torch.compile(self.plain_delta_layer, dynamic=False)
        self.full_layer = torch.compile(self.plain_full_layer, dynamic=False)
        return self

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout) if self.dropout > 0 else x

    def plain_delta_layer(self, h: Tensor, w: Weights, mixer: Weights, mlp: Weights) -> tuple[Tensor, Tensor]:
        x = centred_norm(h, w["input_layernorm.weight"], self.spec.eps).to(self.dtype)
        h = h + self.drop(delta_net(x, mixer, self.spec).float())
        return self.feed_forward(h, w, mlp)

    def plain_full_layer(self, h: Tensor, w: Weights, mixer: Weights, mlp: Weights, cos: Tensor,
                         sin: Tensor) -> tuple[Tensor, Tensor]:
        x = centred_norm(h, w["input_layernorm.weight"], self.spec.eps).to(self.dtype)
        h = h + self.drop(attention(x, mixer, self.spec, cos, sin).float())
        return self.feed_forward(h, w, mlp)

    def feed_forward(self, h: Tensor, w: Weights, mlp: Weights) -> tuple[Tensor, Tensor]:
        x = centred_norm(h, w["post_attention_layernorm.weight"], self.spec.eps).to(self.dtype)
        out, balance = mixture(x, mlp, self.spec)
        return h + self.drop(out.float()), balance

    def hidden(self, weights: Weights, ids: Tensor) -> tuple[Tensor, Tensor]:
        """The normalised last hidden state for ids [batch, time] and the mean load-balance loss."""
        key = (ids.shape[1], ids.device)
        if key not in self.tables:
            self.tables[key] = rope_table(self.spec, *key)
        h = F.dropout(F.embedding(ids, weights["embed_tokens.weight"]), self.edge_dropout)
        balance = h.new_zeros(())
        for layer in range(self.spec.layers):
            w, full = sub_weights(weights, f"layers.{layer}."), self.spec.is_full(layer)
            norms = {name: value for name, value in w.items() if "layernorm" in name}
            mixer = sub_weights(w, "self_attn." if full else "linear_attn.")
            mlp = sub_weights(w, "mlp.")
            h, part = (self.full_layer(h, norms, mixer, mlp, *self.tables[key]) if full
                       else self.delta_layer(h, norms, mixer, mlp))
            balance = balance + part / self.spec.layers
        h = F.dropout(centred_norm(h, weights["norm.weight"], self.spec.eps), self.edge_dropout)
        return h.to(self.dtype), balance

    def logits(self, weights: Weights, ids: Tensor) -> Tensor:
        """Logits [batch, time, vocabulary rows]; the time may be any."""
        short = -ids.shape[1] % 64
        x, _ = self.hidden(weights, F.pad(ids, (0, short)))
        return x[:, :ids.shape[1]] @ weights["embed_tokens.weight"].to(self.dtype).T
