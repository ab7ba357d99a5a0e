# SPDX-License-Identifier: Apache-2.0
"""Trains the demo model by the clock and exports the weights with the lowest held-out loss.

    python train.py PIECES.npz OUTPUT_FOLDER --teacher-seconds 190 --seconds 230

A teacher is trained first and exported; then a fresh student learns from the text and from the teacher's predictions.
Without --teacher-seconds there is only a model that learns from the text.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
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

    def __init__(self, pieces: dict[str, np.ndarray], settings: TrainSpec, device: torch.device) -> None:
        self.maker = EpochMaker(pieces, settings.seed, settings.word_repeats)
        self.settings, self.device = settings, device
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


def soft_loss_parts(x: Tensor, embedding: Tensor, targets: Tensor, z_loss: float, teacher_x: Tensor,
                    teacher_embedding: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """As loss_parts, with this share of the loss measured against the teacher's predictions instead of the text."""
    logits = (x @ embedding.to(x.dtype).T).flatten(0, 1).float()
    norm = logits.logsumexp(-1)
    cross = (norm - logits.gather(-1, targets.reshape(-1, 1)).squeeze(-1)).mean()
    known = (teacher_x @ teacher_embedding.to(x.dtype).T).flatten(0, 1).float().softmax(-1)
    soft = (norm - (known * logits).sum(-1)).mean()  # the divergence but for a constant
    return (1 - share) * cross + share * soft + z_loss * norm.square().mean(), cross


@dataclass
class Teacher:
    """A trained model as a network without dropout."""

    network: Network
    weights: Weights

    @torch.no_grad()
    def hidden(self, ids: Tensor) -> Tensor:
        return self.network.hidden(self.weights, ids)[0]


class Trainer:
    """The model, its optimiser and the step function, which is captured as a CUDA graph where there is a GPU."""

    def __init__(self, spec: ModelSpec, settings: TrainSpec, batches: Batches, device: torch.device,
                 compiled: bool = True, teacher: Teacher | None = None) -> None:
        self.spec, self.settings, self.device, self.teacher = spec, settings, device, teacher
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.network = Network(spec, dtype, settings.dropout, settings.edge_dropout)
        self.plain = Network(spec, dtype)
        self.loss, self.soft_loss = loss_parts, soft_loss_parts
        if compiled:
            self.network.compile()
            self.loss = torch.compile(loss_parts, dynamic=False)
            self.soft_loss = torch.compile(soft_loss_parts, dynamic=False)
        self.weights = {name: value.to(device).requires_grad_()
                        for name, value in init_weights(spec, settings.seed).items()}
        self.optimiser = Optimiser(self.weights, spec.hidden, settings)
        self.batches = batches
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
        loss, cross = self.losses(x, ids, targets)
        (loss + self.settings.balance * balance).backward()
        self.optimiser.step()
        self.cross += cross.detach()
        self.balance += balance.detach()

    def losses(self, x: Tensor, ids: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The loss to minimise, without the router's, and the plain cross-entropy."""
        embedding, settings = self.weights["embed_tokens.weight"], self.settings
        if self.teacher is None:
            return self.loss(x, embedding, targets, settings.z_loss)
        return self.soft_loss(x, embedding, targets, settings.z_loss, self.teacher.hidden(ids),
                              self.teacher.weights["embed_tokens.weight"], settings.soft_share)

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
    """The loss curve of one model and its best weights."""

    def __init__(self, name: str, trainer: Trainer, validation: Validation) -> None:
        self.name, self.trainer, self.validation, self.start = name, trainer, validation, time.time()
        self.rows: list[dict] = []
        self.best, self.best_loss, self.best_kind = None, math.inf, ""

    def consider(self, kind: str, weights: Weights) -> dict[str, float]:
        """Measures weights as they would be exported and keeps them if they are the best."""
        losses = self.validation.measure(self.trainer.plain, rounded(weights))
        if losses["all"] < self.best_loss:
            self.best = {name: value.detach().clone() for name, value in weights.items()}
            self.best_loss, self.best_kind = losses["all"], f"{kind} at step {self.rows[-1]['step']}"
        return losses

    def add(self, step: int, progress: float) -> None:
        """A row of the curve."""
        trainer, settings = self.trainer, self.trainer.settings
        cross, balance = trainer.train_loss()
        seconds, tokens = time.time() - self.start, step * settings.batch * settings.length
        row = {"model": self.name, "seconds": round(seconds, 1), "step": step, "tokens": tokens,
               "epochs": round(trainer.batches.progress(), 3), "rate": round(trainer.rate(step, progress), 4),
               "train_loss": round(cross, 5), "balance": round(balance, 4)}
        self.rows.append(row)
        losses = self.consider("average", trainer.optimiser.averaged())
        row |= {f"valid_{name}": round(loss, 5) for name, loss in losses.items()}
        log(f"{row} {tokens / seconds:.0f} tokens/s")

    def summary(self) -> dict:
        """What training.json says of this model."""
        return {"settings": asdict(self.trainer.settings), "best": self.best_kind, "best_loss": self.best_loss,
                "last_row": self.rows[-1]}


def write_results(records: list[Record], spec: ModelSpec, folder: Path) -> None:
    """The best weights of all models, the curves and the settings."""
    records = [record for record in records if record.best is not None]
    best = min(records, key=lambda record: record.best_loss)
    write_checkpoint(best.best, spec, folder)
    rows = [row for record in records for row in record.rows if "valid_all" in row]
    with (folder / "curve.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (folder / "training.json").write_text(json.dumps(
        {"model": asdict(spec), "exported": f"{best.name} {best.best_kind}",
         **{record.name: record.summary() for record in records}}, indent=2) + "\n", encoding="utf-8")
    log(f"exported: {best.name}, {best.best_kind}, perplexity {math.exp(best.best_loss):.4f}")


