#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Multiple-choice log-likelihoods through `liverow score` and through transformers.

  tools/evals/multiple_choice.py MODEL TEXT [--items 200] [--liverow build/release/liverow]

An item is a passage of TEXT, what follows it, and three continuations from elsewhere; the answer is
the choice of the largest log-likelihood (the sum over its tokens), as evaluation harnesses score.
Contexts and continuations are tokenised as they do: as one text, the spaces between the two belonging
to the continuation. Both programs compute in float32; a second run of liverow in bf16 is reported.
Exit status 1 unless every log-likelihood agrees to 1e-4 a token and every answer is the same.
Needs torch and transformers with Qwen3.5.
"""
import argparse
import json
import random
import subprocess
import sys

import torch
import transformers

CONTEXT_WORDS, CHOICE_WORDS, CHOICES = 48, 8, 4
LIMIT = 1e-4  # of a token's log-likelihood


def make_items(path, count):
    with open(path, encoding="utf-8") as stream:
        words = stream.read().split()
    draw = random.Random(7)
    span = CONTEXT_WORDS + CHOICE_WORDS
    if len(words) < span * (CHOICES + 1):
        sys.exit(f"{path}: expected at least {span * (CHOICES + 1)} words, got {len(words)}")
    items = []
    for _ in range(count):
        at = draw.randrange(len(words) - span)
        choices = [words[at + CONTEXT_WORDS:at + span]]
        for _ in range(CHOICES - 1):
            other = draw.randrange(len(words) - CHOICE_WORDS)
            choices.append(words[other:other + CHOICE_WORDS])
        items.append((" ".join(words[at:at + CONTEXT_WORDS]), [" " + " ".join(c) for c in choices]))
    return items


def liverow(program, model, items, precision):
    lines = "".join(json.dumps({"context": context, "continuation": choice}) + "\n"
                    for context, choices in items for choice in choices)
    done = subprocess.run([program, "score", model, "--special", "--precision", precision], input=lines,
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"liverow score failed: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def reference(model_path, items):
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float32).eval()
    answers = []
    for context, choices in items:
        before = tokenizer(context, add_special_tokens=False)["input_ids"]
        for choice in choices:
            ids = tokenizer(context + choice, add_special_tokens=False)["input_ids"]
            with torch.no_grad():
                logits = model(torch.tensor([ids])).logits[0].double()
            # Padding rows of the vocabulary cannot be drawn and have no probability.
            rows = torch.log_softmax(logits[:, :len(tokenizer)], dim=-1)
            scored = range(len(before) - 1, len(ids) - 1)
            answers.append({"logprob": sum(rows[i, ids[i + 1]].item() for i in scored),
                            "tokens": len(scored),
                            "greedy": all(rows[i].argmax().item() == ids[i + 1] for i in scored)})
    return answers


def chosen(answers):
    return [max(range(CHOICES), key=lambda c: answers[i + c]["logprob"])
            for i in range(0, len(answers), CHOICES)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--liverow", default="build/release/liverow")
    options = parser.parse_args()
    items = make_items(options.text, options.items)
    theirs = reference(options.model, items)
    right = sum(c == 0 for c in chosen(theirs))
    print(f"transformers float32: {right} of {len(items)} right ({100 * right / len(items):.1f} %)")
    failed = False
    for precision in ("f32", "bf16"):
        ours = liverow(options.liverow, options.model, items, precision)
        worst = max(abs(a["logprob"] - b["logprob"]) / b["tokens"] for a, b in zip(ours, theirs))
        tokens = sum(a["tokens"] != b["tokens"] for a, b in zip(ours, theirs))
        greedy = sum(a["greedy"] != b["greedy"] for a, b in zip(ours, theirs))
        other = sum(a != b for a, b in zip(chosen(ours), chosen(theirs)))
        right = sum(c == 0 for c in chosen(ours))
        print(f"liverow {precision}: {right} of {len(items)} right, {other} other answers; largest difference "
              f"{worst:.2e} a token; {tokens} other token counts, {greedy} other greedy flags")
        if precision == "f32":
            failed = worst > LIMIT or other or tokens or greedy
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
