# SPDX-License-Identifier: Apache-2.0
"""Holds `liverow tokenize` to Hugging Face tokenizers: the same ids for many hard strings, and both
speeds.

    python tools/goldens/tokenizer_parity.py train OUT.json --vocab 248044 TEXT...
    python tools/goldens/tokenizer_parity.py check LIVEROW TOKENIZER.json... [--text FILE...]
    python tools/goldens/tokenizer_parity.py store OUT.json TOKENIZER.json...

train   a byte-level BPE tokenizer of any size from text files, with Qwen3.5's pattern and the added
        tokens of tokenizer_vectors.py
check   drawn strings, slices of the texts as they are and decomposed, and a word of a megabyte, with
        and without control tokens; random ids back to text; then MB/s of each text, one thread
store   the fixture of tests/text/parity_test.cc: the pieces that strings are drawn from, and for each
        tokenizer a hash for every hundred strings, without and with control tokens

String s of a draw is made of 1 + bits(64 s) % 12 pieces; piece j is number bits(64 s + 2 j + 1) modulo
their count, repeated 1 + bits(64 s + 2 j + 2) % 40 times where that value's upper half is a multiple
of 16 (bits: counter_rng.h, tensor "text", seed 1). A hash is FNV-1a over the ids of its strings, four
little-endian bytes each, an id of 2^32 - 1 behind each string. (tokenizers 0.23.3)
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import time
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

from counter_rng import CounterRng, MASK  # noqa: E402
from tokenizer_vectors import ADDED, TEXTS, train  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

GROUP = 100
GROUPS = 200

SNIPPETS = [
    "\r\n", "\n\n", " \n", "\t", "  ", "   ", "\u00a0", "\u3000", "\u2028", "\u0085", "'s", "'LL", "'re",
    "'\u017f", "\u2019s", "don't", "I've", "0", "7", "42", "1234567890", "3.14", "\u00bd", "\u2167",
    "\u0663\u0664", "\u0e51", "!!", "...", "->", "=>", "();", "{}", "/*", "//", "<", ">", "|", "<|", "|>",
    "<|im_", "start|>", "end|>", "<|im_start|>user\n", "<|im_end|>\n", "<|endoftext|>", "<|im_end|", "|im_end|>",
    "<think>", "</think>", "<think", "<tool_call>", "</tool_call>", "<tool_response>", "<|fim_prefix|>",
    "\U0001f600", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "\U0001f1ea\U0001f1fa",
    "\u2764\ufe0f", "\u20e3", "1\ufe0f\u20e3", "\u200d", "\u200b", "\ufeff", "\ufe0f", "\u00ad",
    "e\u0301", "\u00e9", "a\u0323\u0307", "q\u0307\u0323", "o\u0302\u0301", "\u1ed1", "\u212b", "\u2126", "\u0344",
    "\u1112\u1161\u11ab", "\ud55c", "\uac00\u11a8", "\u0915\u094d\u0937", "\u0928\u093f", "\u0915\u093c", "\u09cb",
    "\u0e19\u0e49\u0e33", "\u0e01\u0e34", "\u0628\u0650\u0651", "\u05e9\u05c1\u05b8", "\u304b\u3099", "\u30cf\u309a",
    "the", " The", "THE", " and", "ing", " heron", "feather", " zebra", "int main() {", "for (i = 0;", "\treturn",
    "Stra\u00dfe", " na\u00efve", "\u041f\u0440\u0438", "\u4f60\u597d", "\u4e16\u754c\u3002", "\uff11\uff12",
    "\u0378", "\ue000", "\U0010ffff", "\x00", "\x1c", "\x7f", "\ufffd",
]


def assigned(first, last):
    return [chr(c) for c in range(first, last + 1) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]


def pieces(count=1500):
    """Snippets, words of the hard texts, added tokens, and characters of every script."""
    draw = random.Random(20240607)
    words = sorted({w for text in TEXTS for w in text.split() if len(w) <= 24})
    everything = SNIPPETS * 2 + words + [token.content for token in ADDED] * 2
    marks = [c for c in assigned(0x300, 0x1FFFF) if unicodedata.category(c).startswith("M")]
    everything += draw.sample(marks, 200)
    blocks = [(first, first + 0x7F) for first in range(0, 0x20000, 0x80)]
    blocks = [b for b in blocks if assigned(*b) and not (0x3400 <= b[0] < 0x9F80 or 0xAC00 <= b[0] < 0xD780)]
    while len(everything) < count:
        block = assigned(*draw.choice(blocks))
        everything.append("".join(draw.choice(block) for _ in range(draw.randint(1, 5))))
        everything.append("".join(chr(draw.randint(0x4E00, 0x9FA5)) for _ in range(draw.randint(1, 4))))
        everything.append("".join(chr(draw.randint(0xAC00, 0xD7A3)) for _ in range(draw.randint(1, 3))))
    return everything[:count]


def drawn_strings(parts, count):
    rng = CounterRng("text", 1)
    for s in range(count):
        bits = [int(b) for b in rng.bits(64 * s, 64)]
        text = ""
        for j in range(1 + bits[0] % 12):
            times = bits[2 * j + 2]
            part = parts[bits[2 * j + 1] % len(parts)]
            text += part * (1 + times % 40 if (times >> 32) % 16 == 0 else 1)
        yield text


def hash_ids(hash_, ids):
    for value in list(ids) + [0xFFFFFFFF]:
        for byte in value.to_bytes(4, "little"):
            hash_ = ((hash_ ^ byte) * 0x100000001B3) & MASK
    return hash_


def store(out, paths):
    parts = pieces()
    strings = list(drawn_strings(parts, GROUP * GROUPS))
    result = {"pieces": parts, "group": GROUP, "tokenizers": []}
    for path in paths:
        tokenizer = Tokenizer.from_file(path)
        entry = {"file": path}
        for name, as_text in (("plain", True), ("special", False)):
            tokenizer.encode_special_tokens = as_text
            hashes = []
            for first in range(0, len(strings), GROUP):
                value = 0xCBF29CE484222325
                for text in strings[first : first + GROUP]:
                    value = hash_ids(value, tokenizer.encode(text).ids)
                hashes.append(f"{value:016x}")
            entry[name] = hashes
        result["tokenizers"].append(entry)
    text = json.dumps(result, ensure_ascii=False, separators=(",", ":"))
    pathlib.Path(out).write_text(text + "\n", encoding="utf-8")
    print(f"{out}: {len(strings)} strings, {len(text.encode())} bytes")


def slices(texts, count):
    """Pieces of the texts, a third of them decomposed."""
    draw = random.Random(7)
    for n in range(count if texts else 0):
        text = draw.choice(texts)
        first = draw.randrange(len(text))
        part = text[first : first + draw.choice((5, 40, 300))]
        yield unicodedata.normalize("NFD", part) if n % 3 == 0 else part


def long_strings(texts):
    draw = random.Random(11)
    yield "a" * 1_000_000
    yield "".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(1_000_000))
    yield "".join(chr(draw.randint(0x4E00, 0x9FA5)) for _ in range(300_000))
    for unit in ("\n", " ", "!", "\u0e01\u0e34", "e\u0301", "\u0301", "9", "<|im_end|>", "\U0001f600", "\r\n", " \n", "'s"):
        yield unit * 20_000
    yield "q" + "".join(draw.choice("\u0301\u0323\u0307\u05b0\u0315") for _ in range(5_000))
    yield from (text[:300_000] for text in texts)


def liverow(program, tokenizer, rows, *flags):
    command = [program, "tokenize", tokenizer, "--batch", *flags]
    done = subprocess.run(command, input="\n".join(json.dumps(row) for row in rows) + "\n", text=True,
                          capture_output=True, encoding="utf-8")
    if done.returncode:
        sys.exit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def report_difference(kind, given, ours, theirs):
    first = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    print(f"  {kind}: differs at {first}: {given[:200]!r}\n    ours   {ours[first:first + 12]!r}"
          f"\n    theirs {theirs[first:first + 12]!r}")


def compare(kind, given, ours, theirs):
    wrong = [i for i in range(len(given)) if ours[i] != theirs[i]]
    for i in wrong[:5]:
        report_difference(kind, given[i], ours[i], theirs[i])
    print(f"  {kind}: {len(given) - len(wrong)} of {len(given)} equal")
    return len(wrong)


def random_ids(tokenizer, count):
    """Ids of any kind; Hugging Face writes added tokens through the byte alphabet, so those with other
    characters are left out."""
    draw = random.Random(3)
    added = {token.content for token in ADDED}
    vocab = tokenizer.get_vocab()
    usable = sorted(i for token, i in vocab.items() if token.isascii() or token not in added)
    single = [i for i in usable if len(tokenizer.id_to_token(i)) == 1]
    return [[draw.choice(single if n % 2 else usable) for _ in range(draw.randint(1, 40))] for n in range(count)]


def speeds(program, path, tokenizer, texts):
    for name, text in texts:
        size = len(text.encode())
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            tokenizer.encode(text)
            best = min(best, time.process_time() - start)
        ours = max(float(liverow(program, path, [text])[1].split(" MB/s")[0].split()[-1]) for _ in range(3))
        theirs = size / 1e6 / best
        print(f"  {name:<24} {size / 1e6:6.2f} MB   liverow {ours:7.1f} MB/s   tokenizers {theirs:6.1f} MB/s"
              f"   {ours / theirs:5.1f} x")


def check(program, paths, text_paths):
    texts = [pathlib.Path(path).read_text(encoding="utf-8") for path in text_paths]
    strings = list(drawn_strings(pieces(), GROUP * GROUPS)) + list(slices(texts, 20_000)) + list(long_strings(texts))
    wrong = 0
    for path in paths:
        tokenizer = Tokenizer.from_file(path)
        print(f"{path}: {tokenizer.get_vocab_size()} tokens")
        for kind, flags in (("plain", ()), ("special", ("--special",))):
            tokenizer.encode_special_tokens = kind == "plain"
            ours, _ = liverow(program, path, strings, *flags)
            wrong += compare(kind, strings, ours, [tokenizer.encode(text).ids for text in strings])
        for kind, flags in (("decode", ("--special",)), ("decode, skipping", ())):
            ids = random_ids(tokenizer, 5_000)
            ours, _ = liverow(program, path, ids, *flags)
            wrong += compare(kind, ids, ours, [tokenizer.decode(i, kind != "decode") for i in ids])
        speeds(program, path, tokenizer, [(pathlib.Path(p).name, t) for p, t in zip(text_paths, texts)])
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("train")
    command.add_argument("out")
    command.add_argument("--vocab", type=int, default=248044)
    command.add_argument("texts", nargs="+")
    command = commands.add_parser("check")
    command.add_argument("program")
    command.add_argument("tokenizers", nargs="+")
    command.add_argument("--text", action="append", default=[])
    command = commands.add_parser("store")
    command.add_argument("out")
    command.add_argument("tokenizers", nargs="+")
    options = parser.parse_args()
    if options.command == "train":
        lines = (line for path in options.texts for line in open(path, encoding="utf-8", newline=""))
        tokenizer = train(lines, options.vocab)
        pathlib.Path(options.out).write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
    elif options.command == "check":
        sys.exit(1 if check(options.program, options.tokenizers, options.text) else 0)
    else:
        store(options.out, options.tokenizers)


if __name__ == "__main__":
    main()
