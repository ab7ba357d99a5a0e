// SPDX-License-Identifier: Apache-2.0
#include "text/values/str.h"

#include <cstring>
#include <limits>

namespace lr::text::jinja {

namespace {

// From here on the result of a concatenation gets room to grow.
constexpr std::size_t kGrowingBytes = 512;

std::uint32_t checked_size(std::size_t bytes) {
    if (bytes > std::numeric_limits<std::uint32_t>::max())
        throw_limit("expected a string of less than 4 GiB, got {} bytes", bytes);
    return static_cast<std::uint32_t>(bytes);
}

Buffer* make_buffer(Arena& arena, std::size_t capacity) {
    const std::uint32_t checked = checked_size(capacity);
    return arena.make<Buffer>(arena.make_array<char>(capacity), 0u, checked, nullptr, 0u, 0u);
}

void add_mark(Arena& arena, Buffer& buffer, std::uint32_t begin, std::uint32_t end) {
    if (buffer.mark_count > 0 && buffer.marks[buffer.mark_count - 1].end == begin) {
        buffer.marks[buffer.mark_count - 1].end = end;
        return;
    }
    if (buffer.mark_count == buffer.mark_capacity) {
        const std::uint32_t capacity = std::max(1u, 2 * buffer.mark_capacity);
        Mark* marks = arena.make_array<Mark>(capacity);
        std::copy_n(buffer.marks, buffer.mark_count, marks);
        buffer.marks = marks;
        buffer.mark_capacity = capacity;
    }
    buffer.marks[buffer.mark_count++] = {begin, end};
}

// The buffer has room.
void append(Arena& arena, Buffer& buffer, Str text) {
    const std::uint32_t at = buffer.size;
    std::memcpy(buffer.bytes + at, text.view().data(), text.size());
    buffer.size += static_cast<std::uint32_t>(text.size());
    text.for_each_outside(
        [&](std::uint32_t b, std::uint32_t e) { add_mark(arena, buffer, at + b, at + e); });
}

} // namespace

const Mark* Str::first_mark() const {
    return std::partition_point(buffer_->marks, buffer_->marks + buffer_->mark_count,
                                [&](const Mark& mark) { return mark.end <= begin_; });
}

bool Str::any_outside() const {
    const Mark* mark = first_mark();
    return !empty() && mark != buffer_->marks + buffer_->mark_count && mark->begin < end_;
}

Str borrow_str(Arena& arena, std::string_view text, bool outside) {
    const std::uint32_t size = checked_size(text.size());
    // Never written to: capacity equals size.
    Buffer* buffer =
        arena.make<Buffer>(const_cast<char*>(text.data()), size, size, nullptr, 0u, 0u);
    if (outside && size > 0)
        add_mark(arena, *buffer, 0, size);
    return Str(buffer);
}

Str make_str(Context& context, std::string_view text, bool outside) {
    char* bytes = context.arena.make_array<char>(text.size());
    std::copy(text.begin(), text.end(), bytes);
    return borrow_str(context.arena, {bytes, text.size()}, outside);
}

Str concat(Context& context, Str left, Str right) {
    if (right.empty())
        return left;
    if (left.empty())
        return right;
    const std::size_t size = left.size() + right.size();
    Buffer* buffer = left.buffer_;
    if (left.end_ == buffer->size && buffer->capacity - buffer->size >= right.size()) {
        append(context.arena, *buffer, right);
        left.end_ = buffer->size;
        return left;
    }
    buffer = make_buffer(context.arena, size < kGrowingBytes ? size : 2 * size);
    append(context.arena, *buffer, left);
    append(context.arena, *buffer, right);
    return Str(buffer);
}

void Builder::mark(std::size_t begin, std::size_t end) {
    if (!outside_.empty() && outside_.back().end == begin)
        outside_.back().end = end;
    else
        outside_.push_back({begin, end});
}

void Builder::add(Str text) {
    const std::size_t at = text_.size();
    context_.arena.charge(text.size());
    text_ += text.view();
    text.for_each_outside([&](std::uint32_t b, std::uint32_t e) { mark(at + b, at + e); });
}

void Builder::add(std::string_view text, bool outside) {
    context_.arena.charge(text.size());
    if (outside && !text.empty())
        mark(text_.size(), text_.size() + text.size());
    text_ += text;
}

void Builder::repeat(std::string_view text, std::size_t count, bool outside) {
    if (text.empty() || count == 0)
        return;
    if (count > context_.limits().memory_bytes / text.size())
        throw_limit("expected at most {} bytes of values, got more",
                    context_.limits().memory_bytes);
    context_.arena.charge(text.size() * count);
    if (outside)
        mark(text_.size(), text_.size() + text.size() * count);
    for (std::size_t i = 0; i < count; ++i)
        text_ += text;
}

Str Builder::finish() {
    Buffer* buffer = make_buffer(context_.arena, text_.size());
    std::copy(text_.begin(), text_.end(), buffer->bytes);
    buffer->size = buffer->capacity;
    for (const ByteRange& range : outside_)
        add_mark(context_.arena, *buffer, static_cast<std::uint32_t>(range.begin),
                 static_cast<std::uint32_t>(range.end));
    return Str(buffer);
}

} // namespace lr::text::jinja
