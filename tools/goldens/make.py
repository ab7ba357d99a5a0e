#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the goldens: what transformers computes in float32, for the C++ tests to agree with.

    make.py --synth FOLDER --tiny models/tiny --out tests/goldens [--models NAME...]

FOLDER holds a synthetic checkpoint for each random model (prepare.sh makes them). README.md describes the
files that come out.
"""

import argparse
import json
import platform
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file

from counter_rng import CounterRng
from oracle import Probe, exact_float32, forward, layer_states, load_model, router_margin
from weights import check_plan, digest, stored_tensors

TRAINED_TOKENS = 200
LENGTHS = (1, 2, 3, 63, 64, 65)
COLUMNS = 64
ROWS = (0, 1, 2, 62, 63, 64, 128, 199)
PROJECTIONS = 16
MIN_MARGIN = 1e-4
MAX_ATTEMPTS = 100
# Two devices sum in different orders; anything above this is a lower precision.
DEVICE_BOUND = 1e-4


def projections(values):
    """float32 [17]: sums of +-x for 16 rows of signs, then the Euclidean norm.

    Element i of row j has the sign + where bit 63 of CounterRng("projection", 0) at j * 2^32 + i is 0.
    """
    flat = values.numpy().astype(np.float64).ravel()
    rng = CounterRng("projection", 0)
    sums = []
    for row in range(PROJECTIONS):
        bits = rng.bits(row << 32, flat.size)
        sums.append(np.where(bits >> np.uint64(63) == 0, flat, -flat).sum())
    return np.array([*sums, np.sqrt((flat * flat).sum())], dtype=np.float32)


def row_projections(rows):
    """projections() of every row of [T, D]: float32 [T, 17]."""
    return np.stack([projections(row) for row in rows])


def state_projections(runs, layers):
    """{layer.name: float32 [runs, lengths, 17]} of runs[r][length] = layer_states()."""
    return {
        f"layer{i}.{name}": np.stack([[projections(states[i][name]) for states in run] for run in runs])
        for i in range(layers)
        for name in runs[0][0][i]
    }


def prefill_states(model, ids, lengths):
    return [layer_states(forward(model, ids[:length])[1], model.config) for length in lengths]


def decode(model, ids, lengths):
    """Token by token: logits [T, V], and the states at the lengths."""
    cache, logits, states = None, [], []
    for position, token in enumerate(ids):
        row, cache = forward(model, [token], cache)
        logits.append(row)
        if position + 1 in lengths:
            states.append(layer_states(cache, model.config))
    return torch.cat(logits), states


def golden_of(model, ids, key):
    """All golden tensors of one prompt, names starting with `key`."""
    lengths = [n for n in LENGTHS if n < len(ids)] + [len(ids)]
    rows = [r for r in ROWS if r < len(ids)]
    with Probe(model) as probe:
        logits, _ = forward(model, ids)
    columns = np.sort(CounterRng("columns", 0).bits(0, 4096) % np.uint64(logits.shape[1]))
    columns = np.random.default_rng(0).permutation(np.unique(columns))[:COLUMNS]
    columns = np.sort(columns).astype(np.int32)
    stepped, stepped_states = decode(model, ids, lengths)
    tensors = {
        "ids": np.array(ids, dtype=np.int32),
        "columns": columns,
        "rows": np.array(rows, dtype=np.int32),
        "lengths": np.array(lengths, dtype=np.int32),
        "prefill_logits": logits[:, columns].numpy(),
        "decode_logits": stepped[:, columns].numpy(),
        "row_logits": logits[rows].numpy(),
        "logit_std": logits.std(dim=1, correction=0).numpy(),
        "logit_lse": logits.logsumexp(dim=1).numpy(),
        "hidden": np.stack([row_projections(hidden) for hidden in probe.hidden]),
    }
    runs = [prefill_states(model, ids, lengths), stepped_states]
    tensors |= state_projections(runs, len(probe.hidden))
    figures = {"prefill_vs_decode": relative(logits, stepped, logits)["max"]}
    return {f"{key}.{name}": np.ascontiguousarray(value) for name, value in tensors.items()}, logits, figures


def relative(a, b, reference):
    """Largest and root-mean-square |a - b| over the standard deviation of the reference's row."""
    scaled = (a - b).abs() / reference.std(dim=1, correction=0, keepdim=True)
    return {"max": float(scaled.max()), "rms": float(scaled.square().mean().sqrt())}


def bf16_figures(exact, rounded, columns):
    """How far transformers in bfloat16 is from transformers in float32."""
    p, q = exact.double().log_softmax(dim=1), rounded.double().log_softmax(dim=1)
    inside = exact.std(dim=1, correction=0, keepdim=True)
    scaled = ((exact - rounded).abs() / inside)[:, columns]
    return {
        "all": relative(exact, rounded, exact),
        # The median over positions does not hang on the few where a rounding flipped a route.
        "columns": {
            "max": float(scaled.max()),
            "rms": float(scaled.square().mean().sqrt()),
            "median_row_rms": float(scaled.square().mean(dim=1).sqrt().median()),
        },
        "top1": float((exact.argmax(dim=1) == rounded.argmax(dim=1)).double().mean()),
        "mean_kl": float((p.exp() * (p - q)).sum(dim=1).mean()),
    }


