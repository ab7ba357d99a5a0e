#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what `liverow quantize` wrote: by own arithmetic, by compressed-tensors, and in transformers.

  liverow quantize models/tiny OUT --format nvfp4 --json > OUT.json
  tools/evals/quantized.py models/tiny OUT --report OUT.json

1. Dequantises every tensor with tools/goldens/weights.py, and recomputes the errors of each module: they
   must be those of the report to 1e-5 of the value (1e-8 for the cosine).
2. compressed-tensors files: the library's own decompression of every matrix must give the same values, to
   the rounding of the type it returns.
3. Loads the folder in transformers as a user would, and compares its weights with the dequantised ones and
   its logits with those of the float32 oracle (tools/goldens/oracle.py) over them, with inputs in
   FP8 where transformers has them so. The bound is what the
   oracle loses in bfloat16, the type transformers computes in, times four.

What transformers 5.24 cannot do, on any device or on a CPU: ModelOpt files (no reader); compressed-tensors
FP8 blocks of routed experts (it multiplies codes and block scales without spreading them); compressed-tensors
NVFP4 of routed experts (it leaves the global factor out). --no-transformers checks those files alone.

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


def declared(folder):
    """The folder's quantization_config."""
    return json.loads((folder / "config.json").read_text())["quantization_config"]


def check_library(folder, tensors):
    """Failures: matrices that compressed-tensors decompresses to other values."""
    config = declared(folder)
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


def load_as_user(folder, ids):
    """transformers' model, and its logits [T, V] for the prompt (fewer ids for a smaller vocabulary)."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16, attn_implementation="eager"
    ).eval()
    with torch.no_grad():  # some weights are decompressed by the first run
        return model, model(torch.tensor([ids])).logits[0].float()


def check_weights(model, state):
    """Failures: weights that transformers loaded with other values than the file's."""
    wrong = []
    for name, value in model.state_dict().items():
        if name in state and value.shape == state[name].shape:
            off = (value.float() - state[name]).norm() / state[name].norm()
            if not off <= 0.004:  # bf16 rounds by 0.002 at most
                wrong.append(f"{name} (off by {off:.3g} of its norm)")
    print(f"transformers: {len(state)} weights loaded, {len(wrong)} differ {', '.join(wrong[:2])}")
    return [f"transformers loads {len(wrong)} weights with other values, first {wrong[0]}"] if wrong else []


def quantise_inputs(oracle, config, tensors):
    """FP8 inputs where compressed-tensors rounds them: at its linears, per token or per group of one."""
    activations = config.get("config_groups", {}).get("group_0", {}).get("input_activations")
    if not activations:
        return
    group = activations.get("group_size") or -1

    def rounded(_module, inputs):
        x = inputs[0].float()
        parts = x.unflatten(-1, (-1, x.shape[-1] if group < 0 else group))
        s = parts.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448
        return ((parts / s).to(torch.float8_e4m3fn).float() * s).flatten(-2).to(inputs[0].dtype)

    quantised = {
        "model.layers." + name.split("layers.", 1)[1]
        for name, tensor in tensors.items()
        if name.endswith(".weight") and tensor.dtype == torch.float8_e4m3fn
    }
    for name, module in oracle.named_modules():
        if name + ".weight" in quantised and isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(rounded)


def check_transformers(folder, tensors):
    """Failures: it does not load, loads other weights, or logits are further off than rounding explains."""
    state = model_state(tensors)
    vocabulary = state["model.embed_tokens.weight"].shape[0]
    ids = [token % vocabulary for token in PROMPT]
    print(f"transformers {transformers.__version__}")
    try:
        model, theirs = load_as_user(folder, ids)
    except Exception as error:  # whatever their loading raises, it is their word on this file
        return [f"transformers does not load it: {type(error).__name__}: {' '.join(str(error).split())[:200]}"]
    failures = check_weights(model, state)
    oracle = load_model(folder, tensors, torch.float32, "cpu")
    quantise_inputs(oracle, declared(folder), tensors)
    exact = forward(oracle, ids)[0]
    rounded = forward(oracle.to(torch.bfloat16), ids)[0]
    scale = exact.std(dim=1, correction=0)
    off = float(((theirs - exact).abs().max(dim=1).values / scale).max())
    bound = 4 * float(((rounded - exact).abs().max(dim=1).values / scale).max())
    agree = float((theirs.argmax(1) == exact.argmax(1)).double().mean())
    print(f"transformers: logits off by {off:.4f} of their deviation, bound {bound:.4f}, top-1 {agree:.2f}")
    return failures + ([] if off <= bound else [f"transformers: logits off by {off}, bound {bound}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plain", type=Path, help="the folder that was quantised")
    parser.add_argument("folder", type=Path, help="the folder that was written")
    parser.add_argument("--report", type=Path, help="what --json printed")
    parser.add_argument("--no-transformers", action="store_true", help="files alone, see below")
    options = parser.parse_args()
    exact_float32()
    tensors = stored_tensors(options.folder)
    failures = []
    if options.report:
        plain = model_state(stored_tensors(options.plain))
        failures += check_report(json.loads(options.report.read_text()), plain, model_state(tensors))
    failures += check_library(options.folder, tensors)
    if not options.no_transformers:
        failures += check_transformers(options.folder, tensors)
    for failure in failures:
        print(f"FAILED {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
