# SPDX-License-Identifier: Apache-2.0
import re
import shutil
import subprocess

NAME = "format"
PURPOSE = "C++ is formatted by clang-format 14; no tabs, trailing blanks or CRLF anywhere"


def check(tree):
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    if not tool:
        tree.problem(".clang-format", 1, "clang-format-14 is missing: scripts/install --gates")
        return ""
    files = tree.select(".h", ".cc", ".cu", ".cuh", ".inc", under=("src", "tests", "bench", "cmake"))
    for start in range(0, len(files), 64):
        run = subprocess.run([tool, "--dry-run", "-Werror", "--style=file", *files[start:start + 64]],
                             cwd=tree.root, capture_output=True, text=True)
        seen = set()
        for match in re.finditer(r"^(\S+?):(\d+):\d+: error: (.*)", run.stderr, re.M):
            if match.group(1) not in seen:  # the first of a file is enough: it is fixed whole
                seen.add(match.group(1))
                tree.problem(match.group(1), match.group(2), "not formatted: clang-format -i " + match.group(1))
        if run.returncode and not seen:
            tree.problem(".clang-format", 1, run.stderr.strip().split("\n")[-1])
    blanks(tree)
    return f"{len(files)} files"


def blanks(tree):
    for file in tree.files:
        if file.startswith("models/") or file.endswith(".json") or tree.is_binary(file) \
                or tree.allowed(NAME, file):
            continue
        text = tree.text(file)
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip():
                tree.problem(file, number, "trailing blanks")
        if text and not text.endswith("\n"):
            tree.problem(file, text.count("\n") + 1, "no newline at the end of the file")
