// SPDX-License-Identifier: Apache-2.0
//
// cuda/device.h: which GPUs there are and whether this build can use them.
//
// Every header of cuda/ is free of CUDA headers, so that any folder may include it and a build
// without the CUDA toolkit has the same functions (stub.cc): there each returns kUnsupported, "this
// build has no CUDA". No function aborts for lack of a driver or a GPU.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lr::cuda {

struct DeviceInfo {
    int index = 0; // as CUDA_VISIBLE_DEVICES leaves it
    std::string name;
    int major = 0, minor = 0; // compute capability
    int multiprocessors = 0;
    std::int64_t memory_bytes = 0;
    std::int64_t free_bytes = 0;
    std::int64_t l2_bytes = 0;
    std::string refusal; // why this build does not run on it; empty: it does
};

struct DeviceList {
    std::string driver;  // newest CUDA version the driver supports, "13.0"
    std::string runtime; // CUDA version this build was made with
    std::vector<DeviceInfo> devices;
};

// All visible GPUs. kUnsupported: a build without CUDA. kNotFound: no driver or no GPU. kInternal:
// anything else that CUDA reports. Each message is one line.
Result<DeviceList> list_devices();

// Makes a GPU the calling thread's. kNotFound: there is no such GPU; kUnsupported: this build does
// not run on it, with the reason.
Status use_device(int index);

} // namespace lr::cuda
