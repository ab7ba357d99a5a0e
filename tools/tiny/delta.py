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


def to_chunks(x: Tensor, repeat: int) -> Tensor:
    """[batch, time, heads, ...] to [chunks, batch, heads * repeat, CHUNK, ...]."""
    batch, time, heads = x.shape[:3]
    x = x.reshape(batch, time // CHUNK, CHUNK, heads, *x.shape[3:]).transpose(2, 3).transpose(0, 1)
    return x.repeat_interleave(repeat, dim=2) if repeat > 1 else x


def gated_delta_rule(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, beta: Tensor) -> Tensor:
    """Outputs of the recurrence for q, k [batch, time, key heads, d], v [batch, time, value heads, d] and the float32
    gates [batch, time, value heads]. The time must be a multiple of CHUNK; q and k are normalised here."""
    dtype, repeat = v.dtype, v.shape[2] // k.shape[2]
    batch, time, heads, dim = v.shape
    q = to_chunks((l2_normalise(q) * dim**-0.5).to(dtype), 1)
    k = to_chunks(l2_normalise(k).to(dtype), 1)
    v, beta = to_chunks(v, 1), to_chunks(beta, 1)
    total = to_chunks(log_decay, 1).cumsum(-1)  # log decay since the chunk began

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

    state = torch.zeros(batch, heads, dim, dim, dtype=torch.float32, device=v.device)
    states, news = [], []
    for value, read, write, kept in zip(values.unbind(), reads.unbind(), writes.unbind(), keep.unbind()):
        states.append(state.to(dtype))
        news.append(value - read @ states[-1])
        state = state * kept + (write @ news[-1]).float()
    out = queries @ torch.stack(states) + scores @ torch.stack(news)
    return out.transpose(0, 1).transpose(2, 3).reshape(batch, time, heads, dim)
