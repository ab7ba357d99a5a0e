// SPDX-License-Identifier: Apache-2.0
//
// core/host_device.h: LR_HD marks an inline function that a host test and a kernel share. It is
// `__host__ __device__` under nvcc and nothing elsewhere.
#pragma once

#if defined(__CUDACC__)
#define LR_HD __host__ __device__
#else
#define LR_HD
#endif
