# SPDX-License-Identifier: Apache-2.0
"""Trains the demo model's tokenizer and writes its files.

    python tokenizer.py CORPUS_FOLDER OUTPUT_FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from corpus import read_documents, split_kinds
from spec import ADDED_TOKENS, BASE_IDS, END_OF_TEXT, IM_END, VOCAB_ROWS, added_id

# Qwen3.5's split: letters with their marks, single digits, punctuation runs, line ends, spaces.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def blank_tokenizer() -> Tokenizer:
    """The pipeline of Qwen3.5's tokenizer around an empty byte-level BPE."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    return tokenizer


def train_tokenizer(texts: list[str]) -> Tokenizer:
    """A tokenizer whose merges come from the texts, with the added tokens behind them."""
    tokenizer = blank_tokenizer()
    trainer = trainers.BpeTrainer(vocab_size=BASE_IDS, min_frequency=2, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() != BASE_IDS:
        raise SystemExit(f"the text gave {tokenizer.get_vocab_size()} ids, not {BASE_IDS}")
    for text, special in ADDED_TOKENS:
        tokenizer.add_tokens([AddedToken(text, special=special, normalized=False)])
    if tokenizer.token_to_id("</think>") != added_id("</think>") or added_id("</think>") >= VOCAB_ROWS:
        raise SystemExit("the added tokens did not get the expected ids")
    return tokenizer


def config_json(template: str) -> dict:
    """tokenizer_config.json."""
    added = {str(added_id(text)): {"content": text, "lstrip": False, "normalized": False, "rstrip": False,
                                   "single_word": False, "special": special} for text, special in ADDED_TOKENS}
    return {
        "add_bos_token": False,
        "add_prefix_space": False,
        "added_tokens_decoder": added,
        "additional_special_tokens": [text for text, special in ADDED_TOKENS[1:] if special],
        "bos_token": None,
        "chat_template": template,
        "clean_up_tokenization_spaces": False,
        "eos_token": IM_END,
        "errors": "replace",
        "model_max_length": 2048,
        "pad_token": END_OF_TEXT,
        "split_special_tokens": False,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": None,
    }


def write_files(tokenizer: Tokenizer, folder: Path) -> None:
    """tokenizer.json, tokenizer_config.json and chat_template.jinja."""
    folder.mkdir(parents=True, exist_ok=True)
    text = (Path(__file__).parent / "chat_template.jinja").read_text(encoding="utf-8")
    template = text.split("\n", 1)[1].rstrip("\n")  # without the licence line
    saved = json.loads(tokenizer.to_str())
    saved["decoder"] = saved["post_processor"]  # the library writes default flags, which a decoder never reads
    compact = json.dumps(saved, ensure_ascii=False, separators=(",", ":"))
    (folder / "tokenizer.json").write_text(compact + "\n", encoding="utf-8")
    config = json.dumps(config_json(template), indent=2, ensure_ascii=False)
    (folder / "tokenizer_config.json").write_text(config + "\n", encoding="utf-8")
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


def main() -> None:
    corpus, folder = Path(sys.argv[1]), Path(sys.argv[2])
    stories, turns = split_kinds(read_documents(corpus / "train.txt.xz"))
    texts = stories + [text for turn in turns for text in (turn.question, turn.answer)]
    write_files(train_tokenizer(texts), folder)


if __name__ == "__main__":
    main()
