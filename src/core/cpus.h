// SPDX-License-Identifier: Apache-2.0
//
// core/cpus.h: which processors this process may use.
#pragma once

#include <string>
#include <vector>

namespace lr {

// Numbers of the processors in the affinity mask (taskset, cpuset cgroups), ascending; never empty.
std::vector<int> allowed_cpus();

// How many threads can really run at once: allowed_cpus(), less where a cgroup quota (a container's
// --cpus) is smaller; a part of a processor counts as a whole one.
int usable_cpu_count();

// The quota in processors that a cgroup v2 "cpu.max" text states ("150000 100000" is 1.5); 0 when
// there is none ("max 100000") or the text is something else.
double parse_cpu_quota(const std::string& text);

} // namespace lr
