# SPDX-License-Identifier: Apache-2.0
"""The gated delta rule over whole sequences, in chunks, written in plain tensor operations.

Within a chunk the updates of the state are solved at once as a unit lower triangular system; only the state at the
chunk borders is computed in sequence.
"""

from __future__ import annotations

import torch
from torch import Tensor

CHUNK = 64


def l2_normalise(x: Tensor) -> Tensor:
    """Vectors scaled to length one, in float32."""
    x = x.float()
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def unit_lower_inverse(lower: Tensor) -> Tensor:
    """The inverse of I + lower for strictly lower triangular matrices whose size is 8 times a power of two.

    Diagonal blocks of 8 come from the finite Neumann series; then pairs of blocks are joined until one is left.
    """
    size = lower.shape[-1]
    index = torch.arange(size, device=lower.device)
    eye = torch.eye(size, device=lower.device, dtype=lower.dtype)

    def same_block(width: int) -> Tensor:
        return (index[:, None] // width) == (index[None, :] // width)

    block = torch.where(same_block(8), lower, 0.0)
    square = block @ block
    inverse = (eye - block) @ (eye + square) @ (eye + square @ square)
    width = 8
    while width < size:
        joint = torch.where(same_block(2 * width) & ~same_block(width), lower, 0.0)
        inverse = inverse - inverse @ joint @ inverse
        width *= 2
    return inverse


def solve_operator(lower: Tensor) -> Tensor:
    """The same inverse with a gradient: one Newton step from a constant has the exact derivative and costs little."""
    with torch.no_grad():
        start = unit_lower_inverse(lower.detach())
    eye = torch.eye(lower.shape[-1], device=lower.device, dtype=lower.dtype)
    return start + start @ (eye - start - lower @ start)


def to_chunks(x: Tensor) -> Tensor:
    """[batch, time, heads, ...] to [chunks, batch, heads, CHUNK, ...]."""
    batch, time, heads = x.shape[:3]
    return x.reshape(batch, time // CHUNK, CHUNK, heads, *x.shape[3:]).transpose(2, 3).transpose(0, 1)


class BorderStates(torch.autograd.Function):
    """The recurrence over chunks: the state before each chunk and each chunk's corrected values.

    Shapes are [chunks, batch * heads, ...]. The gradient needs as few sequential products as the forward pass: those of
    `reads`, `writes` and `keep` are taken for all chunks at once, after the loop."""

    @staticmethod
    def forward(ctx, values: Tensor, reads: Tensor, writes: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        state = torch.zeros(writes.shape[1], writes.shape[2], values.shape[3], dtype=torch.float32, device=values.device)
        states, news = [], []
        for i in range(len(values)):
            states.append(state.to(values.dtype))
            news.append(torch.baddbmm(values[i], reads[i], states[i], alpha=-1))
            state = state * keep[i] + torch.bmm(writes[i], news[i]).float()
        all_states, all_news = torch.stack(states), torch.stack(news)
        ctx.save_for_backward(reads, writes, keep, all_states, all_news)
        return all_states, all_news

    @staticmethod
    def backward(ctx, d_states: Tensor, d_news: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        reads, writes, keep, states, news = ctx.saved_tensors
        after = torch.zeros_like(states[0], dtype=torch.float32)
        afters, d_values = [], []
        for i in reversed(range(len(news))):
            afters.insert(0, after.to(news.dtype))
            d_values.insert(0, torch.baddbmm(d_news[i], writes[i].transpose(1, 2), afters[0]))
            after = after * keep[i] + d_states[i].float() - torch.bmm(reads[i].transpose(1, 2), d_values[0]).float()
        all_afters, all_values = torch.stack(afters), torch.stack(d_values)
        d_keep = (all_afters.float() * states.float()).sum((-1, -2), keepdim=True)
        return all_values, -(all_values @ states.transpose(-1, -2)), all_afters @ news.transpose(-1, -2), d_keep


def gated_delta_rule(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, beta: Tensor) -> Tensor:
    """Outputs of the recurrence for q, k [batch, time, key heads, d], v [batch, time, value heads, d] and the float32
    gates [batch, time, value heads]. The time must be a multiple of CHUNK; q and k are normalised here."""
    dtype, repeat = v.dtype, v.shape[2] // k.shape[2]
    batch, time, heads, dim = v.shape
    q = to_chunks((l2_normalise(q) * dim**-0.5).to(dtype))
    k = to_chunks(l2_normalise(k).to(dtype))
    v, beta = to_chunks(v), to_chunks(beta)
    total = to_chunks(log_decay).cumsum(-1)  # log decay since the chunk began

    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=v.device).tril()
    between = torch.where(lower, total[..., :, None] - total[..., None, :], float("-inf")).exp()
    keys = (k @ k.transpose(-1, -2)).float().repeat_interleave(repeat, 2)
    scores = (q @ k.transpose(-1, -2)).float().repeat_interleave(repeat, 2)
    operator = solve_operator((keys * between * beta[..., None]).tril(-1)).to(dtype)
    scores = (scores * between).to(dtype)
    q, k = q.repeat_interleave(repeat, 2), k.repeat_interleave(repeat, 2)

    since = total.exp()[..., None]
    values = operator @ (v * beta[..., None]).to(dtype)
    reads = operator @ (k * (beta[..., None] * since)).to(dtype)
    queries = (q * since).to(dtype)
    writes = (k * (total[..., -1:] - total).exp()[..., None]).to(dtype).transpose(-1, -2)
    keep = total[..., -1].exp()[..., None, None]

    flat = [x.flatten(1, 2) for x in (values, reads, writes, keep)]
    states, news = (x.unflatten(1, (batch, heads)) for x in BorderStates.apply(*flat))
    out = queries @ states + scores @ news
    return out.transpose(0, 1).transpose(2, 3).reshape(batch, time, heads, dim)
