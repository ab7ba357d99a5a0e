#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what `liverow quantize` wrote: by own arithmetic, by compressed-tensors, and in transformers.

  liverow quantize models/tiny OUT --format nvfp4 --json > OUT.json
  tools/evals/quantized.py models/tiny OUT --report OUT.json

1. Dequantises every tensor with tools/goldens/weights.py, and recomputes the errors of each module: they
   must be those of the report to 1e-5 of the value (1e-8 for the cosine).
2. compressed-tensors files: the library's own decompression of every matrix must give the same values, to
   the rounding of the type it returns.
3. Loads the folder in transformers as a user would, and compares its logits with those of the float32
   oracle (tools/goldens/oracle.py) over the dequantised weights. The bound is what rounding the weights of
   that oracle to the type transformers computes in costs, times four. What transformers cannot load here is
   said, and is no failure with --may-not-load.

Needs torch, transformers with Qwen3.5, and compressed-tensors for its flavor. Exit status 1 on a failure.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "goldens"))
from oracle import exact_float32, forward, load_model  # noqa: E402
from weights import dequantise, model_state, stored_tensors  # noqa: E402

PROMPT = [2484, 258, 2560, 13, 260, 300, 1024, 77, 512, 9, 31, 1999]  # folded into the vocabulary
FUSED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "in_proj_qkvz": ("in_proj_qkv", "in_proj_z"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}


def parts_of(module, state):
    """The tensors of a report's module: of a fused weight, all; of experts, the stack."""
    name = "model." + module
    if name in state:
        return [state[name]]
    scope, leaf = name.rsplit(".", 1)
    return [state[f"{scope}.{part}.weight"] for part in FUSED.get(leaf, (leaf,))]


def check_report(report, plain, quantised):
    """Failures: modules whose errors differ from the report's."""
    failures = []
    for module in report["modules"]:
        w = torch.cat([part.flatten() for part in parts_of(module["name"], plain)]).double()
        v = torch.cat([part.flatten() for part in parts_of(module["name"], quantised)]).double()
        rms = float((w - v).norm() / w.norm())
        cosine = float(w @ v / (w.norm() * v.norm()))
        largest = float((w - v).abs().max())
        error = module["error"]
        same = (
            abs(rms - error["relative_rms"]) <= 1e-5 * rms
            and abs(cosine - error["cosine"]) <= 1e-8
            and abs(largest - error["max_abs"]) <= 1e-5 * largest
            and w.numel() == error["elements"]
        )
        if not same:
            failures.append(f"{module['name']}: rms {rms}, cosine {cosine}, max {largest}; the report says {error}")
    print(f"report: {len(report['modules'])} modules recomputed, {len(failures)} differ")
    return failures


def check_library(folder, tensors):
    """Failures: matrices that compressed-tensors decompresses to other values."""
    config = json.loads((folder / "config.json").read_text())["quantization_config"]
    if config["quant_method"] != "compressed-tensors":
        return []
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationConfig

    scheme = QuantizationConfig.model_validate(config).config_groups["group_0"]
    compressor = BaseCompressor.get_value_from_registry(config["format"])
    failures, count = [], 0
    for name in tensors:
        if not name.endswith((".weight_packed", ".weight")) or tensors[name].element_size() != 1:
            continue
        base = name.rsplit(".", 1)[0]
        local = {key[len(base) + 1 :]: tensors[key] for key in tensors if key.startswith(base + ".")}
        theirs = compressor.decompress(local, scheme)["weight"]
        ours = dequantise(name, tensors)
        # Scale, quotient and product are rounded to the library's type.
        unit = torch.finfo(theirs.dtype).eps / 2
        off = float(((theirs.float() - ours).abs() - 4 * unit * ours.abs()).max())
        count += 1
        if off > 0 or theirs.shape != ours.shape:
            failures.append(f"{name}: compressed-tensors differs by {off} beyond four roundings of {theirs.dtype}")
    print(f"compressed-tensors: {count} matrices decompressed, {len(failures)} differ")
    return failures


def check_transformers(folder, tensors, may_not_load):
    """Failures: logits further from the oracle than the weights' rounding explains."""
    ids = None
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.bfloat16, attn_implementation="eager"
        ).eval()
        vocabulary = model.config.get_text_config().vocab_size
        ids = [token % vocabulary for token in PROMPT]
        with torch.no_grad():
            theirs = model(torch.tensor([ids])).logits[0].float()
    except Exception as error:  # whatever their loading raises, it is their word on this file
        reason = " ".join(str(error).split())[:300]
        print(f"transformers {transformers.__version__}: does not load on a CPU: {type(error).__name__}: {reason}")
        return [] if may_not_load else [f"transformers does not load {folder}"]
    oracle = load_model(folder, tensors, torch.float32, "cpu")
    exact = forward(oracle, ids)[0]
    rounded = forward(oracle.to(torch.bfloat16), ids)[0]
    scale = exact.std(dim=1, correction=0)
    off = float(((theirs - exact).abs().max(dim=1).values / scale).max())
    bound = 4 * float(((rounded - exact).abs().max(dim=1).values / scale).max())
    agree = float((theirs.argmax(1) == exact.argmax(1)).double().mean())
    print(f"transformers {transformers.__version__}: logits off by {off:.4f} of their deviation, bound {bound:.4f}, top-1 {agree:.2f}")
    return [] if off <= bound else [f"transformers: logits off by {off}, bound {bound}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plain", type=Path, help="the folder that was quantised")
    parser.add_argument("folder", type=Path, help="the folder that was written")
    parser.add_argument("--report", type=Path, help="what --json printed")
    parser.add_argument("--may-not-load", action="store_true", help="transformers need not load it")
    options = parser.parse_args()
    exact_float32()
    tensors = stored_tensors(options.folder)
    failures = []
    if options.report:
        plain = model_state(stored_tensors(options.plain))
        failures += check_report(json.loads(options.report.read_text()), plain, model_state(tensors))
    failures += check_library(options.folder, tensors)
    failures += check_transformers(options.folder, tensors, options.may_not_load)
    for failure in failures:
        print(f"FAILED {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
