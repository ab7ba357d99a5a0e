# SPDX-License-Identifier: Apache-2.0
import os
import re
import shutil
import subprocess

NAME = "spills"
PURPOSE = "no CUDA kernel spills registers to local memory unless allowed by name"

LIBRARY = "build/cuda/liblr_cuda.a"


def parse(text):
    """(kernel, registers, stack and local bytes) from cuobjdump -res-usage."""
    for match in re.finditer(r"Function (\S+):\s*\n\s*REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)", text):
        yield match.group(1), int(match.group(2)), int(match.group(3)) + int(match.group(4))


def check(tree):
    tool = shutil.which("cuobjdump") or "/usr/local/cuda/bin/cuobjdump"
    if not os.path.exists(tree.path(LIBRARY)) or not os.path.exists(tool):
        return "not checked: no build/cuda or no CUDA toolkit"
    text = subprocess.run([tool, "-res-usage", tree.path(LIBRARY)], check=True, capture_output=True,
                          text=True).stdout
    return report(tree, text)


def report(tree, text):
    count = most = 0
    for kernel, registers, local_bytes in parse(text):
        count += 1
        most = max(most, registers)
        if local_bytes and not tree.allowed(NAME, kernel):
            tree.problem(LIBRARY, 1, f"{kernel}: {local_bytes} bytes of local memory")
    return f"{count} kernels, at most {most} registers"
