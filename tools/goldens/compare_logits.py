#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `liverow run --logits` against transformers, for any checkpoint folder of the family.

    liverow run MODEL --ids 1,2,3 -n 0 --precision f32 --logits out.npy
    compare_logits.py MODEL out.npy --ids 1,2,3

Prints per position the largest |difference| over the standard deviation of transformers' logits, the two
most likely tokens and the KL divergence, then a summary. Quantised weights (FP8, NVFP4) are compared by their
values: use --precision f32, which does not round activations either. Exit status 1 when --bound is exceeded.
"""

import argparse
import sys

import numpy as np
import torch

from oracle import exact_float32, forward, load_model
from weights import stored_tensors


def read_ids(options):
    """Token ids from --ids or from a file of numbers separated by commas or white space."""
    text = options.ids if options.ids else open(options.ids_file, encoding="utf-8").read()
    return [int(part) for part in text.replace(",", " ").split()]


def compare(theirs, ours):
    """Float arrays per position: scaled largest difference, KL(theirs || ours)."""
    scale = theirs.std(dim=1, correction=0)
    worst = (theirs - ours).abs().max(dim=1).values / scale
    p, q = theirs.double().log_softmax(dim=1), ours.double().log_softmax(dim=1)
    return worst.numpy(), (p.exp() * (p - q)).sum(dim=1).numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="checkpoint folder")
    parser.add_argument("logits", help="float32 [positions, V] from liverow")
    parser.add_argument("--ids", help="the prompt: 1,2,3")
    parser.add_argument("--ids-file", help="the same in a file")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of transformers")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--bound", type=float, help="largest allowed scaled difference")
    parser.add_argument("--quiet", action="store_true", help="the summary alone")
    options = parser.parse_args()
    if bool(options.ids) == bool(options.ids_file):
        parser.error("give either --ids or --ids-file")
    exact_float32()
    ids = read_ids(options)
    ours = torch.from_numpy(np.load(options.logits).astype(np.float32))
    if ours.shape[0] > len(ids):
        parser.error(f"{options.logits} has {ours.shape[0]} positions, the prompt {len(ids)} tokens")
    tensors = stored_tensors(options.model)
    model = load_model(options.model, tensors, getattr(torch, options.dtype), options.device)
    theirs = forward(model, ids)[0][: ours.shape[0]]
    worst, divergence = compare(theirs, ours)
    best, our_best = theirs.argmax(dim=1), ours.argmax(dim=1)
    if not options.quiet:
        print("position  token  max|diff|/std  KL         theirs  ours")
        for i, value in enumerate(worst):
            print(f"{i:8}  {ids[i]:5}  {value:13.3e}  {divergence[i]:9.2e}  {best[i]:6}  {our_best[i]:4}")
    agreement = float((best == our_best).double().mean())
    print(
        f"{len(worst)} positions: max {worst.max():.3e} (position {worst.argmax()}), median {np.median(worst):.3e}, "
        f"mean KL {divergence.mean():.3e}, top-1 agreement {agreement:.4f}"
    )
    finite = bool(np.isfinite(worst).all())
    return 0 if finite and (options.bound is None or worst.max() <= options.bound) else 1


if __name__ == "__main__":
    sys.exit(main())
