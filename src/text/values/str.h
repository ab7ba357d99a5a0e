// SPDX-License-Identifier: Apache-2.0
//
// text/values/str.h: the strings of templates: UTF-8 that remembers which bytes came from outside.
//
// A Str is a stretch of a Buffer. Slicing copies nothing; bytes and marks of a buffer never change,
// only more may be put behind them, so that `text = text + more` in a loop is linear.
#pragma once

#include "text/marked_text.h"
#include "text/values/context.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lr::text::jinja {

struct Mark {
    std::uint32_t begin, end; // bytes of a buffer that came from outside
};

struct Buffer {
    char* bytes;
    std::uint32_t size, capacity;
    Mark* marks; // ascending, neither overlapping nor touching
    std::uint32_t mark_count, mark_capacity;
};

class Str {
  public:
    Str() = default; // uninitialised
    explicit Str(Buffer* whole) : buffer_(whole), begin_(0), end_(whole->size) {}

    std::string_view view() const { return {buffer_->bytes + begin_, end_ - begin_}; }
    std::size_t size() const { return end_ - begin_; }
    bool empty() const { return begin_ == end_; }

    // Bytes [begin, end) of this one.
    Str sub(std::size_t begin, std::size_t end) const {
        Str part = *this;
        part.begin_ = begin_ + static_cast<std::uint32_t>(begin);
        part.end_ = begin_ + static_cast<std::uint32_t>(end);
        return part;
    }
    Str sub(std::size_t begin) const { return sub(begin, size()); }

    bool any_outside() const;
    // Calls f(begin, end) with every stretch from outside, in order, in bytes of this string.
    template <typename F> void for_each_outside(F f) const {
        if (empty())
            return;
        const Mark* last = buffer_->marks + buffer_->mark_count;
        for (const Mark* mark = first_mark(); mark != last && mark->begin < end_; ++mark)
            f(std::max(mark->begin, begin_) - begin_, std::min(mark->end, end_) - begin_);
    }

  private:
    friend Str concat(Context& context, Str left, Str right);
    const Mark* first_mark() const; // the first that ends behind begin_

    Buffer* buffer_;
    std::uint32_t begin_, end_;
};

// A copy.
Str make_str(Context& context, std::string_view text, bool outside = false);
// Not a copy: the bytes must outlive the arena.
Str borrow_str(Arena& arena, std::string_view text, bool outside = false);
Str concat(Context& context, Str left, Str right);

// Says of byte after byte (ascending) whether it came from outside.
class OutsideCursor {
  public:
    explicit OutsideCursor(Str text) {
        text.for_each_outside([&](std::uint32_t b, std::uint32_t e) { marks_.push_back({b, e}); });
    }
    bool at(std::size_t byte) {
        while (next_ < marks_.size() && marks_[next_].end <= byte)
            ++next_;
        return next_ < marks_.size() && marks_[next_].begin <= byte;
    }

  private:
    std::vector<Mark> marks_;
    std::size_t next_ = 0;
};

// Text put together piece by piece.
class Builder {
  public:
    explicit Builder(Context& context) : context_(context) {}

    void add(Str text);
    void add(std::string_view text, bool outside);
    void add_inside(std::string_view text) { add(text, false); }
    void repeat(std::string_view text, std::size_t count, bool outside);
    std::size_t size() const { return text_.size(); }
    std::string_view view() const { return text_; }
    Str finish();
    MarkedText take() { return {std::move(text_), std::move(outside_)}; }

  private:
    void mark(std::size_t begin, std::size_t end);

    Context& context_;
    std::string text_;
    std::vector<ByteRange> outside_;
};

} // namespace lr::text::jinja
