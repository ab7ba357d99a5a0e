// SPDX-License-Identifier: Apache-2.0
//
// Which optional libraries this machine has.
#include <dlfcn.h>

#include "bench/cuda/probes/probe.h"

namespace lr::probes {

void probe_libraries() {
    for (const char* name :
         {"libcublasLt.so.13", "libnccl.so.2", "libcupti.so.13", "libnvidia-ml.so.1"})
        row("dlopen", name, dlopen(name, RTLD_LAZY | RTLD_LOCAL) != nullptr, "(1: found)");
}

} // namespace lr::probes
