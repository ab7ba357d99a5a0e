# SPDX-License-Identifier: Apache-2.0
import re

NAME = "contracts"
PURPOSE = "every op header carries the ten labels of its contract, Args, check and cost"

LABELS = ("Math", "Shapes", "Types", "Rounding", "Order", "Aliasing", "Bounds", "Graph", "Scratch", "Cost")


def check(tree):
    headers = [f for f in tree.select(".h", under=("src",))
               if re.fullmatch(r"src/ops/[^/]+/[^/]+\.h", f) and not tree.allowed(NAME, f)]
    for file in headers:
        lines = tree.text(file).split("\n")
        at = 0
        for label in LABELS:
            found = [i for i, line in enumerate(lines, 1) if re.match(rf"// {label}\s{{2,}}\S", line)]
            if not found:
                tree.problem(file, 1, f"the contract has no line '// {label}  ...'")
            elif found[0] < at:
                tree.problem(file, found[0], f"'{label}' is out of order: {' '.join(LABELS)}")
            else:
                at = found[0]
        text = tree.text(file)
        for pattern, what in ((r"^struct \w+Args\b", "struct ...Args"),
                              (r"^Status check\(const \w+Args&", "Status check(const ...Args&)"),
                              (r"^Cost cost\(const \w+Args&", "Cost cost(const ...Args&)")):
            if not re.search(pattern, text, re.M):
                tree.problem(file, 1, f"expected {what}")
    return f"{len(headers)} ops"
