# SPDX-License-Identifier: Apache-2.0
import re

import cpp

NAME = "layers"
PURPOSE = "a folder includes only what is below it; third-party headers stay where they belong"

# The rows of docs/ARCHITECTURE.md and of CMakeLists.txt.
USES = {
    "core": "",
    "numerics": "core",
    "text": "core",
    "comm": "core numerics",
    "checkpoint": "core numerics",
    "model": "core numerics checkpoint",
    "ops": "core numerics",
    "experts": "core numerics ops",
    "graph": "core numerics model ops experts",
    "cpu": "core numerics ops experts",
    "cuda": "core numerics ops experts",
    "engine": "core numerics checkpoint model ops experts graph cpu cuda comm",
    "verify": "core numerics model ops graph cpu cuda engine",
    "trace": "core graph engine",
    "report": "core ops graph experts trace",
    "sched": "core engine",
    "server": "core text sched",
    "cli": "core numerics text comm checkpoint model ops experts graph cpu cuda engine verify "
           "trace report sched server",
}
USES = {folder: set(row.split()) for folder, row in USES.items()}

BANNED_FOLDERS = {"utils", "util", "common", "misc", "helpers", "helper"}

CUDA_PLACES = r"src/cuda/(?!(?:norm|gdn|attention|experts|gemm|quant|sampling|collective)/[^/]*\.h$" \
              r"|[^/]*\.h$)|src/comm/nccl|src/engine/capture|tests/cuda/.*\.cu$|bench/cuda/.*\.(?:cu|h)$"

# Header pattern -> where it may be included.
THIRD_PARTY = [
    (r"tl/expected\.hpp", r"src/core/status\.h$"),
    (r"fmt/", r"src/|tests/|bench/|cmake/fmt\.cc$"),
    (r"boost/json", r"src/core/[^/]*\.cc$"),
    (r"boost/(asio|beast)", r"src/server/[^/]*\.cc$"),
    (r"CLI/", r"src/cli/(?:bench/|tools/)?[^/]*\.(cc|h)$"),
    (r"utf8proc\.h", r"(src|tests)/text/(?:values/)?[^/]*\.cc$"),
    (r"(gtest|gmock)/", r"tests/|bench/"),
    (r"pcre2\.h", r"tests/text/"),
    (r"benchmark/", r"bench/"),
    (r"(cuda|cub/|cute/|cutlass/|nccl|mma\.h|cooperative_groups|driver_types|vector_types)", CUDA_PLACES),
]

STANDARD = set("""
algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes
climits cmath compare complex concepts condition_variable csignal cstdarg cstddef cstdint cstdio
cstdlib cstring ctime deque exception filesystem forward_list fstream functional future
initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
memory_resource mutex new numbers numeric optional ostream queue random ratio regex semaphore set
shared_mutex span sstream stack stdexcept stop_token streambuf string string_view system_error
thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant
vector
""".split())
# Linux and the processor: not in headers.
SYSTEM = re.compile(r"([a-z]mmintrin|x86intrin|cpuid|dlfcn|fcntl|sched|pthread|unistd|signal|setjmp|termios|poll"
                    r"|sys/[a-z]+|linux/[a-z_]+|netinet/[a-z]+|arpa/inet|netdb)\.h$")


def check(tree):
    files = tree.select(".h", ".cc", ".cu", ".cuh", ".inc")
    count = 0
    for file in files:
        for number, name, quoted in cpp.includes(tree.text(file)):
            count += 1
            if quoted:
                own(tree, file, number, name)
            else:
                foreign(tree, file, number, name)
    for folder in sorted({"/".join(f.split("/")[:-1]) for f in tree.files}):
        for part in folder.split("/"):
            if part.lower() in BANNED_FOLDERS:
                tree.problem(folder, 1, f"no folder is called '{part}': name it after what it does")
    cmake(tree)
    return f"{count} includes"


def own(tree, file, number, name):
    top, folder = file.split("/")[0], file.split("/")[1]
    target = name.split("/")[0]
    if target in ("tests", "bench"):
        if top == "src":
            tree.problem(file, number, f'"{name}": src does not include {target}')
        return
    if target not in USES or "/" not in name:
        tree.problem(file, number, f'"{name}": write the path from src/ ("core/status.h")')
        return
    if top != "src" or folder == target:
        return
    if folder not in USES:
        tree.problem(file, number, f"folder src/{folder} has no row in scripts/gates/layers.py")
    elif target not in USES[folder] and not tree.allowed(NAME, file):
        tree.problem(file, number, f'"{name}": {folder} may use only '
                                   f"{', '.join(sorted(USES[folder])) or 'nothing'}")


def foreign(tree, file, number, name):
    if name in STANDARD:
        return
    if SYSTEM.match(name):
        if file.endswith(".h") and file.startswith("src/") and not tree.allowed(NAME, file):
            tree.problem(file, number, f"<{name}> belongs in a source file, not in a header")
        return
    for pattern, places in THIRD_PARTY:
        if re.match(pattern, name):
            if not re.match(places, file) and not tree.allowed(NAME, file):
                tree.problem(file, number, f"<{name}> may not be included here")
            return
    tree.problem(file, number, f"<{name}> is not in the list of headers of scripts/gates/layers.py")


def cmake(tree):
    """The link directions are the include directions."""
    if "CMakeLists.txt" not in tree.files:
        return
    text = tree.text("CMakeLists.txt")
    linked = {}
    for match in re.finditer(r"^lr_folder\(([^)]*)\)", text, re.M):
        words = match.group(1).split()
        line = text.count("\n", 0, match.start()) + 1
        linked[words[0]] = line
        if words[0] not in USES or set(words[1:]) != USES[words[0]]:
            tree.problem("CMakeLists.txt", line, f"lr_folder({words[0]} ...) differs from "
                                                 "scripts/gates/layers.py")
    for folder in set(USES) - set(linked):
        tree.problem("CMakeLists.txt", 1, f"lr_folder({folder} ...) is missing")
