# SPDX-License-Identifier: Apache-2.0
"""Trains the demo model by the clock and exports the weights with the lowest held-out loss.

    python train.py PIECES.npz OUTPUT_FOLDER --seconds 440
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from export import rounded, write_checkpoint
from model import Network, Weights, init_weights
from optimise import Optimiser
from spec import WINDOW, ModelSpec, TrainSpec
from stream import EpochMaker

BEGIN = time.time()


def log(text: str) -> None:
    print(f"[{time.time() - BEGIN:6.1f}] {text}", flush=True)


class Batches:
    """An endless supply of windows; the next epoch is made in the background while one is in use."""

    def __init__(self, maker: EpochMaker, settings: TrainSpec, device: torch.device) -> None:
        self.maker, self.settings, self.device = maker, settings, device
        self.worker = ThreadPoolExecutor(1)
        self.coming = self.worker.submit(self.make)
        self.span = torch.arange(settings.length + 1, device=device)
        self.epochs, self.used, self.ready = 0, 0, 0

    def make(self) -> tuple[np.ndarray, np.ndarray]:
        stream, begins = self.maker.epoch()
        return stream, self.maker.window_starts(len(stream), begins, self.settings.length)

    def next(self) -> Tensor:
        """Tokens [batch, length + 1]."""
        if self.used + self.settings.batch > self.ready:
            stream, starts = self.coming.result()
            self.coming = self.worker.submit(self.make)
            self.stream = torch.from_numpy(stream.astype(np.int32)).to(self.device)
            self.starts = torch.from_numpy(starts).to(self.device)
            self.epochs, self.used, self.ready = self.epochs + 1, 0, len(starts)
        chosen = self.starts[self.used:self.used + self.settings.batch]
        self.used += self.settings.batch
        return self.stream[chosen[:, None] + self.span].long()

    def progress(self) -> float:
        """Epochs used so far."""
        return self.epochs - 1 + self.used / max(self.ready, 1)


class Validation:
    """Held-out loss as evaluate.py defines it, in the arithmetic of the training."""

    def __init__(self, pieces: dict[str, np.ndarray], device: torch.device) -> None:
        ids = torch.from_numpy(pieces["valid"].astype(np.int64))
        kinds = torch.from_numpy(pieces["valid_kinds"].astype(np.int64))
        short = -len(ids) % WINDOW
        self.ids = F.pad(ids, (0, short)).view(-1, WINDOW).to(device)
        self.kinds = F.pad(kinds, (0, short), value=-1).view(-1, WINDOW).to(device)

    @torch.no_grad()
    def measure(self, network: Network, weights: Weights, batch: int = 64) -> dict[str, float]:
        """Mean NLL overall and of each kind of document."""
        sums, counts = torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
        for start in range(0, len(self.ids), batch):
            ids, kinds = self.ids[start:start + batch], self.kinds[start:start + batch, 1:]
            logits = network.logits(weights, ids)[:, :-1].float()
            nll = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none").view_as(kinds)
            for kind in range(2):
                sums[kind] += nll[kinds == kind].double().sum().cpu()
                counts[kind] += (kinds == kind).sum().cpu()
        return {"all": (sums.sum() / counts.sum()).item(), "story": (sums[0] / counts[0]).item(),
                "chat": (sums[1] / counts[1]).item()}


def loss_parts(x: Tensor, embedding: Tensor, targets: Tensor, z_loss: float) -> tuple[Tensor, Tensor]:
    """The loss to minimise and the plain cross-entropy of the last hidden state x [batch, time, hidden]."""
    logits = (x @ embedding.to(x.dtype).T).flatten(0, 1).float()
    norm = logits.logsumexp(-1)
    cross = (norm - logits.gather(-1, targets.reshape(-1, 1)).squeeze(-1)).mean()
    return cross + z_loss * norm.square().mean(), cross


class Trainer:
    """The model, its optimiser and the step function, which is captured as a CUDA graph where there is a GPU."""

    def __init__(self, spec: ModelSpec, settings: TrainSpec, pieces: dict[str, np.ndarray], device: torch.device,
                 compiled: bool = True) -> None:
        self.spec, self.settings, self.device = spec, settings, device
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.network = Network(spec, dtype, settings.dropout, settings.edge_dropout)
        self.plain = Network(spec, dtype)
        self.loss = loss_parts
        if compiled:
            self.network.compile()
            self.loss = torch.compile(loss_parts, dynamic=False)
        self.weights = {name: value.to(device).requires_grad_()
                        for name, value in init_weights(spec, settings.seed).items()}
        self.optimiser = Optimiser(self.weights, spec.hidden, settings)
        self.batches = Batches(EpochMaker(pieces, settings.seed), settings, device)
        self.tokens = self.batches.next()
        self.cross, self.balance, self.seen = torch.zeros((), device=device), torch.zeros((), device=device), 0
        self.run = self.step
        if device.type == "cuda":
            self.capture()

    def step(self) -> None:
        """Forward, backward and update on the tokens in place."""
        for weight in self.weights.values():
            weight.grad = None
        ids, targets = self.tokens[:, :-1].contiguous(), self.tokens[:, 1:].contiguous()
        x, balance = self.network.hidden(self.weights, ids)
        loss, cross = self.loss(x, self.weights["embed_tokens.weight"], targets, self.settings.z_loss)
        (loss + self.settings.balance * balance).backward()
        self.optimiser.step()
        self.cross += cross.detach()
        self.balance += balance.detach()

    def capture(self) -> None:
        """Compiles on first use and records the step; the rate is still zero, so the weights do not move."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        log("warmed up")
        try:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.step()
            self.run = self.graph.replay
        except RuntimeError as error:  # slower, but the run goes on
            log("no CUDA graph: " + "".join(traceback.format_exception(error))[-3000:])
            torch.cuda.synchronize()
        self.train_loss()

    def rate(self, step: int, progress: float) -> float:
        """Share of the full learning rate: linear warm-up, flat, linear to zero."""
        flat = self.settings.flat_part
        return min((step + 1) / self.settings.warmup_steps, 1.0, max(1.0 - progress, 0.0) / (1.0 - flat))

    def advance(self, step: int, progress: float) -> None:
        """One training step at this point of the schedule."""
        self.tokens.copy_(self.batches.next())
        self.optimiser.rate.fill_(self.rate(step, progress))
        self.optimiser.keep.fill_(min(self.settings.ema, (1 + step) / (10 + step)))
        self.run()
        self.seen += 1
        if step % 20 == 0 and self.device.type == "cuda":
            torch.cuda.synchronize()  # the clock must not run ahead of the device

    def train_loss(self) -> tuple[float, float]:
        """Mean cross-entropy and load-balance loss since the last call."""
        values = (self.cross / max(self.seen, 1)).item(), (self.balance / max(self.seen, 1)).item()
        self.cross.zero_()
        self.balance.zero_()
        self.seen = 0
        return values


