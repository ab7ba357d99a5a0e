// SPDX-License-Identifier: Apache-2.0
#include "core/cpus.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sched.h>
#include <sstream>

namespace lr {
namespace {

std::string read_text(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Folder of this process below the cgroup v2 mount: the line "0::/a/b" of /proc/self/cgroup.
std::string cgroup_folder() {
    std::istringstream lines(read_text("/proc/self/cgroup"));
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("0::"))
            return line.substr(3);
    return "";
}

// Every level up to the root may set a quota; the smallest counts. 0: none.
double cgroup_quota() {
    double least = 0;
    std::string folder = cgroup_folder();
    while (true) {
        const double quota = parse_cpu_quota(read_text("/sys/fs/cgroup" + folder + "/cpu.max"));
        if (quota > 0 && (least == 0 || quota < least))
            least = quota;
        if (folder.empty())
            return least;
        folder.resize(folder.find_last_of('/') == std::string::npos ? 0 : folder.find_last_of('/'));
    }
}

} // namespace

std::vector<int> allowed_cpus() {
    std::vector<int> cpus;
    // The kernel refuses a mask smaller than its own, so grow until it fits.
    for (int capacity = CPU_SETSIZE; capacity <= 64 * CPU_SETSIZE; capacity *= 2) {
        cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(capacity));
        const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(capacity));
        const bool known = set && sched_getaffinity(0, bytes, set) == 0;
        for (int cpu = 0; known && cpu < capacity; ++cpu)
            if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set))
                cpus.push_back(cpu);
        CPU_FREE(set);
        if (known)
            break;
    }
    if (cpus.empty())
        cpus.push_back(0);
    return cpus;
}

int usable_cpu_count() {
    const int allowed = static_cast<int>(allowed_cpus().size());
    const double quota = cgroup_quota();
    if (quota <= 0)
        return allowed;
    return std::clamp(static_cast<int>(std::ceil(std::min(quota, 1e6))), 1, allowed);
}

double parse_cpu_quota(const std::string& text) {
    std::istringstream fields(text);
    double quota = 0;
    double period = 0;
    if (!(fields >> quota >> period) || quota <= 0 || period <= 0)
        return 0;
    return quota / period;
}

} // namespace lr
