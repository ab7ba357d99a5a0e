# SPDX-License-Identifier: Apache-2.0
import cpp

NAME = "sizes"
PURPOSE = "files, functions, template lists and folders stay small (soft limits are counted)"

FUNCTION = (50, 80)
KERNEL = (80, 200)
TEMPLATE = (5, 8)
FOLDER = (20, 30)
DEPTH = 2  # folders below src/


def file_limit(file):
    if not file.startswith("src/"):
        return 400, 700
    if file.endswith((".h", ".cuh", ".inc")):
        return 200, 350
    return (400, 700) if file.endswith(".cu") else (350, 600)


class Counter:
    def __init__(self, tree):
        self.tree = tree
        self.soft = 0

    def add(self, file, line, what, size, limits):
        soft, hard = limits
        if size > hard and not self.tree.allowed(NAME, file):
            self.tree.problem(file, line, f"{what}: expected at most {hard}, got {size}")
        elif size > soft:
            self.soft += 1


def check(tree):
    counter = Counter(tree)
    files = tree.select(".h", ".cc", ".cu", ".cuh", ".inc")
    folders = {}
    for file in files:
        text = tree.text(file)
        counter.add(file, 1, "lines", text.count("\n"), file_limit(file))
        for first, last, header in cpp.functions(text):
            kernel = file.endswith((".cu", ".cuh")) and "__global__" in header
            counter.add(file, first, "lines of a function", last - first + 1,
                        KERNEL if kernel else FUNCTION)
        for line, count in cpp.template_parameters(text):
            counter.add(file, line, "template parameters", count, TEMPLATE)
        folder, _, _ = file.rpartition("/")
        folders[folder] = folders.get(folder, 0) + 1
    for folder, count in folders.items():
        # A stem is one thing in two files: a header and its source.
        counter.add(folder, 1, "stems in a folder", stems(files, folder), FOLDER)
        if folder.startswith("src/") and folder.count("/") > DEPTH:
            tree.problem(folder, 1, f"expected at most {DEPTH} folders below src, got {folder.count('/')}")
    return f"{len(files)} files, {counter.soft} over a soft limit"


def stems(files, folder):
    names = [f[len(folder) + 1:] for f in files if f.startswith(folder + "/")]
    return len({n.split(".")[0] for n in names if "/" not in n})
