# SPDX-License-Identifier: Apache-2.0
"""Perplexity of the exported checkpoint by transformers in float32; writes metrics.json into its folder.

The measure: the held-out documents in file order, question/answer documents as one-turn chats, each document followed
by <|endoftext|>, are encoded as one stream. The stream is cut into consecutive windows of 512 ids (the last is
shorter). Each window is run from an empty state; its first id is not scored, every other id is. Perplexity is the
exponential of the mean negative log-likelihood over all scored ids. A token counts for the kind of document it stands in.

    python evaluate.py CHECKPOINT_FOLDER PIECES.npz [--windows N]
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from spec import ADDED_TOKENS, BASE_IDS, WINDOW

KINDS = ("story", "chat")


def load(folder: Path, device: torch.device) -> torch.nn.Module:
    """The model in plain float32 arithmetic."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                 experts_implementation="eager")
    return model.to(device).eval()


@torch.no_grad()
def score(model: torch.nn.Module, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Negative log-likelihood of every id but the first of each row; also with the padding rows masked."""
    logits, targets = model(ids, use_cache=False).logits[:, :-1].double(), ids[:, 1:, None]
    hit = logits.gather(-1, targets).squeeze(-1)
    return logits.logsumexp(-1) - hit, logits[..., :BASE_IDS + len(ADDED_TOKENS)].logsumexp(-1) - hit


def score_windows(model: torch.nn.Module, ids: Tensor, window: int, batch: int) -> tuple[list[Tensor], list[Tensor]]:
    """The scores of each window, without and with the padding rows masked."""
    full = len(ids) // window
    groups = list(ids[:full * window].view(full, window).split(batch)) + [ids[full * window:][None]]
    results = [score(model, group) for group in groups if group.shape[1] > 1 and len(group)]
    return [row.cpu() for plain, _ in results for row in plain], [row.cpu() for _, masked in results for row in masked]


def summary(nll: np.ndarray, sizes: np.ndarray) -> dict:
    """Figures of a set of scored tokens; special tokens count as no bytes."""
    return {"tokens": len(nll), "bytes": int(sizes.sum()), "nll_sum": float(nll.sum()), "nll_mean": float(nll.mean()),
            "perplexity": math.exp(nll.mean()), "bits_per_byte": float(nll.sum() / math.log(2) / sizes.sum())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pieces", type=Path)
    parser.add_argument("--windows", type=int, default=0, help="only the first N; prints, writes nothing")
    parser.add_argument("--window", type=int, default=WINDOW)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()

    pieces = np.load(arguments.pieces)
    ids, kinds, sizes = pieces["valid"].astype(np.int64), pieces["valid_kinds"], pieces["token_bytes"]
    if arguments.windows:
        ids, kinds = ids[:arguments.windows * arguments.window], kinds[:arguments.windows * arguments.window]
    device = torch.device(arguments.device)
    plain, masked = score_windows(load(arguments.folder, device), torch.from_numpy(ids).to(device), arguments.window,
                                  arguments.batch)
    scored = np.arange(len(ids)) % arguments.window != 0
    nll, kinds, size = torch.cat(plain).numpy(), kinds[scored], sizes[ids[scored]]
    result = {
        "definition": " ".join(__doc__.split("The measure: ")[1].split("    python")[0].split()),
        "arithmetic": "float32 on the stored weights by transformers; softmax over all rows, summed in float64",
        "window": arguments.window,
        "windows": len(plain),
        "stream_ids": len(ids),
        "all": summary(nll, size),
        **{name: summary(nll[kinds == i], size[kinds == i]) for i, name in enumerate(KINDS)},
        "perplexity_with_padding_rows_masked": math.exp(torch.cat(masked).mean().item()),
        "window_nll_sums": [round(row.sum().item(), 6) for row in plain],
        "first_window_ids": ids[:arguments.window].tolist(),
        "first_window_nll": [round(value, 6) for value in plain[0].tolist()],
    }
    if not arguments.windows and arguments.window == WINDOW:
        (arguments.folder / "metrics.json").write_text(json.dumps(result) + "\n", encoding="utf-8")
    print(json.dumps({k: v for k, v in result.items() if not isinstance(v, (list, str))}, indent=1))


if __name__ == "__main__":
    main()
