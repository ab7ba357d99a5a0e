# SPDX-License-Identifier: Apache-2.0
"""Ten stories and ten answers by transformers on the CPU, as JSON; nothing is chosen or edited.

    python sample.py CHECKPOINT_FOLDER OUTPUT.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

STORY_PROMPTS = [
    "Once upon a time there was a king who had three daughters.",
    "The Fox and the Crow\n\n",
    "\"I do not believe in ghosts,\" said the old doctor,",
    "It was a dark and stormy night, and the ship",
    "The children ran down to the garden, and there, under the apple tree, they found",
]
CHAT_PROMPTS = [
    "What does the word 'brave' mean?",
    "Give me a synonym for 'happy'.",
    "What is the opposite of 'cold'?",
    "Use the word 'river' in a sentence.",
    "Tell me a story.",
]


def complete(model, tokenizer, texts: list[str], sampled: bool) -> list[str]:
    """Continuations of the texts, run together with padding on the left."""
    batch = tokenizer(texts, add_special_tokens=False, padding=True, return_tensors="pt")
    torch.manual_seed(1)
    choice = {"do_sample": True, "temperature": 0.8, "top_k": 40, "top_p": 0.95} if sampled else {
        "do_sample": False, "temperature": None, "top_k": None, "top_p": None}
    with torch.no_grad():
        out = model.generate(batch["input_ids"], attention_mask=batch["attention_mask"], max_new_tokens=220, **choice)
    return tokenizer.batch_decode(out[:, batch["input_ids"].shape[1]:], skip_special_tokens=True)


def main() -> None:
    folder, output = Path(sys.argv[1]), Path(sys.argv[2])
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    chats = [tokenizer.apply_chat_template([{"role": "user", "content": prompt}], tokenize=False,
                                           add_generation_prompt=True) for prompt in CHAT_PROMPTS]
    samples = []
    for kind, prompts, texts in (("story", STORY_PROMPTS, STORY_PROMPTS), ("chat", CHAT_PROMPTS, chats)):
        for sampled in (False, True):
            for prompt, text in zip(prompts, complete(model, tokenizer, texts, sampled)):
                samples.append({"kind": kind, "prompt": prompt, "sampled": sampled, "text": text})
                print(f"--- {kind}, {'sampled' if sampled else 'greedy'}: {prompt}\n{text}\n", flush=True)
    output.write_text(json.dumps(samples, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
