# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import glob
import os
import shutil
import subprocess

NAME = "headers"
PURPOSE = "every header compiles alone, guarded by #pragma once"

FLAGS = ["-std=c++20", "-O0", "-w", "-march=x86-64-v2", '-DLR_SOURCE_DIR="."']

DEVICE_FLAGS = ["-std=c++20", "-arch=sm_90a", "-w", "-O0", "-DFMT_USE_CONSTEXPR=1"]


def check(tree):
    headers = [f for f in tree.select(".h") if not tree.allowed(NAME, f)]
    work = tree.path("build/gates/headers")
    os.makedirs(work, exist_ok=True)
    generated = (sorted(glob.glob(tree.path("build/*/generated"))) or [work])[-1]
    cuda = "/usr/local/cuda/include"
    for file in headers:
        if "#pragma once" not in tree.text(file):
            tree.problem(file, 1, "no #pragma once")
    # Device code says so in its opening comment; without nvcc it is left to a machine that has it.
    device = {f for f in headers if "For .cu files" in tree.text(f)[:2000]}
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if not nvcc:
        headers = [f for f in headers if f not in device and "cuda/detail/" not in f]
    includes = ["-I" + tree.path("src"), "-I" + tree.root, "-I" + generated, "-isystem", cuda]
    cache = [shutil.which("ccache")] if shutil.which("ccache") else []
    environment = {**os.environ, "CCACHE_BASEDIR": tree.root, "CCACHE_NOHASHDIR": "1"}

    def compile_alone(file):
        name = file[4:] if file.startswith("src/") else file
        source = os.path.join(work, file.replace("/", "__") + (".cu" if file in device else ".cc"))
        text = f'#include "{name}"\n'
        if not os.path.exists(source) or open(source).read() != text:
            with open(source, "w") as stream:
                stream.write(text)
        command = [nvcc, *DEVICE_FLAGS] if file in device else ["g++", *FLAGS]
        run = subprocess.run(cache + command + includes + ["-c", source, "-o", source + ".o"],
                             cwd=tree.root, env=environment, capture_output=True, text=True)
        errors = [line for line in run.stderr.split("\n") if "error:" in line]
        return file, run.returncode, errors[0] if errors else run.stderr.strip()

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, code, message in pool.map(compile_alone, headers):
            if code:
                tree.problem(file, 1, "does not compile alone: " + message)
    return f"{len(headers)} headers"
