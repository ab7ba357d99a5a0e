// SPDX-License-Identifier: Apache-2.0
#include "text/unicode.h"

#include "core/check.h"
#include "text/unicode_tables.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

namespace lr::text {

namespace {

constexpr char32_t kReplacement = 0xFFFD;

// Length of the sequence a lead byte announces (0: no lead byte) and the range that its second byte
// must lie in; the ranges exclude overlong forms, surrogates and values above U+10FFFF.
struct Lead {
    int length;
    unsigned char second_min, second_max;
};

Lead lead_of(unsigned char byte) {
    if (byte < 0x80)
        return {1, 0, 0};
    if (byte < 0xC2)
        return {0, 0, 0};
    if (byte < 0xE0)
        return {2, 0x80, 0xBF};
    if (byte < 0xF0)
        return {3, static_cast<unsigned char>(byte == 0xE0 ? 0xA0 : 0x80),
                static_cast<unsigned char>(byte == 0xED ? 0x9F : 0xBF)};
    if (byte < 0xF5)
        return {4, static_cast<unsigned char>(byte == 0xF0 ? 0x90 : 0x80),
                static_cast<unsigned char>(byte == 0xF4 ? 0x8F : 0xBF)};
    return {0, 0, 0};
}

std::uint32_t class_bits(char32_t code_point) {
    const std::uint32_t wanted = static_cast<std::uint32_t>(code_point) << 3 | 7;
    const std::uint32_t* end = kClassRuns + kClassRunCount;
    return *(std::upper_bound(kClassRuns, end, wanted) - 1) & 7;
}

// Ranges without decompositions, combining classes, or characters that compose with the one before:
// a text of nothing else, besides what is below U+0300, is in NFC.
struct CodeRange {
    char32_t first, last;
};
constexpr CodeRange kInert[] = {
    {0x0400, 0x0482}, {0x048A, 0x0530}, {0x2010, 0x2027}, {0x2030, 0x205E},   {0x2190, 0x21FF},
    {0x2500, 0x27FF}, {0x3001, 0x3029}, {0x3041, 0x3096}, {0x30A0, 0x30FF},   {0x4E00, 0x9FFF},
    {0xAC00, 0xD7A3}, {0xFE0E, 0xFE0F}, {0xFF00, 0xFFEF}, {0x1F300, 0x1FAFF},
};

// What the reference normaliser, whose tables are those of Unicode 9.0, does not know: characters
// that later got a combining class or a decomposition. It leaves them where they are, and so do we.
constexpr CodeRange kYounger[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
    {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
    {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11930, 0x11930}, {0x11935, 0x11935}, {0x11938, 0x11938}, {0x1193D, 0x1193E},
    {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47},
    {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97},
    {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
    {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
};

// `ranges` in order.
bool is_in(std::span<const CodeRange> ranges, char32_t c) {
    const auto behind =
        std::upper_bound(ranges.begin(), ranges.end(), c,
                         [](char32_t value, CodeRange r) { return value < r.first; });
    return behind != ranges.begin() && c <= std::prev(behind)->last;
}

// Canonical decomposition of one character, marks not yet in order.
void append_decomposed(std::vector<utf8proc_int32_t>& out, char32_t code_point) {
    constexpr utf8proc_ssize_t kMaxParts = 32; // the longest canonical decomposition has 4
    utf8proc_int32_t parts[kMaxParts];
    int boundary_class = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), parts, kMaxParts,
                                UTF8PROC_DECOMPOSE, &boundary_class);
    LR_CHECK(count >= 1 && count <= kMaxParts);
    out.insert(out.end(), parts, parts + count);
}

// Canonical order: runs of marks (combining class > 0) sorted by class, equals kept in order. The
// library's own sort is quadratic in the run, too slow for a hostile text.
void order_marks(std::vector<utf8proc_int32_t>& code_points) {
    const auto combining_class = [](utf8proc_int32_t c) {
        return utf8proc_get_property(c)->combining_class;
    };
    auto begin = code_points.begin();
    while (begin != code_points.end()) {
        auto end = begin;
        while (end != code_points.end() && combining_class(*end) > 0)
            ++end;
        if (end - begin > 1)
            std::stable_sort(begin, end, [&](utf8proc_int32_t a, utf8proc_int32_t b) {
                return combining_class(a) < combining_class(b);
            });
        begin = end == begin ? begin + 1 : end;
    }
}

// Orders and composes the decomposed characters, appends them to `out` and empties the list.
void append_composed(std::vector<utf8proc_int32_t>& code_points, std::string& out) {
    order_marks(code_points);
    const utf8proc_ssize_t count = utf8proc_normalize_utf32(
        code_points.data(), static_cast<utf8proc_ssize_t>(code_points.size()),
        static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    LR_CHECK(count >= 0);
    for (utf8proc_ssize_t i = 0; i < count; ++i)
        append_utf8(out, static_cast<char32_t>(code_points[static_cast<std::size_t>(i)]));
    code_points.clear();
}

} // namespace

Utf8Step step_utf8(std::string_view bytes) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const Lead lead = lead_of(byte(0));
    if (lead.length == 0)
        return {Utf8Step::Kind::kInvalid, 1, kReplacement};
    if (lead.length == 1)
        return {Utf8Step::Kind::kCharacter, 1, byte(0)};
    char32_t code_point = byte(0) & (0x7Fu >> lead.length);
    for (int i = 1; i < lead.length; ++i) {
        if (static_cast<std::size_t>(i) == bytes.size())
            return {Utf8Step::Kind::kTruncated, i, kReplacement};
        const unsigned char next = byte(static_cast<std::size_t>(i));
        const bool fits =
            i == 1 ? next >= lead.second_min && next <= lead.second_max : (next & 0xC0) == 0x80;
        if (!fits)
            return {Utf8Step::Kind::kInvalid, i, kReplacement};
        code_point = code_point << 6 | (next & 0x3Fu);
    }
    return {Utf8Step::Kind::kCharacter, lead.length, code_point};
}

std::optional<std::size_t> first_invalid_utf8(std::string_view bytes) {
    std::size_t at = 0;
    while (at < bytes.size()) {
        if (static_cast<unsigned char>(bytes[at]) < 0x80) {
            ++at;
            continue;
        }
        const Utf8Step step = step_utf8(bytes.substr(at));
        if (step.kind != Utf8Step::Kind::kCharacter)
            return at;
        at += static_cast<std::size_t>(step.length);
    }
    return std::nullopt;
}

void append_utf8(std::string& out, char32_t code_point) {
    const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
    if (code_point < 0x80) {
        put(code_point);
    } else if (code_point < 0x800) {
        put(0xC0 | code_point >> 6);
        put(0x80 | (code_point & 0x3F));
    } else if (code_point < 0x10000) {
        put(0xE0 | code_point >> 12);
        put(0x80 | (code_point >> 6 & 0x3F));
        put(0x80 | (code_point & 0x3F));
    } else {
        put(0xF0 | code_point >> 18);
        put(0x80 | (code_point >> 12 & 0x3F));
        put(0x80 | (code_point >> 6 & 0x3F));
        put(0x80 | (code_point & 0x3F));
    }
}

std::string replace_invalid_utf8(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    while (!bytes.empty()) {
        const Utf8Step step = step_utf8(bytes);
        const auto length = static_cast<std::size_t>(step.length);
        if (step.kind == Utf8Step::Kind::kCharacter)
            out += bytes.substr(0, length);
        else
            append_utf8(out, kReplacement);
        bytes.remove_prefix(length);
    }
    return out;
}

CharClass char_class(char32_t code_point) {
    return static_cast<CharClass>(class_bits(code_point) & 3);
}

bool is_white_space(char32_t c) {
    if (c < 0x80)
        return c == ' ' || (c >= 0x09 && c <= 0x0D);
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view without_trailing_space(std::string_view text) {
    std::size_t end = 0; // of the last character that is none
    for (std::size_t at = 0; at < text.size();) {
        const Utf8Step step = step_utf8(text.substr(at));
        at += static_cast<std::size_t>(step.length);
        if (step.kind != Utf8Step::Kind::kCharacter || !is_white_space(step.code_point))
            end = at;
    }
    return text.substr(0, end);
}

bool is_word(char32_t code_point) {
    return (class_bits(code_point) & 4) != 0;
}

namespace {

// The next character from `at` on that may change, or change with, the one before it; size() if
// none.
std::size_t next_uncertain(std::string_view text, std::size_t at) {
    while (at < text.size()) {
        // U+0300 is CC 80: a lead byte below CC belongs to a smaller code point.
        if (static_cast<unsigned char>(text[at]) < 0xCC) {
            ++at;
            continue;
        }
        const Utf8Step step = step_utf8(text.substr(at));
        if (!is_in(kInert, step.code_point))
            break;
        at += static_cast<std::size_t>(step.length);
    }
    return at;
}

// The next character from `at` on that stands for itself whatever is before it.
std::size_t next_inert(std::string_view text, std::size_t at) {
    while (at < text.size()) {
        const Utf8Step step = step_utf8(text.substr(at));
        if (step.code_point < 0x300 || is_in(kInert, step.code_point))
            break;
        at += static_cast<std::size_t>(step.length);
    }
    return at;
}

// Where the character before `at` begins, or `at` if that is `begin`.
std::size_t character_before(std::string_view text, std::size_t begin, std::size_t at) {
    if (at == begin)
        return at;
    do
        --at;
    while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
    return at;
}

// The normalised text, written stretch by stretch, and where its bytes came from.
class NfcWriter {
  public:
    NfcWriter(std::string_view text, const std::vector<ByteRange>& ranges)
        : text_(text), ranges_(ranges) {
        out_.reserve(text.size());
    }

    // A stretch that is normalised.
    void copy(std::size_t begin, std::size_t end) {
        for (std::size_t i = first_range(begin); i < ranges_.size() && ranges_[i].begin < end; ++i)
            mark(out_.size() + std::max(ranges_[i].begin, begin) - begin,
                 out_.size() + std::min(ranges_[i].end, end) - begin);
        out_ += text_.substr(begin, end - begin);
    }

    // A stretch that normalises on its own.
    void compose(std::size_t begin, std::size_t end) {
        const std::size_t i = first_range(begin);
        const std::size_t out_begin = out_.size();
        std::string_view rest = text_.substr(begin, end - begin);
        while (!rest.empty()) {
            const Utf8Step step = step_utf8(rest);
            LR_CHECK(step.kind == Utf8Step::Kind::kCharacter);
            rest.remove_prefix(static_cast<std::size_t>(step.length));
            if (is_in(kYounger, step.code_point)) {
                append_composed(code_points_, out_);
                append_utf8(out_, step.code_point);
            } else {
                append_decomposed(code_points_, step.code_point);
            }
        }
        append_composed(code_points_, out_);
        if (i < ranges_.size() && ranges_[i].begin < end)
            mark(out_begin, out_.size());
    }

    std::string take_text() { return std::move(out_); }
    std::vector<ByteRange> take_ranges() { return std::move(marked_); }

  private:
    // The first range that ends behind `begin`; `begin` only grows.
    std::size_t first_range(std::size_t begin) {
        while (next_ < ranges_.size() && ranges_[next_].end <= begin)
            ++next_;
        return next_;
    }

    void mark(std::size_t begin, std::size_t end) {
        if (begin == end)
            return;
        if (!marked_.empty() && marked_.back().end == begin)
            marked_.back().end = end;
        else
            marked_.push_back({begin, end});
    }

    std::string_view text_;
    const std::vector<ByteRange>& ranges_;
    std::size_t next_ = 0;
    std::string out_;
    std::vector<ByteRange> marked_;
    std::vector<utf8proc_int32_t> code_points_;
};

} // namespace

bool is_surely_nfc(std::string_view text) {
    return next_uncertain(text, 0) == text.size();
}

std::string normalize_nfc(std::string_view text, std::vector<ByteRange>& ranges) {
    NfcWriter writer(text, ranges);
    std::size_t begin = 0; // of what has not been written
    while (begin < text.size()) {
        const std::size_t uncertain = next_uncertain(text, begin);
        const std::size_t base =
            uncertain == text.size() ? uncertain : character_before(text, begin, uncertain);
        writer.copy(begin, base);
        const std::size_t end = next_inert(text, uncertain);
        writer.compose(base, end);
        begin = end;
    }
    ranges = writer.take_ranges();
    return writer.take_text();
}

std::string normalize_nfc(std::string_view text) {
    std::vector<ByteRange> none;
    return normalize_nfc(text, none);
}

} // namespace lr::text
