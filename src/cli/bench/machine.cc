// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/machine.h"

#include "cli/bench/peaks.h"
#include "core/cpus.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sys/mman.h>

namespace lr::cli {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
// A machine that does not say has less than this, as a rule.
constexpr std::int64_t kUnknownCache = 64 * kMiB;
// Enough for one of them to be undisturbed; a machine that is slow by nature is given less.
constexpr int kRounds = 5;
constexpr double kMostSeconds = 0.5;
// What one thread takes at a time: long enough for eight streams of some pages each, short enough
// that threads end together.
constexpr std::int64_t kChunk = 8 * kMiB;

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

// The rest of the first line of `path` that starts with `key`, without colon and blanks.
std::string field(const std::string& path, std::string_view key) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(key))
            continue;
        const std::size_t at = line.find_first_not_of(" \t:", key.size());
        return at == std::string::npos ? "" : line.substr(at);
    }
    return "";
}

std::int64_t number(const std::string& text) {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// "32768K"
std::int64_t size_of(const std::string& text) {
    const std::int64_t unit = text.ends_with("K") ? 1024 : text.ends_with("M") ? kMiB : 1;
    return number(text) * unit;
}

// Processors that share a cache name the same list, so each list is counted once.
std::int64_t last_level_caches() {
    std::set<std::string> seen;
    std::int64_t total = 0;
    for (int cpu : allowed_cpus()) {
        std::int64_t best_level = 0, bytes = 0;
        std::string sharing;
        for (int index = 0; index < 8; ++index) {
            const std::string folder =
                fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}/", cpu, index);
            const std::int64_t level = number(first_line(folder + "level"));
            if (level <= best_level)
                continue;
            best_level = level;
            bytes = size_of(first_line(folder + "size"));
            sharing = first_line(folder + "shared_cpu_list");
        }
        if (bytes > 0 && seen.insert(sharing).second)
            total += bytes;
    }
    return total;
}

// "always [madvise] never"
std::string chosen_word(const std::string& text) {
    const std::size_t open = text.find('['), close = text.find(']');
    if (open == std::string::npos || close == std::string::npos || close < open)
        return "unknown";
    return text.substr(open + 1, close - open - 1);
}

double best_read(ThreadPool& pool, std::span<const std::byte> memory) {
    double best = 0;
    const Stopwatch all;
    for (int round = 0; round < kRounds && (round == 0 || all.seconds() < kMostSeconds); ++round)
        for (const ReadWay& way : read_ways()) {
            const Stopwatch watch;
            pool.parallel_for(std::ssize(memory), kChunk,
                              [&](std::int64_t begin, std::int64_t end) {
                                  read_memory(memory.data() + begin, end - begin, way);
                              });
            best = std::max(best, static_cast<double>(memory.size()) / watch.seconds());
        }
    return best;
}

double best_copy(ThreadPool& pool, std::span<std::byte> memory) {
    const auto half = std::ssize(memory) / 2;
    double best = 0;
    for (int round = 0; round < kRounds; ++round) {
        const Stopwatch watch;
        pool.parallel_for(half, kChunk, [&](std::int64_t begin, std::int64_t end) {
            std::copy_n(memory.data() + begin, end - begin, memory.data() + half + begin);
        });
        best = std::max(best, 2.0 * static_cast<double>(half) / watch.seconds());
    }
    return best;
}

double best_flops(ThreadPool& pool) {
    constexpr std::int64_t kRepeats = 1 << 20;
    // Several pieces a thread: one that is held up does less of them.
    const std::int64_t pieces = 4 * pool.size();
    double best = 0;
    for (int round = 0; round < kRounds; ++round) {
        const Stopwatch watch;
        pool.parallel_for(pieces, 1, [&](std::int64_t begin, std::int64_t end) {
            multiply_add(kRepeats * (end - begin));
        });
        best = std::max(best, multiply_add_flops(kRepeats * pieces) / watch.seconds());
    }
    return best;
}

} // namespace

