// SPDX-License-Identifier: Apache-2.0
#include "comm/local.h"

#include "comm/local_rank.h"
#include "numerics/convert.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace lr::comm {
namespace {

constexpr std::int64_t kPiece = 512;         // floats added at a time
constexpr std::int64_t kElementGrain = 8192; // of one thread's turn

// Calls visit(first element, count) for the pieces of elements [first, end) of a matrix
// that are contiguous, none longer than `longest`.
template <typename Visit> void for_each_piece(ConstView matrix, std::int64_t first,
                                              std::int64_t end, std::int64_t longest, Visit visit) {
    const std::int64_t width = matrix.shape.row_count();
    while (first < end) {
        const std::int64_t count = std::min({longest, width - first % width, end - first});
        visit(first, count);
        first += count;
    }
}

// Bytes from a matrix's address to one of its elements, counted along its shape.
std::int64_t element_offset(ConstView matrix, std::int64_t element) {
    const std::int64_t width = matrix.shape.row_count();
    return dtype_bytes(matrix.dtype, element / width * matrix.row_stride + element % width);
}

// Rank r of `ranks` adds up the elements from here to share_begin(r + 1).
std::int64_t share_begin(std::int64_t elements, int rank, int ranks) {
    return elements * rank / ranks;
}

Call call_of(const char* operation, std::string_view at, ConstView x) {
    return {.operation = operation,
            .at = at,
            .dtype = x.dtype,
            .shape = x.shape,
            .row_stride = x.row_stride,
            .views = {x}};
}

} // namespace

LocalRank::~LocalRank() {
    if (leaves_)
        meetings_->leave(group_.members[static_cast<std::size_t>(member_)]);
}

Status LocalRank::refuse(const Status& why) {
    const int rank = group_.members[static_cast<std::size_t>(member_)];
    return meetings_->fail(why.with_context(fmt::format("rank {}", rank)));
}

void LocalRank::abandon(const Status& why) {
    static_cast<void>(refuse(why));
}

Result<std::unique_ptr<Communicator>> LocalRank::split(int colour, std::string name) {
    LR_TRY(meet({.operation = "split", .at = "start", .payload = colour}));
    const std::uint64_t phase = group_.phase.load(std::memory_order_relaxed);
    std::vector<int> members;
    int mine = 0;
    for (int r = 0; r < size(); ++r) {
        if (Meetings::offer(group_, r).payload != colour)
            continue;
        if (r == member_)
            mine = static_cast<int>(members.size());
        members.push_back(group_.members[static_cast<std::size_t>(r)]);
    }
    MeetingGroup& group = meetings_->group(group_, phase, colour, std::move(members), name);
    LR_TRY(release("start"));
    return std::make_unique<LocalRank>(meetings_, group, mine, pool_, false);
}

Status LocalRank::barrier(std::string_view at) {
    return meet({.operation = "barrier", .at = at});
}

Result<PeerRows> LocalRank::exchange(std::string_view at, ConstView mine) {
    LR_TRY(meet(call_of("exchange", at, mine)));
    PeerRows rows{};
    for (int r = 0; r < size(); ++r)
        rows[static_cast<std::size_t>(r)] = theirs(r, 0).data;
    return rows;
}

Status LocalRank::release(std::string_view at) {
    return meet({.operation = "release", .at = at});
}

// Each rank adds up its share of the elements, then all copy the shares: x is read once in all.
// That works in place too: nobody but its adder reads a share of x before it is overwritten.
Status LocalRank::all_reduce(std::string_view at, ConstView x, View y) {
    if (x.dtype != y.dtype || x.shape != y.shape || x.shape.rank() != 2 ||
        (x.dtype != DType::kBF16 && x.dtype != DType::kF32))
        return refuse(fail(Code::kInternal,
                           "all_reduce at {}: expected x and y [n,D] of one type, bf16 or f32, "
                           "got {} {} and {} {}",
                           at, dtype_name(x.dtype), x.shape.to_string(), dtype_name(y.dtype),
                           y.shape.to_string()));
    Call call = call_of("all_reduce", at, x);
    call.out = y;
    LR_TRY(meet(call));
    const std::int64_t elements = x.shape.count();
    const std::int64_t first = share_begin(elements, member_, size());
    const std::int64_t count = share_begin(elements, member_ + 1, size()) - first;
    pool_.parallel_for(count, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
        sum_elements(y, first + begin, first + end);
    });
    call.operation = "all_reduce (second half)";
    LR_TRY(meet(call));
    copy_elements(y);
    return release(at);
}

void LocalRank::sum_elements(View y, std::int64_t first, std::int64_t end) const {
    std::array<float, kPiece> sum, term;
    const ConstView x = theirs(member_, 0);
    for_each_piece(x, first, end, kPiece, [&](std::int64_t element, std::int64_t count) {
        const std::int64_t from = element_offset(x, element);
        numerics::decode_to_f32(x.dtype, theirs(0, 0).data + from, count, sum.data());
        for (int r = 1; r < size(); ++r) {
            numerics::decode_to_f32(x.dtype, theirs(r, 0).data + from, count, term.data());
            for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
                sum[i] += term[i];
        }
        numerics::encode_from_f32(y.dtype, sum.data(), count, y.data + element_offset(y, element));
    });
}

void LocalRank::copy_elements(View y) const {
    for (int r = 0; r < size(); ++r) {
        if (r == member_)
            continue;
        const std::int64_t first = share_begin(y.shape.count(), r, size());
        const std::int64_t end = share_begin(y.shape.count(), r + 1, size());
        const std::byte* from = Meetings::offer(group_, r).out.data;
        for_each_piece(y, first, end, end - first, [&](std::int64_t element, std::int64_t count) {
            const std::int64_t offset = element_offset(y, element);
            std::memcpy(y.data + offset, from + offset,
                        static_cast<std::size_t>(dtype_bytes(y.dtype, count)));
        });
    }
}

Status LocalRank::all_gather(std::string_view at, ConstView x, View y) {
    if (x.dtype != y.dtype || x.shape.rank() != 2 ||
        y.shape != Shape{x.shape[0], size() * x.shape[1]})
        return refuse(fail(Code::kInternal, "all_gather at {}: expected y {} {}, got {} {}", at,
                           dtype_name(x.dtype),
                           Shape{x.rows(), size() * x.shape.row_count()}.to_string(),
                           dtype_name(y.dtype), y.shape.to_string()));
    LR_TRY(meet(call_of("all_gather", at, x)));
    const std::int64_t bytes = dtype_bytes(x.dtype, x.shape[1]);
    pool_.parallel_for(x.rows(), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            for (int r = 0; r < size(); ++r)
                std::memcpy(y.row(i) + r * bytes, theirs(r, 0).row(i),
                            static_cast<std::size_t>(bytes));
    });
    return release(at);
}

LocalWorld::LocalWorld(int ranks, double limit_seconds)
    : meetings_(std::make_shared<Meetings>(ranks, limit_seconds)) {}

std::unique_ptr<Communicator> LocalWorld::join(int rank, ThreadPool& pool) {
    LR_CHECK(rank >= 0 && rank < meetings_->world().size());
    return std::make_unique<LocalRank>(meetings_, meetings_->world(), rank, pool, true);
}

Status LocalWorld::failure() const {
    return meetings_->failure();
}

void LocalWorld::reset() {
    meetings_->reset();
}

} // namespace lr::comm
