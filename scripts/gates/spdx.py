# SPDX-License-Identifier: Apache-2.0
import re

NAME = "spdx"
PURPOSE = "every source and script starts with its SPDX line"

SOURCES = re.compile(r".*\.(h|cc|cu|cuh|inc|py|sh|cmake|in)$|(.*/)?CMakeLists\.txt$|scripts/.*|\.ci/run$|\.clang-format$")
EXEMPT = re.compile(r".*\.(json|md|txt)$")


def check(tree):
    count = 0
    for file in tree.files:
        if not SOURCES.match(file) or EXEMPT.match(file) and not file.endswith("CMakeLists.txt"):
            continue
        count += 1
        lines = tree.text(file).split("\n")
        first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
        if not re.fullmatch(r"(//|#) SPDX-License-Identifier: Apache-2\.0", first):
            tree.problem(file, 1, "expected '// SPDX-License-Identifier: Apache-2.0' (or #) first")
    return f"{count} files"
