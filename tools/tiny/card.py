# SPDX-License-Identifier: Apache-2.0
"""Writes the model card: card.md with its figures filled in, and the samples if there are any.

    python card.py CHECKPOINT_FOLDER [SAMPLES.json]
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from string import Template


def figures(folder: Path) -> dict[str, str]:
    """The numbers named in card.md."""
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    training = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    with (folder / "curve.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    step = training["exported"].split()[-1]
    best = next(row for row in rows if row["step"] == step)
    values = {"windows": str(metrics["windows"]), "exported_step": step, "steps": rows[-1]["step"],
              "exported_epochs": f"{float(best['epochs']):.1f}", "epochs": f"{float(rows[-1]['epochs']):.1f}",
              "exported_tokens": f"{int(best['tokens']) / 1e6:.0f}", "tokens": f"{int(rows[-1]['tokens']) / 1e6:.0f}",
              "minutes": f"{float(rows[-1]['seconds']) / 60:.1f}",
              "rate": f"{int(rows[-1]['tokens']) / float(rows[-1]['seconds']) / 1e6:.2f}"}
    for kind in ("all", "story", "chat"):
        part = metrics[kind]
        values |= {f"{kind}_tokens": f"{part['tokens']:,}", f"{kind}_perplexity": f"{part['perplexity']:.4f}",
                   f"{kind}_nll": f"{part['nll_mean']:.6f}", f"{kind}_bits": f"{part['bits_per_byte']:.4f}"}
    keys = ("step", "epochs", "rate", "train_loss", "valid_all", "valid_story", "valid_chat")
    values["curve"] = "\n".join("| " + " | ".join(row[key] for key in keys) + " |" for row in rows)
    return values


def sample_text(path: Path | None) -> str:
    """The samples as quoted blocks."""
    if path is None:
        return "_None yet._"
    blocks = []
    for sample in json.loads(path.read_text(encoding="utf-8")):
        manner = "sampled" if sample["sampled"] else "greedy"
        quoted = "\n".join(f"> {line}".rstrip() for line in sample["text"].strip().split("\n"))
        blocks.append(f"**{sample['kind'].capitalize()}, {manner}:** {sample['prompt'].strip()}\n\n{quoted}")
    return "\n\n".join(blocks)


def main() -> None:
    folder = Path(sys.argv[1])
    text = (Path(__file__).parent / "card.md").read_text(encoding="utf-8")
    template = Template(text.split("\n", 1)[1])  # without the licence line, which must not precede the card's header
    samples = sample_text(Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    (folder / "README.md").write_text(template.substitute(figures(folder), samples=samples), encoding="utf-8")


if __name__ == "__main__":
    main()
