# SPDX-License-Identifier: Apache-2.0
"""Muon for the weight matrices, AdamW for everything else, and a running average of the weights.

Nothing here reads a value back from the device, so that a whole step can be captured as a CUDA graph.
"""

from __future__ import annotations

import torch
from torch import Tensor

from model import Weights
from spec import TrainSpec

ADAM_NAMES = ("embed_tokens", "norm", "A_log", "dt_bias", "conv1d", "in_proj_b", "in_proj_a", "mlp.gate.",
              "shared_expert_gate")
DECAYED_BY_ADAM = ("embed_tokens", "conv1d", "mlp.gate.", "in_proj_b", "in_proj_a")


def uses_adam(name: str) -> bool:
    return any(part in name for part in ADAM_NAMES)


def to_blocks(x: Tensor, width: int) -> Tensor:
    """A matrix, or a stack of matrices, as blocks [n, rows, columns] with rows >= columns.

    Where one side is the hidden width and the other a multiple of it, the blocks are squares: heads and gates that
    share a tensor are then treated apart."""
    rows, columns = x.shape[-2:]
    if columns == width and rows % width == 0:
        return x.reshape(-1, width, width)
    if rows == width and columns % width == 0:
        return x.reshape(-1, width, columns // width, width).transpose(1, 2).reshape(-1, width, width)
    x = x.reshape(-1, rows, columns)
    return x if rows >= columns else x.transpose(1, 2)


def from_blocks(blocks: Tensor, shape: torch.Size, width: int) -> Tensor:
    """The reverse of to_blocks."""
    rows, columns = shape[-2:]
    if columns == width and rows % width == 0:
        return blocks.reshape(shape)
    if rows == width and columns % width == 0:
        return blocks.reshape(-1, columns // width, width, width).transpose(1, 2).reshape(shape)
    return (blocks if rows >= columns else blocks.transpose(1, 2)).reshape(shape)


def orthogonalise(x: Tensor, steps: int = 5) -> Tensor:
    """Blocks with about the same singular vectors and singular values near one, by a quintic iteration."""
    x = x.bfloat16() if x.is_cuda else x
    x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    for _ in range(steps):
        gram = x.transpose(1, 2) @ x
        poly = torch.baddbmm(gram, gram, gram, beta=-4.7750, alpha=2.0315)
        x = torch.baddbmm(x, x, poly, beta=3.4445)
    return x


class MuonGroup:
    """All matrices whose blocks have one shape."""

    def __init__(self, weights: list[Tensor], width: int, momentum: float) -> None:
        self.weights, self.width, self.momentum = weights, width, momentum
        blocks = [to_blocks(weight.detach(), width) for weight in weights]
        self.counts = [len(block) for block in blocks]
        self.buffer = torch.zeros_like(torch.cat(blocks))
        ratios = [self.out_in_ratio(weight) for weight in weights for _ in to_blocks(weight.detach(), width)]
        self.scale = torch.tensor(ratios, device=self.buffer.device).clamp(min=1).sqrt()[:, None, None]

    def out_in_ratio(self, weight: Tensor) -> float:
        rows, columns = weight.shape[-2:]
        square = columns == self.width and rows % self.width == 0 or rows == self.width and columns % self.width == 0
        return 1.0 if square else rows / columns

    def step(self, rate: Tensor, lr: float, decay: float) -> None:
        grad = torch.cat([to_blocks(weight.grad, self.width) for weight in self.weights])
        self.buffer.lerp_(grad, 1 - self.momentum)
        update = orthogonalise(grad.lerp(self.buffer, self.momentum)).float() * self.scale * (rate * -lr)
        changes = [from_blocks(part, weight.shape, self.width)
                   for part, weight in zip(update.split(self.counts), self.weights)]
        torch._foreach_mul_(self.weights, 1 - rate * (lr * decay))
        torch._foreach_add_(self.weights, changes)


class AdamGroup:
    """AdamW over one flat vector of all remaining weights."""

    def __init__(self, weights: Weights, settings: TrainSpec, betas: tuple[float, float] = (0.9, 0.98)) -> None:
        self.weights, self.betas = list(weights.values()), betas
        self.counts = [weight.numel() for weight in self.weights]
        decays = [settings.adam_decay if any(part in name for part in DECAYED_BY_ADAM) else 0.0 for name in weights]
        device = self.weights[0].device
        self.decay = torch.cat([torch.full((count,), d, device=device) for count, d in zip(self.counts, decays)])
        self.mean, self.square = torch.zeros_like(self.decay), torch.zeros_like(self.decay)
        self.count = torch.zeros((), device=device)
        self.lr = settings.adam_lr

    def step(self, rate: Tensor) -> None:
        grad = torch.cat([weight.grad.flatten() for weight in self.weights])
        now = torch.cat([weight.flatten() for weight in self.weights])
        first, second = self.betas
        self.count += 1
        self.mean.lerp_(grad, 1 - first)
        self.square.lerp_(grad.square(), 1 - second)
        size = (self.square / (1 - second**self.count)).sqrt() + 1e-10
        change = (self.mean / (1 - first**self.count) / size + self.decay * now) * (rate * -self.lr)
        torch._foreach_add_(self.weights, [part.view_as(w) for part, w in zip(change.split(self.counts), self.weights)])


class Optimiser:
    """Both kinds of update and the average. `rate` and `keep` are tensors, to be filled before every step."""

    def __init__(self, weights: Weights, width: int, settings: TrainSpec) -> None:
        device = next(iter(weights.values())).device
        self.weights = list(weights.values())
        self.names = list(weights)
        self.settings = settings
        self.rate, self.keep = torch.zeros((), device=device), torch.zeros((), device=device)
        self.average = [weight.detach().clone() for weight in self.weights]
        self.adam = AdamGroup({n: w for n, w in weights.items() if uses_adam(n)}, settings)
        groups: dict[torch.Size, list[Tensor]] = {}
        for name, weight in weights.items():
            if not uses_adam(name):
                groups.setdefault(to_blocks(weight.detach(), width).shape[1:], []).append(weight)
        self.muon = [MuonGroup(group, width, 0.95) for group in groups.values()]

    @torch.no_grad()
    def step(self) -> None:
        self.adam.step(self.rate)
        for group in self.muon:
            group.step(self.rate, self.settings.muon_lr, self.settings.muon_decay)
        torch._foreach_mul_(self.average, self.keep)
        torch._foreach_add_(self.average, torch._foreach_mul(self.weights, 1 - self.keep))

    def averaged(self) -> Weights:
        """The averaged weights by name."""
        return dict(zip(self.names, self.average))
