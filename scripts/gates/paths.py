# SPDX-License-Identifier: Apache-2.0
import re

NAME = "paths"
PURPOSE = "no file names a machine's folders or a package host"

# Written in pieces, so that this file passes its own gate.
FOLDERS = "|".join(("wo" + "rk", "ro" + "ot", "ho" + "me", "t" + "mp", "mn" + "t"))
PATH = re.compile(rf"(?<![\w.}}$)])/(?:{FOLDERS})/[\w.$]")
HOST = re.compile("|".join((r"deb\." + r"debian\.org", r"py" + r"pi\.org", r"python" + r"hosted\.org",
                            r"registry\.npm" + "js", r"\bmirror" + r"s?\.[a-z]+\.(?:org|com|edu)")))


def check(tree):
    count = 0
    for file in tree.files:
        if file.startswith("models/") and not file.endswith(".md") or tree.is_binary(file) \
                or tree.allowed(NAME, file):
            continue
        count += 1
        for number, line in enumerate(tree.text(file).split("\n"), 1):
            match = PATH.search(line) or HOST.search(line)
            if match:
                tree.problem(file, number, f"'{match.group(0)}' belongs to one machine")
    return f"{count} files"