def random_models():
    """{name: tokens of its prompt} of tests/goldens/models.txt."""
    text = (Path(__file__).parent / "../../tests/goldens/models.txt").read_text()
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {name: int(tokens) for name, tokens, *_ in lines}


def random_prompts(model, tokens):
    """Candidate prompts for a random model, by name."""
    vocab = np.uint64(model.config.vocab_size)
    draws = (CounterRng(f"prompt {attempt}", 0).bits(0, tokens) % vocab for attempt in range(MAX_ATTEMPTS))
    return {"random": ([int(v) for v in ids] for ids in draws)}


def trained_prompts(folder):
    """Candidates from prompts.json, through the checkpoint's own tokenizer and chat template."""
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    source = json.loads((Path(__file__).parent / "prompts.json").read_text())
    text = tokenizer(source["text"], add_special_tokens=False)["input_ids"]
    starts = range(0, len(text) - TRAINED_TOKENS, 7)

    def chats():
        for question in source["questions"]:
            turns = [*source["turns"], {"role": "user", "content": question}]
            rendered = tokenizer.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True, enable_thinking=False
            )
            yield tokenizer(rendered, add_special_tokens=False)["input_ids"][:TRAINED_TOKENS]

    return {"text": (text[s : s + TRAINED_TOKENS] for s in starts), "chat": chats()}


def draw(model, candidates):
    """The first prompt whose router margins are all large enough, its number and its margin."""
    per_token = getattr(model.config, "num_experts_per_tok", 0)
    for attempt, ids in enumerate(candidates):
        with Probe(model) as probe:
            forward(model, ids)
        margin = router_margin(probe, per_token)
        if margin >= MIN_MARGIN:
            return ids, attempt, margin
    raise RuntimeError(f"no prompt with router margins of {MIN_MARGIN} found")


def make(folder, out, device, tokens=None):
    """One model: golden.safetensors and meta.json in `out`. Random models have prompts of `tokens` ids."""
    tensors = stored_tensors(folder)
    plan_path = Path(folder) / "plan.json"
    plan = json.loads(plan_path.read_text()) if plan_path.exists() else None
    if plan:
        check_plan(tensors, plan)
    model = load_model(folder, tensors, torch.float32, device)
    half = load_model(folder, tensors, torch.bfloat16, device)
    reference = load_model(folder, tensors, torch.float32, "cpu") if device != "cpu" else None
    golden, prompts = {}, {}
    for key, candidates in (random_prompts(model, tokens) if plan else trained_prompts(folder)).items():
        ids, attempt, margin = draw(model, candidates)
        values, logits, figures = golden_of(model, ids, key)
        golden |= values
        if reference is not None:
            figures["device_vs_cpu"] = relative(logits, forward(reference, ids)[0], logits)["max"]
            if figures["device_vs_cpu"] > DEVICE_BOUND:
                raise RuntimeError(f"{folder}: {device} is not computing in float32: {figures}")
        figures["bf16"] = bf16_figures(logits, forward(half, ids)[0], values[f"{key}.columns"])
        prompts[key] = {
            "tokens": len(ids),
            "attempt": attempt,
            "router_margin": margin if np.isfinite(margin) else None,
            "logit_std": float(logits.std(dim=1, correction=0).mean()),
            **figures,
        }
    name = torch.cuda.get_device_name() if device != "cpu" else platform.machine()
    meta = {
        "seed": plan["seed"] if plan else None,
        "weights": digest(tensors),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "device": f"{device} ({name})",
        "prompts": prompts,
    }
    out.mkdir(parents=True, exist_ok=True)
    save_file(golden, out / "golden.safetensors")
    (out / "golden.safetensors").chmod(0o644)
    (out / "meta.json").write_text(json.dumps(meta, indent=2) + "\n")
    return meta


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--synth", type=Path, required=True, help="folder of the random models' checkpoints")
    parser.add_argument("--tiny", type=Path, help="folder of the trained model")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", nargs="*", help="random models to make; all when left out")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    exact_float32()
    jobs = [
        (options.synth / name, name, tokens)
        for name, tokens in random_models().items()
        if options.models is None or name in options.models
    ]
    if options.tiny:
        jobs.append((options.tiny, "tiny", None))
    for folder, name, tokens in jobs:
        meta = make(folder, options.out / name, options.device, tokens)
        print(name, json.dumps(meta["prompts"]), flush=True)
    total = sum(path.stat().st_size for path in options.out.rglob("golden.safetensors"))
    print(f"all goldens: {total / 2**20:.2f} MiB")
    return 0 if total <= 4 << 20 else 1


if __name__ == "__main__":
    sys.exit(main())
