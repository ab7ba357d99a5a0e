# SPDX-License-Identifier: Apache-2.0
"""Trains a larger teacher for a while, then the demo model with the teacher's help, both by the clock.

    python train.py PIECES.npz OUTPUT_FOLDER --teacher-seconds 180 --student-seconds 240
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
from spec import WINDOW, ModelSpec, TrainSpec, student_spec, teacher_spec
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
    """Held-out perplexity as spec'd: windows of 512 tokens from scratch, each window's first token not scored."""

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


def loss_parts(x: Tensor, embedding: Tensor, targets: Tensor, teacher: Tensor | None, settings: TrainSpec,
               ) -> tuple[Tensor, Tensor]:
    """The loss to minimise and the plain cross-entropy."""
    logits = (x @ embedding.to(x.dtype).T).flatten(0, 1).float()
    norm = logits.logsumexp(-1)
    cross = (norm - logits.gather(-1, targets.reshape(-1, 1)).squeeze(-1)).mean()
    loss = cross + settings.z_loss * norm.square().mean()
    if teacher is not None:
        share = teacher.flatten(0, 1).float().softmax(-1)
        guided = (norm - (share * logits).sum(-1)).mean()
        loss = loss + settings.distil * (guided - cross)
    return loss, cross


class Phase:
    """One model, its optimiser and the step function, captured as a CUDA graph where there is a GPU."""

    def __init__(self, spec: ModelSpec, settings: TrainSpec, pieces: dict[str, np.ndarray], device: torch.device,
                 teacher: tuple[Network, Weights] | None = None, compiled: bool = True) -> None:
        self.spec, self.settings, self.device, self.teacher = spec, settings, device, teacher
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.network = Network(spec, dtype, settings.dropout)
        self.plain = Network(spec, dtype)
        self.loss = loss_parts
        if compiled:
            self.network.compile()
            self.loss = torch.compile(loss_parts, dynamic=False)
        self.weights = {name: value.to(device).requires_grad_() for name, value in init_weights(spec, settings.seed).items()}
        self.optimiser = Optimiser(self.weights, spec.hidden, settings)
        self.batches = Batches(EpochMaker(pieces, settings.seed), settings, device)
        self.tokens = self.batches.next()
        self.cross, self.seen = torch.zeros((), device=device), 0
        self.balance = torch.zeros((), device=device)
        self.run = self.step

    def step(self) -> None:
        """Forward, backward and update on the tokens in place."""
        for weight in self.weights.values():
            weight.grad = None
        ids, targets = self.tokens[:, :-1].contiguous(), self.tokens[:, 1:].contiguous()
        guide = None
        if self.teacher is not None:
            with torch.no_grad():
                guide = self.teacher[0].logits(self.teacher[1], ids)
        x, balance = self.network.hidden(self.weights, ids)
        loss, cross = self.loss(x, self.weights["embed_tokens.weight"], targets, guide, self.settings)
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
        except Exception as error:  # slower, but the run goes on
            log("no CUDA graph: " + "".join(traceback.format_exception(error))[-3000:])
            torch.cuda.synchronize()
        self.cross.zero_()
        self.balance.zero_()

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

    def train_loss(self) -> tuple[float, float]:
        """Mean cross-entropy and load-balance loss since the last call."""
        values = (self.cross / max(self.seen, 1)).item(), (self.balance / max(self.seen, 1)).item()
        self.cross.zero_()
        self.balance.zero_()
        self.seen = 0
        return values


def snapshot(weights: Weights) -> Weights:
    return {name: value.detach().clone() for name, value in weights.items()}


def train(name: str, phase: Phase, validation: Validation, rows: list[dict], evaluations: int, ready: bool = False,
          ) -> tuple[Weights, float]:
    """Runs a phase until its time is up; returns the averaged weights with the lowest held-out loss, and that loss."""
    if phase.device.type == "cuda" and not ready:
        phase.capture()
    settings, start, step, done = phase.settings, time.time(), 0, 0
    batch_tokens = settings.batch * settings.length
    best, best_loss = snapshot(phase.optimiser.averaged()), math.inf

    def evaluate(progress: float) -> None:
        nonlocal best, best_loss
        losses = {"average": validation.measure(phase.plain, rounded(phase.optimiser.averaged())),
                  "raw": validation.measure(phase.plain, rounded(phase.weights))}
        for kind, weights in (("average", phase.optimiser.averaged()), ("raw", phase.weights)):
            if losses[kind]["all"] < best_loss:
                best, best_loss = snapshot(weights), losses[kind]["all"]
        cross, balance = phase.train_loss()
        seconds = time.time() - start
        rows.append({"model": name, "seconds": round(seconds, 1), "step": step, "tokens": step * batch_tokens,
                     "epochs": round(phase.batches.progress(), 3), "rate": round(phase.rate(step, progress), 4),
                     "train_loss": round(cross, 5), "valid_loss": round(losses["average"]["all"], 5),
                     "valid_story": round(losses["average"]["story"], 5),
                     "valid_chat": round(losses["average"]["chat"], 5),
                     "valid_loss_unaveraged": round(losses["raw"]["all"], 5), "balance": round(balance, 4)})
        log(f"{rows[-1]} {step * batch_tokens / seconds:.0f} tokens/s")

    while (progress := (time.time() - start) / settings.seconds) < 1:
        phase.advance(step, progress)
        step += 1
        if step % 20 == 0 and phase.device.type == "cuda":
            torch.cuda.synchronize()
        if progress * evaluations >= done + 1:
            done += 1
            evaluate(progress)
    evaluate(1.0)
    phase.batches.worker.shutdown(wait=False, cancel_futures=True)
    return best, best_loss


def write_rows(path: Path, rows: list[dict]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pieces", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--teacher-seconds", type=float, default=180)
    parser.add_argument("--student-seconds", type=float, default=240)
    parser.add_argument("--end", type=float, default=math.inf, help="all training ends by this second of the process")
    parser.add_argument("--distil", type=float, default=0.6)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--evaluations", type=int, default=12)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--plain", action="store_true", help="do not compile")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    device = torch.device(arguments.device)
    pieces = dict(np.load(arguments.pieces))
    validation, rows = Validation(pieces, device), []
    arguments.output.mkdir(parents=True, exist_ok=True)
    base = TrainSpec(seconds=0, batch=arguments.batch, length=arguments.length)
    plans, teacher = {}, None
    log("data loaded")

    if arguments.teacher_seconds > 0:
        settings = replace(base, seconds=arguments.teacher_seconds, dropout=0.15, seed=2)
        plans["teacher"] = {"model": asdict(teacher_spec()), "training": asdict(settings)}
        phase = Phase(teacher_spec(), settings, pieces, device, compiled=not arguments.plain)
        weights, loss = train("teacher", phase, validation, rows, arguments.evaluations // 2)
        log(f"teacher: {loss:.4f}")
        network = Network(teacher_spec(), phase.network.dtype)
        teacher = (network if arguments.plain else network.compile(), weights)
        del phase

    settings = replace(base, distil=arguments.distil if teacher else 0.0, dropout=0.05 if teacher else 0.1,
                       seconds=arguments.student_seconds)
    phase = Phase(student_spec(), settings, pieces, device, teacher, compiled=not arguments.plain)
    if device.type == "cuda":
        phase.capture()
    settings = replace(settings, seconds=min(settings.seconds, arguments.end - (time.time() - BEGIN)))
    phase.settings = settings
    plans["student"] = {"model": asdict(student_spec()), "training": asdict(settings)}
    best, loss = train("student", phase, validation, rows, arguments.evaluations, ready=True)
    log(f"student: {loss:.4f}, perplexity {math.exp(loss):.3f}")

    write_checkpoint(best, student_spec(), arguments.output)
    write_rows(arguments.output / "curve.csv", rows)
    (arguments.output / "training.json").write_text(json.dumps(plans, indent=2) + "\n", encoding="utf-8")
    if device.type == "cuda":
        log(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")


if __name__ == "__main__":
    main()
