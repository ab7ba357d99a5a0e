# SPDX-License-Identifier: Apache-2.0
"""The files a gate looks at, and how it reports.

A gate is a module with NAME, one line of PURPOSE, and check(tree) that calls tree.problem(...) for
each fault and returns a short summary for the line printed when there is none.
"""
import os
import subprocess

ALLOW_FILE = "scripts/gates/allow.txt"
SOURCE_FOLDERS = ("src", "tests", "bench")


class Tree:
    def __init__(self, root):
        self.root = root
        self.problems = []
        self.files = sorted(self._list())
        self._allowed = self._read_allowed()
        self._cache = {}

    def _list(self):
        """Tracked files and files git would track; without git, every file but build output."""
        if os.path.isdir(os.path.join(self.root, ".git")):
            listing = subprocess.run(
                ["git", "-c", "core.quotepath=off", "-c", "safe.directory=*", "-C", self.root,
                 "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                check=True, capture_output=True).stdout.decode()
            return [f for f in listing.split("\0")
                    if f and os.path.isfile(os.path.join(self.root, f))]
        found = []
        for folder, names, files in os.walk(self.root):
            names[:] = [n for n in names if not n.startswith("build") and n != "__pycache__"]
            found += [os.path.relpath(os.path.join(folder, f), self.root) for f in files]
        return found

    def _read_allowed(self):
        """Lines "gate path: reason"; the path may end in * for a prefix."""
        allowed = []
        if ALLOW_FILE in self.files:
            with open(self.path(ALLOW_FILE), encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    line = line.strip()
                    if not line or line.startswith("#"):
                        continue
                    head, _, reason = line.partition(":")
                    words = head.split()
                    if len(words) != 2 or not reason.strip():
                        self.problem(ALLOW_FILE, number, "expected 'gate path: reason'")
                        continue
                    allowed.append(words)
        return allowed

    def allowed(self, gate, path):
        return any(g == gate and (path == p or p.endswith("*") and path.startswith(p[:-1]))
                   for g, p in self._allowed)

    def path(self, file):
        return os.path.join(self.root, file)

    def text(self, file):
        if file not in self._cache:
            with open(self.path(file), encoding="utf-8", errors="replace") as stream:
                self._cache[file] = stream.read()
        return self._cache[file]

    def is_binary(self, file):
        with open(self.path(file), "rb") as stream:
            return b"\0" in stream.read(8192)

    def select(self, *suffixes, under=SOURCE_FOLDERS):
        """Files below the given folders whose names end in one of the suffixes."""
        return [f for f in self.files
                if f.endswith(suffixes) and f.split("/")[0] in under]

    def problem(self, file, line, message):
        self.problems.append(f"{file}:{line}: {message}")
