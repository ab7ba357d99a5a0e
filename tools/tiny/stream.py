# SPDX-License-Identifier: Apache-2.0
"""Puts the encoded pieces together: a new order and new conversations in every epoch, then training windows."""

from __future__ import annotations

import numpy as np

from prepare import WORDINGS

Pieces = dict[str, np.ndarray]


class Rows:
    """Texts of different lengths, stored in one array."""

    def __init__(self, pieces: Pieces, name: str) -> None:
        self.ids, self.offsets = pieces[name], pieces[f"{name}_offsets"]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self.ids[self.offsets[index]:self.offsets[index + 1]]


class Turns:
    """Question and answer pieces of one kind of turn."""

    def __init__(self, pieces: Pieces, name: str, wordings: int) -> None:
        self.questions = [Rows(pieces, f"{name}_q{index}") for index in range(wordings)]
        self.answers = Rows(pieces, f"{name}_a")

    def pick(self, index: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """A turn; a quarter of the questions are worded carelessly."""
        careless = len(self.questions) > 1 and rng.random() < 0.25
        wording = int(rng.integers(1, len(self.questions))) if careless else 0
        return self.questions[wording][index], self.answers[index]


class EpochMaker:
    """Makes the token stream of an epoch out of the pieces."""

    TALK_REPEATS, TALES, SEQUELS, SYSTEM_SHARE = 4, 300, 300, 0.06

    def __init__(self, pieces: Pieces, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.stories = Rows(pieces, "story")
        self.words, self.talk = Turns(pieces, "word", WORDINGS), Turns(pieces, "talk", WORDINGS)
        self.tales, self.sequels = Turns(pieces, "tale", 1), Turns(pieces, "sequel", 1)
        self.system = Rows(pieces, "system")
        self.no_thinking, self.end = pieces["no_thinking"], pieces["end"]

    def turns(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """All turns of an epoch in random order."""
        rng = self.rng
        chosen = [(self.words, i) for i in range(len(self.words.answers))]
        chosen += [(self.talk, i) for i in range(len(self.talk.answers))] * self.TALK_REPEATS
        chosen += [(self.tales, i) for i in rng.choice(len(self.tales.answers), self.TALES, replace=False)]
        chosen += [(self.sequels, i) for i in rng.choice(len(self.sequels.answers), self.SEQUELS, replace=False)]
        return [chosen[i][0].pick(chosen[i][1], rng) for i in rng.permutation(len(chosen))]

    def conversations(self) -> list[list[np.ndarray]]:
        """Turns grouped into conversations: two thirds have one turn, the others two or three."""
        turns, groups, position = self.turns(), [], 0
        while position < len(turns):
            size = int(self.rng.choice([1, 2, 3], p=[2 / 3, 1 / 6, 1 / 6]))
            group = turns[position:position + size]
            position += size
            parts = [part for turn in group for part in turn]
            parts.insert(-1, self.no_thinking)
            if self.rng.random() < self.SYSTEM_SHARE:
                parts.insert(0, self.system[int(self.rng.integers(len(self.system)))])
            groups.append([*parts, self.end])
        return groups

    def epoch(self) -> tuple[np.ndarray, np.ndarray]:
        """The token stream of an epoch and the position of each document in it."""
        documents = [[self.stories[i]] for i in range(len(self.stories))] + self.conversations()
        order = self.rng.permutation(len(documents))
        sizes = np.array([sum(len(part) for part in documents[i]) for i in order])
        stream = np.concatenate([part for i in order for part in documents[i]])
        return stream, np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def window_starts(self, stream_size: int, begins: np.ndarray, length: int, snapped: float = 0.5) -> np.ndarray:
        """Where the windows of an epoch begin, in random order; some are moved to the nearest document's start."""
        offset = int(self.rng.integers(length))
        starts = np.arange(offset, stream_size - length - 1, length)
        near = begins[np.clip(np.searchsorted(begins, starts), 0, len(begins) - 1)]
        move = (self.rng.random(len(starts)) < snapped) & (np.abs(near - starts) < length // 2)
        starts = np.where(move & (near + length + 1 <= stream_size), near, starts)
        return self.rng.permutation(starts)