def train(record: Record, seconds: float, evaluations: int) -> None:
    """Steps until the time is up, with evaluations at even intervals."""
    trainer, step, done = record.trainer, 0, 0
    trainer.settings = replace(trainer.settings, seconds=round(seconds, 1))
    log(f"{record.name}: training for {seconds:.0f} s")
    record.start = time.time()
    while (progress := (time.time() - record.start) / seconds) < 1:
        trainer.advance(step, progress)
        step += 1
        if progress * evaluations >= done + 1 and progress < 1 - 0.5 / evaluations:
            done += 1
            record.add(step, progress)
    record.add(step, 1.0)
    losses = record.consider("last", trainer.weights)
    log(f"without averaging: {losses}; best: {record.best_kind}, perplexity {math.exp(record.best_loss):.4f}")
    trainer.batches.worker.shutdown(wait=False, cancel_futures=True)


class Run:
    """One or two models trained one after the other within the time."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments, self.device, self.spec = arguments, torch.device(arguments.device), ModelSpec()
        self.pieces = dict(np.load(arguments.pieces))
        base = TrainSpec(seconds=arguments.seconds, batch=arguments.batch, length=arguments.length)
        self.settings = {"model": base}
        if arguments.teacher_seconds:
            self.settings = {"teacher": replace(base, edge_dropout=0.15),
                             "student": replace(base, seed=2, soft_share=0.6, word_repeats=2)}
        self.batches: dict[str, Batches] = {}
        self.validation = Validation(self.pieces, self.device)
        self.records: list[Record] = []

    def left(self) -> float:
        """Seconds until the training must have ended."""
        return self.arguments.end - (time.time() - BEGIN)

    def begin_batches(self, name: str) -> Batches:
        """A model's batches; the first epoch is made in the background."""
        if name not in self.batches:
            self.batches[name] = Batches(self.pieces, self.settings[name], self.device)
        return self.batches[name]

    def build(self, name: str, teacher: Teacher | None = None) -> Record:
        """A fresh model, ready to train."""
        trainer = Trainer(self.spec, self.settings[name], self.begin_batches(name), self.device,
                          not self.arguments.plain, teacher)
        self.validation.measure(trainer.plain, trainer.weights)  # loads what it needs, outside the timed part
        return Record(name, trainer, self.validation)

    def train(self, record: Record, seconds: float) -> None:
        """Trains, and writes what is best so far, also if the training broke off."""
        self.records.append(record)
        try:
            train(record, seconds, self.arguments.evaluations)
        finally:
            if any(other.best is not None for other in self.records):
                write_results(self.records, self.spec, self.arguments.output)

    def teacher(self) -> Teacher:
        """The first model, which may have at most 45% of the time left."""
        record = self.build("teacher")
        self.begin_batches("student")
        self.train(record, min(self.arguments.teacher_seconds, 0.45 * self.left()))
        network = Network(self.spec, record.trainer.network.dtype)
        return Teacher(network if self.arguments.plain else network.compile(), record.best)

    def all(self) -> None:
        name = list(self.settings)[-1]
        teacher = self.teacher() if name == "student" else None
        record = self.build(name, teacher)
        seconds = min(self.arguments.seconds, self.left())
        if seconds > 0.05 * self.arguments.seconds:
            self.train(record, seconds)
        else:
            log(f"no time for the {name}: {seconds:.0f} s")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pieces", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--teacher-seconds", type=float, default=0, help="of training a teacher first")
    parser.add_argument("--seconds", type=float, default=440, help="of training, compilation not counted")
    parser.add_argument("--end", type=float, default=math.inf, help="training ends by this second of the process")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--evaluations", type=int, default=10, help="of each model")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--plain", action="store_true", help="do not compile")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    arguments.output.mkdir(parents=True, exist_ok=True)
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    run = Run(arguments)
    run.all()
    if run.device.type == "cuda":
        log(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")


if __name__ == "__main__":
    main()
