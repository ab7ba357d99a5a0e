# SPDX-License-Identifier: Apache-2.0
"""The card's samples: ten stories and ten answers by liverow, as JSON; nothing is chosen or edited.

    python sample.py LIVEROW CHECKPOINT_FOLDER OUTPUT.json

LIVEROW is the program (build/release/liverow). Stories are drawn at temperature 0.7 with seeds 1 to 10; answers are
greedy.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

STORY_PROMPTS = [
    "Once upon a time there was a king who had three daughters.",
    "The Fox and the Crow\n\n",
    '"I do not believe in ghosts," said the old doctor,',
    "It was a dark and stormy night, and the ship",
    "The children ran down to the garden, and there, under the apple tree, they found",
    "The Magic Lamp\n\nThere was once a poor tailor",
    "When the train stopped at the little station, Anne",
    "The wolf looked at the boy, and the boy looked at the wolf.",
    '"My dear Watson," said Holmes,',
    "Early in the morning the old woman went to the well,",
]
CHAT_PROMPTS = [
    "What does the word 'brave' mean?",
    "Give me a synonym for 'happy'.",
    "What is the opposite of 'cold'?",
    "Use the word 'river' in a sentence.",
    "Is a river a kind of stream?",
    "What sort of thing is a violin?",
    "What does the verb 'gather' mean?",
    "Give me an example of the word 'narrow'.",
    "Which word means the same as 'big'?",
    "Tell me a story.",
]
CHAT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


def run(liverow: str, folder: str, prompt: str, *flags: str) -> str:
    """What the program prints for a prompt."""
    command = [liverow, "run", folder, "-q", "-n", "220", "-p", prompt, *flags]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    liverow, folder, output = sys.argv[1:]
    samples = []
    for seed, prompt in enumerate(STORY_PROMPTS, 1):
        text = run(liverow, folder, prompt, "--temp", "0.7", "--seed", str(seed))
        samples.append({"kind": "story", "prompt": prompt, "sampled": True, "text": text})
    for prompt in CHAT_PROMPTS:
        text = run(liverow, folder, CHAT.format(prompt), "--special").replace("<|im_end|>", "")
        samples.append({"kind": "chat", "prompt": prompt, "sampled": False, "text": text})
    Path(output).write_text(json.dumps(samples, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
