# SPDX-License-Identifier: Apache-2.0
import os

NAME = "tree_size"
PURPOSE = "the tree stays below 32 MiB"

LIMIT = 32 << 20


def check(tree, limit=LIMIT):
    sizes = sorted(((os.path.getsize(tree.path(f)), f) for f in tree.files), reverse=True)
    total = sum(size for size, _ in sizes)
    if total > limit:
        size, file = sizes[0]
        tree.problem(file, 1, f"the tree has {total} bytes, expected at most {limit}; "
                              f"this file is the largest with {size}")
    return f"{len(sizes)} files, {total / (1 << 20):.1f} MiB"
