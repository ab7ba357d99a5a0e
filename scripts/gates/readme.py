# SPDX-License-Identifier: Apache-2.0
import os
import re
import shlex
import subprocess
import tempfile

NAME = "readme"
PURPOSE = "every command of README.md runs"

SECONDS = 120
# Run by .ci/run or by people on a fresh machine, not once more here.
ELSEWHERE = {"./scripts/demo", "./scripts/test", "./scripts/install", "./.ci/run"}


def commands(text):
    """(line, command) of the ```sh blocks; a line that ends in \\ goes on."""
    inside, pending, start = False, "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            inside = line.strip() == "```sh"
        elif inside and (line.strip() and not line.startswith("#")):
            start = start if pending else number
            pending += line.rstrip("\\") if line.endswith("\\") else line
            if not line.endswith("\\"):
                yield start, pending.strip()
                pending = ""


def check(tree):
    if "README.md" not in tree.files:
        tree.problem("README.md", 1, "is missing")
        return ""
    program = tree.path("build/release/liverow")
    count = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("models", "scripts", "docs", "tests"):
            if os.path.isdir(tree.path(name)):
                os.symlink(tree.path(name), os.path.join(scratch, name))
        for number, command in commands(tree.text("README.md")):
            count += 1
            word = shlex.split(command)[0]
            if word.startswith("./"):
                if not os.access(tree.path(word), os.X_OK):
                    tree.problem("README.md", number, f"{word} is no executable file of the tree")
                if word not in ELSEWHERE:
                    run(tree, number, command, tree.root)
            elif word == "liverow":
                if os.path.exists(program):
                    run(tree, number, command, scratch)
                else:
                    tree.problem("README.md", number, "needs build/release/liverow: scripts/build release")
            else:
                tree.problem("README.md", number, f"a ```sh line starts with ./ or liverow, got '{word}'"
                                                  " (use ```text for what is not to be run)")
    return f"{count} commands"


def run(tree, number, command, folder):
    path = tree.path("build/release") + ":" + os.environ["PATH"]
    try:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=folder, timeout=SECONDS,
                              env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        tree.problem("README.md", number, f"'{command}' took longer than {SECONDS} s")
        return
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").split("\n")[-1]
        tree.problem("README.md", number, f"'{command}' failed with {done.returncode}: {last}")
