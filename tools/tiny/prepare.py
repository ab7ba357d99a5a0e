# SPDX-License-Identifier: Apache-2.0
"""Encodes the corpus once, as pieces from which training streams are put together.

    python prepare.py CORPUS_FOLDER TOKENIZER_FOLDER OUTPUT.npz
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from corpus import (SYSTEM_TEXTS, Turn, answer_part, chat_text, continuation_turns, loose_question, parse_turn,
                    question_part, read_documents, small_talk_turns, split_kinds, story_turns, system_part)
from spec import ADDED_TOKENS, BASE_IDS, END_OF_TEXT, NO_THINKING, VOCAB_ROWS

STORY, CHAT = 0, 1
WORDINGS = 3  # of every question: the corpus's own and two careless ones


def encode(tokenizer: Tokenizer, texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """The ids of all texts in a row, and the offsets at which they begin and end."""
    rows = [np.array(e.ids, np.uint16) for e in tokenizer.encode_batch(list(texts), add_special_tokens=False)]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return np.concatenate(rows), offsets.astype(np.int64)


def token_bytes(tokenizer: Tokenizer) -> np.ndarray:
    """How many bytes of text each id stands for; added tokens and padding count as none."""
    sizes = np.zeros(VOCAB_ROWS, np.int32)
    for text, index in tokenizer.get_vocab(with_added_tokens=False).items():
        sizes[index] = len(text)  # one symbol of the byte alphabet for each byte
    return sizes


def encode_turns(tokenizer: Tokenizer, name: str, turns: list[Turn], wordings: int, rng: random.Random) -> dict:
    """Question and answer pieces of a list of turns, with some careless wordings of every question."""
    pieces = {}
    for index in range(wordings):
        questions = [turn.question if index == 0 else loose_question(turn.question, rng) for turn in turns]
        ids, offsets = encode(tokenizer, map(question_part, questions))
        pieces |= {f"{name}_q{index}": ids, f"{name}_q{index}_offsets": offsets}
    ids, offsets = encode(tokenizer, (answer_part(turn.answer) for turn in turns))
    return pieces | {f"{name}_a": ids, f"{name}_a_offsets": offsets}


def valid_stream(tokenizer: Tokenizer, documents: list[str]) -> dict:
    """The held-out documents in file order, each followed by the end mark, and the kind each token belongs to."""
    turns = [parse_turn(document) for document in documents]
    texts = [(chat_text([turn]) if turn else document) + END_OF_TEXT for turn, document in zip(turns, documents)]
    ids, offsets = encode(tokenizer, texts)
    kinds = np.repeat([CHAT if turn else STORY for turn in turns], np.diff(offsets)).astype(np.uint8)
    return {"valid": ids, "valid_kinds": kinds}


def check_pieces(tokenizer: Tokenizer, turns: list[Turn], rng: random.Random) -> None:
    """Pieces encoded apart must equal the encoding of the whole conversation."""
    for _ in range(300):
        group = rng.sample(turns, rng.randint(1, 3))
        parts = [text for turn in group for text in (question_part(turn.question), answer_part(turn.answer))]
        parts.insert(-1, NO_THINKING)
        apart = [i for part in parts for i in tokenizer.encode(part, add_special_tokens=False).ids]
        if apart != tokenizer.encode(chat_text(group), add_special_tokens=False).ids:
            raise SystemExit(f"pieces do not join up: {group}")


def main() -> None:
    corpus, folder, output = map(Path, sys.argv[1:4])
    rng = random.Random(1)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    stories, turns = split_kinds(read_documents(corpus / "train.txt.xz"))
    tales, sequels = story_turns(stories, rng), continuation_turns(stories, rng, 3000)
    check_pieces(tokenizer, turns + tales + sequels + small_talk_turns(), rng)

    arrays = {"token_bytes": token_bytes(tokenizer)}
    arrays["story"], arrays["story_offsets"] = encode(tokenizer, (story + END_OF_TEXT for story in stories))
    arrays |= encode_turns(tokenizer, "word", turns, WORDINGS, rng)
    arrays |= encode_turns(tokenizer, "talk", small_talk_turns(), WORDINGS, rng)
    arrays |= encode_turns(tokenizer, "tale", tales, 1, rng)
    arrays |= encode_turns(tokenizer, "sequel", sequels, 1, rng)
    arrays["system"], arrays["system_offsets"] = encode(tokenizer, map(system_part, SYSTEM_TEXTS))
    arrays["no_thinking"], _ = encode(tokenizer, [NO_THINKING])
    arrays["end"], _ = encode(tokenizer, [END_OF_TEXT])
    arrays |= valid_stream(tokenizer, read_documents(corpus / "valid.txt.xz"))
    assert arrays["end"].tolist() == [BASE_IDS] and arrays["valid"].max() < BASE_IDS + len(ADDED_TOKENS)
    np.savez_compressed(output, **arrays)
    print({name: array.shape for name, array in arrays.items() if not name.endswith("offsets")})


if __name__ == "__main__":
    main()
