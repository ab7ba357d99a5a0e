# SPDX-License-Identifier: Apache-2.0
"""Write src/text/unicode_tables.cc: the class of every code point for Hugging Face tokenizers.

The regular expressions of tokenizer.json run in that library's engine, so the engine itself is
asked: \\p{L}, \\p{M} and \\p{N} through a Split, \\w (single_word tokens) through an added token.

    python tools/goldens/unicode_classes.py src/text/unicode_tables.cc     (tokenizers 0.23.3)
"""

import sys

from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
LETTER, MARK, NUMBER, WORD = 1, 2, 3, 4


def members(pattern):
    """The code points that the pattern, a class of single characters, matches."""
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    found = set()
    for begin in range(0, len(CODE_POINTS), 1024):
        block = CODE_POINTS[begin : begin + 1024]
        kept = "".join(piece for piece, _ in split.pre_tokenize_str("".join(map(chr, block))))
        found |= set(block) - set(map(ord, kept))
    return found


def word_members():
    """The code points that keep a single_word token behind them from being one."""
    tokenizer = Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    tokenizer.add_tokens([AddedToken("<w>", single_word=True, normalized=False)])
    token = tokenizer.token_to_id("<w>")
    return {c for c in CODE_POINTS if token not in tokenizer.encode(chr(c) + "<w>").ids}


def main():
    classes = dict.fromkeys(CODE_POINTS, 0)
    for pattern, value in ((r"\p{L}", LETTER), (r"\p{M}", MARK), (r"\p{N}", NUMBER)):
        for c in members(pattern):
            classes[c] |= value
    for c in word_members():
        classes[c] |= WORD
    runs, previous = [], 0
    for c in range(0x110000):
        value = classes.get(c, 0)
        if c == 0 or value != previous:
            runs.append(f"0x{c << 3 | value:x}")
        previous = value
    lines, line = [], "   "
    for run in runs:
        if len(line) + len(run) + 2 > 100:
            lines.append(line)
            line = "   "
        line += f" {run},"
    lines.append(line)
    body = "\n".join(lines)
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write(
            "// SPDX-License-Identifier: Apache-2.0\n"
            "//\n"
            "// Made by tools/goldens/unicode_classes.py (Unicode 16.0). An entry is first << 3 | class\n"
            "// of a run of code points; the run ends where the next one begins.\n"
            '#include "text/unicode_tables.h"\n\n'
            "namespace lr::text {\n\n"
            "// clang-format off\n"
            f"const std::uint32_t kClassRuns[] = {{\n{body}\n}};\n"
            "// clang-format on\n\n"
            "const std::size_t kClassRunCount = sizeof(kClassRuns) / sizeof(kClassRuns[0]);\n\n"
            "} // namespace lr::text\n"
        )


if __name__ == "__main__":
    main()