MachineFacts machine_facts() {
    MachineFacts facts;
    facts.processor = field("/proc/cpuinfo", "model name");
    if (facts.processor.empty())
        facts.processor = "unknown processor";
    facts.cache_bytes = last_level_caches();
    facts.free_bytes = number(field("/proc/meminfo", "MemAvailable")) * 1024;
    facts.huge_pages = chosen_word(first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
    return facts;
}

// Each thread's schedstat: nanoseconds on a processor, nanoseconds in the queue, turns.
double BusyMeter::waited_seconds() {
    double total = 0;
    std::error_code ignored;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
        std::ifstream file(task.path() / "schedstat");
        double ran = 0, waited = 0;
        if (file >> ran >> waited)
            total += waited * 1e-9;
    }
    return total;
}

double BusyMeter::share(int threads) const {
    return std::clamp((waited_seconds() - waited_) / (watch_.seconds() * threads), 0.0, 1.0);
}

std::int64_t cold_bytes(const MachineFacts& facts) {
    return 2 * (facts.cache_bytes > 0 ? facts.cache_bytes : kUnknownCache);
}

double Floors::seconds(const ops::Cost& cost) const {
    return std::max(static_cast<double>(cost.bytes()) / read,
                    static_cast<double>(cost.flops) / flops);
}

void Floors::raise(const Floors& other) {
    read = std::max(read, other.read);
    copy = std::max(copy, other.copy);
    flops = std::max(flops, other.flops);
}

Result<FloorMeter> FloorMeter::make() {
    const MachineFacts facts = machine_facts();
    const std::int64_t wanted = std::max(256 * kMiB, 2 * cold_bytes(facts));
    if (facts.free_bytes > 0 && wanted > facts.free_bytes / 2)
        return fail(Code::kResourceExhausted,
                    "memory to measure bandwidth on: expected {} free, got {}",
                    format_bytes(2 * wanted), format_bytes(facts.free_bytes));
    FloorMeter meter;
    LR_TRY_ASSIGN(meter.buffer_, Buffer::allocate(wanted, "memory to measure bandwidth on"));
    // Where the system hands out huge pages on request only; refused is as good as not asked.
    const auto page = std::int64_t{4096};
    std::byte* aligned = meter.buffer_.data() + (page - static_cast<std::int64_t>(kBufferAlign));
    static_cast<void>(madvise(aligned, static_cast<std::size_t>(wanted - page), MADV_HUGEPAGE));
    // Pages that were never written all read from the same page of zeros.
    std::fill_n(meter.buffer_.data(), wanted, std::byte{1});
    return meter;
}

Floors FloorMeter::measure(ThreadPool& pool, bool with_copy) const {
    const std::span<std::byte> memory(buffer_.data(), static_cast<std::size_t>(buffer_.size()));
    return {.threads = pool.size(),
            .read = best_read(pool, memory),
            .copy = with_copy ? best_copy(pool, memory) : 0,
            .flops = best_flops(pool)};
}

bool FloorMeter::in_huge_pages() const {
    // smaps lists each mapping's range, then what it holds.
    std::ifstream file("/proc/self/smaps");
    const auto address = reinterpret_cast<std::uintptr_t>(buffer_.data()) + kBufferAlign;
    bool inside = false;
    std::int64_t huge = 0;
    for (std::string line; std::getline(file, line);) {
        std::uintptr_t first = 0, last = 0;
        const char* end = line.data() + line.size();
        const auto [dash, error] = std::from_chars(line.data(), end, first, 16);
        if (error == std::errc() && dash != end && *dash == '-' &&
            std::from_chars(dash + 1, end, last, 16).ec == std::errc())
            inside =
                first < address + static_cast<std::uintptr_t>(buffer_.size()) && last > address;
        else if (inside && line.starts_with("AnonHugePages:"))
            huge += 1024 * number(line.substr(line.find_first_of("0123456789")));
    }
    return huge > buffer_.size() / 2;
}

} // namespace lr::cli
