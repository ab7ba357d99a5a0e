# SPDX-License-Identifier: Apache-2.0
import re

import cpp

NAME = "duplicates"
PURPOSE = "no six lines of code stand in two places"

RUN = 6        # lines
SUBSTANCE = 160  # characters of those lines: shorter runs are braces and argument lists


def code_lines(tree, file):
    """(number, text) of the lines that count: no blanks, comments, includes or lone punctuation."""
    text = tree.text(file)
    if not file.endswith(".py"):
        # Strings stay: two tables of different text are no duplicates.
        text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        line = re.sub(r"^\s*(//|#(?!\s*define)).*", "", line)
        line = re.sub(r"\s+//.*", "", line)
        line = re.sub(r"\s+", " ", line).strip()
        if len(line) > 2 and not re.match(r"(using |import |from |namespace |\} // namespace)", line) \
                and re.search(r"\w", line):
            lines.append((number, line))
    return lines


def check(tree):
    files = [f for f in tree.select(".h", ".cc", ".cu", ".py", under=("src", "tests", "bench", "tools"))
             if not tree.allowed(NAME, f)]
    first_seen, covered, count = {}, {}, 0
    for file in files:
        lines = code_lines(tree, file)
        count += len(lines)
        for i in range(len(lines) - RUN + 1):
            window = tuple(text for _, text in lines[i:i + RUN])
            if sum(map(len, window)) < SUBSTANCE:
                continue
            begin, end = lines[i][0], lines[i + RUN - 1][0]
            other = first_seen.setdefault(window, (file, begin, end))
            if other == (file, begin, end) or other[0] == file and other[2] >= begin:
                continue
            # A longer run gives many windows: report where it starts.
            if covered.get((file, other[0]), 0) < begin:
                tree.problem(file, begin, f"the same {RUN} or more lines stand at "
                                          f"{other[0]}:{other[1]}: write them once")
            covered[(file, other[0])] = end
    return f"{count} lines of code"