class Record:
    """The loss curve and the best weights."""

    def __init__(self, trainer: Trainer, validation: Validation) -> None:
        self.trainer, self.validation, self.start = trainer, validation, time.time()
        self.rows: list[dict] = []
        self.best, self.best_loss, self.best_kind = None, math.inf, ""

    def consider(self, kind: str, weights: Weights) -> dict[str, float]:
        """Measures weights as they would be exported and keeps them if they are the best."""
        losses = self.validation.measure(self.trainer.plain, rounded(weights))
        if losses["all"] < self.best_loss:
            self.best = {name: value.detach().clone() for name, value in weights.items()}
            self.best_loss, self.best_kind = losses["all"], f"{kind} at step {self.rows[-1]['step'] if self.rows else 0}"
        return losses

    def add(self, step: int, progress: float) -> None:
        """A row of the curve."""
        trainer, settings = self.trainer, self.trainer.settings
        cross, balance = trainer.train_loss()
        seconds, tokens = time.time() - self.start, step * settings.batch * settings.length
        row = {"seconds": round(seconds, 1), "step": step, "tokens": tokens,
               "epochs": round(trainer.batches.progress(), 3), "rate": round(trainer.rate(step, progress), 4),
               "train_loss": round(cross, 5), "balance": round(balance, 4)}
        self.rows.append(row)
        losses = self.consider("average", trainer.optimiser.averaged())
        row |= {f"valid_{name}": round(loss, 5) for name, loss in losses.items()}
        log(f"{row} {tokens / seconds:.0f} tokens/s")

    def write(self, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)


def train(trainer: Trainer, record: Record, evaluations: int) -> None:
    """Steps until the time is up, with evaluations at even intervals."""
    step, done = 0, 0
    while (progress := (time.time() - record.start) / trainer.settings.seconds) < 1:
        trainer.advance(step, progress)
        step += 1
        if progress * evaluations >= done + 1:
            done += 1
            record.add(step, progress)
    record.add(step, 1.0)
    losses = record.consider("last", trainer.weights)
    log(f"without averaging: {losses}; best: {record.best_kind}, perplexity {math.exp(record.best_loss):.4f}")
    trainer.batches.worker.shutdown(wait=False, cancel_futures=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pieces", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seconds", type=float, default=440, help="of training, compilation not counted")
    parser.add_argument("--end", type=float, default=math.inf, help="training ends by this second of the process")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--evaluations", type=int, default=14)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--plain", action="store_true", help="do not compile")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    arguments.output.mkdir(parents=True, exist_ok=True)
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    device, spec = torch.device(arguments.device), ModelSpec()
    pieces = dict(np.load(arguments.pieces))
    settings = TrainSpec(seconds=arguments.seconds, batch=arguments.batch, length=arguments.length)
    trainer = Trainer(spec, settings, pieces, device, compiled=not arguments.plain)
    validation = Validation(pieces, device)
    validation.measure(trainer.plain, trainer.weights)  # loads what it needs, outside the timed part
    trainer.settings = replace(settings, seconds=min(settings.seconds, arguments.end - (time.time() - BEGIN)))
    log(f"training for {trainer.settings.seconds:.0f} s")
    record = Record(trainer, validation)
    try:
        train(trainer, record, arguments.evaluations)
    finally:
        if record.best is not None:
            write_checkpoint(record.best, spec, arguments.output)
            record.write(arguments.output / "curve.csv")
    (arguments.output / "training.json").write_text(
        json.dumps({"model": asdict(spec), "training": asdict(trainer.settings), "exported": record.best_kind,
                    "last_row": record.rows[-1]}, indent=2) + "\n", encoding="utf-8")
    if device.type == "cuda":
        log(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")


if __name__ == "__main__":
    main()
