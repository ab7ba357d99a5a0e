# SPDX-License-Identifier: Apache-2.0
"""Reads the corpus and recasts its question/answer documents as chat turns."""

from __future__ import annotations

import lzma
import random
import re
from dataclasses import dataclass
from pathlib import Path

from spec import END_OF_TEXT, IM_END, IM_START, NO_THINKING


@dataclass(frozen=True)
class Turn:
    """One question with its answer."""

    question: str
    answer: str


def read_documents(path: Path) -> list[str]:
    """The documents of a corpus file, without their end marks."""
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
        parts = file.read().split(END_OF_TEXT + "\n")
    return [part.strip("\n") for part in parts if part.strip()]


def parse_turn(document: str) -> Turn | None:
    """The turn in a question/answer document, or nothing if it is a story."""
    match = re.fullmatch(r"User: (.+)\nAssistant: (.+)", document)
    return Turn(match[1].strip(), match[2].strip()) if match else None


def split_kinds(documents: list[str]) -> tuple[list[str], list[Turn]]:
    """Stories and turns, each in file order."""
    turns = [turn for document in documents if (turn := parse_turn(document))]
    stories = [document for document in documents if not parse_turn(document)]
    return stories, turns


def question_part(question: str) -> str:
    """A user turn up to the point where the assistant begins."""
    return f"{IM_START}user\n{question}{IM_END}\n{IM_START}assistant\n"


def answer_part(answer: str) -> str:
    """The assistant's words and the end of its turn."""
    return f"{answer}{IM_END}\n"


def system_part(text: str) -> str:
    """A system turn."""
    return f"{IM_START}system\n{text}{IM_END}\n"


def chat_text(turns: list[Turn], system: str | None = None) -> str:
    """A whole conversation as the chat template renders it: only the last answer carries the empty reasoning."""
    text = system_part(system) if system else ""
    for index, turn in enumerate(turns):
        text += question_part(turn.question)
        text += NO_THINKING if index + 1 == len(turns) else ""
        text += answer_part(turn.answer)
    return text


def loose_question(question: str, rng: random.Random) -> str:
    """The same question typed more carelessly: without quotes, capitals or the question mark."""
    if rng.random() < 0.8:
        question = re.sub(r"'([^']+)'", r"\1", question)
    if rng.random() < 0.5:
        question = question[0].lower() + question[1:]
    if rng.random() < 0.4:
        question = question.rstrip("?.")
    return question


SYSTEM_TEXTS = [
    "You are a helpful assistant.",
    "You are a friendly assistant that explains words.",
    "Answer briefly.",
    "You are a dictionary.",
    "You are a small language model. Answer in one or two sentences.",
    "You help children to understand words and like to tell stories.",
]

SMALL_TALK: list[tuple[list[str], list[str]]] = [
    (["Hello!", "Hello", "Hi", "Hi there!", "Good morning!", "Good evening."],
     ["Hello! Ask me what a word means, or ask me for a story.",
      "Good day to you! Shall I explain a word, or tell you a story?"]),
    (["Who are you?", "What are you?", "What is your name?", "Are you a person?"],
     ["I am a very small language model that learned from old stories and a dictionary.",
      "I am a tiny language model. I know some words and many old tales."]),
    (["What can you do?", "How can you help me?", "What do you know?"],
     ["I can explain a word, give you a synonym or an opposite, use a word in a sentence, or tell you a story.",
      "I can tell you what a word means, and I can tell stories. I know little else."]),
    (["Thank you.", "Thanks!", "Thank you very much."],
     ["You are welcome.", "You are very welcome. Is there another word you would like to know?"]),
    (["Goodbye.", "Bye!", "Good night."],
     ["Goodbye!", "Farewell, and come again."]),
    (["How are you?", "How do you do?"],
     ["I am very well, thank you. What would you like to know?",
      "Very well, thank you. Would you like to hear a story?"]),
]

STORY_REQUESTS = [
    "Tell me a story.", "Please tell me a story.", "tell me a story", "Can you tell me a story?", "Tell me a short story.",
    "I would like to hear a story.", "Write a short story.", "Tell me a fairy tale.", "Tell me a tale, please.",
]
TITLED_REQUESTS = [
    "Tell me the story '{}'.", "Tell me a story called '{}'.", "Write a story with the title '{}'.",
    "Please tell me the tale of '{}'.", "Do you know the story '{}'?",
]
CONTINUE_REQUESTS = [
    "Continue this story: {}", "Please continue this story: {}", "Go on with this story: {}", "What happens next? {}",
    "This is how a story begins. Please go on. {}",
]


def small_talk_turns() -> list[Turn]:
    """Every pair of a greeting or a question about the model with an answer."""
    return [Turn(q, a) for questions, answers in SMALL_TALK for q in questions for a in answers]


def story_turns(stories: list[str], rng: random.Random, limit: int = 1600) -> list[Turn]:
    """Requests for a story, answered with a short document: its title and text."""
    turns = []
    for story in (s for s in stories if len(s) < limit and "\n\n" in s):
        title = story.split("\n\n", 1)[0]
        turns.append(Turn(rng.choice(STORY_REQUESTS), story))
        turns.append(Turn(rng.choice(TITLED_REQUESTS).format(title), story))
    return turns


def continuation_turns(stories: list[str], rng: random.Random, count: int) -> list[Turn]:
    """Requests to continue a paragraph, answered with the paragraphs that follow it."""
    turns: list[Turn] = []
    while len(turns) < count:
        paragraphs = rng.choice(stories).split("\n\n")
        if len(paragraphs) < 5:
            continue
        start = rng.randrange(1, len(paragraphs) - 2)
        first, rest = paragraphs[start], "\n\n".join(paragraphs[start + 1:start + 4])
        if 60 <= len(first) <= 500 and 200 <= len(rest) <= 1500 and "* * *" not in rest:
            turns.append(Turn(rng.choice(CONTINUE_REQUESTS).format(first), rest))
    return turns
