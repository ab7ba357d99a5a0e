// SPDX-License-Identifier: Apache-2.0
//
// core/dims.h: the dimension letters used in every comment, and symbolic sizes that check
// themselves.
//
//   n    rows (tokens) in the batch          D    hidden size
//   Hq   query heads                         Hkv  key/value heads
//   Hk   GDN key heads                       Hv   GDN value heads
//   dk   GDN key head width                  dv   GDN value head width
//   E    experts                             L    local experts
//   K    experts per token                   I    expert width
//   V    vocabulary rows                     S    state slots
//   R    rows of capacity per expert         A    row alignment
//   B    sequences in the batch              BM/BN/BK  tile sizes
//
// A shape contract is executable: declare the letters, match every tensor against them, ask once.
//
//   ShapeCheck check("gdn_recurrent_update");
//   Dim n{"n"}, hk{"Hk"}, dk{"dk"};
//   check.match("q", args.q, {n, hk, dk}, {DType::kBF16, DType::kF32});
//   check.require(args.x.row_stride % 8 == 0, "x rows must be 16-byte aligned");
//   return check.status();
//
// The first use of a letter binds it, later uses must agree, and the first disagreement is the
// error: "gdn_recurrent_update: v dim 1: expected Hv=32, got 16".
#pragma once

#include "core/status.h"
#include "core/view.h"

#include <initializer_list>
#include <string>
#include <string_view>

namespace lr {

class Dim {
  public:
    explicit Dim(const char* letter) : letter_(letter) {}
    Dim(const char* letter, std::int64_t value) : letter_(letter), value_(value) {}

    bool bound() const { return value_ >= 0; }
    std::int64_t value() const {
        LR_CHECK(bound());
        return value_;
    }
    const char* letter() const { return letter_; }

  private:
    friend class ShapeCheck;
    const char* letter_;
    std::int64_t value_ = -1;
};

// One expected dimension: a letter, or a literal size.
struct DimRef {
    DimRef(Dim& dim) : symbol(&dim) {}
    DimRef(std::int64_t size) : literal(size) {}
    DimRef(int size) : literal(size) {}
    Dim* symbol = nullptr;
    std::int64_t literal = -1;
};

class ShapeCheck {
  public:
    explicit ShapeCheck(std::string_view where) : where_(where) {}

    // Binds or compares each dim and the dtype. A null view is an error; see match_optional.
    ShapeCheck& match(std::string_view name, ConstView view, std::initializer_list<DimRef> dims,
                      std::initializer_list<DType> dtypes);
    // As match, but a null view is allowed and matches anything.
    ShapeCheck& match_optional(std::string_view name, ConstView view,
                               std::initializer_list<DimRef> dims,
                               std::initializer_list<DType> dtypes);
    // A free condition; `message` says what was expected and got.
    ShapeCheck& require(bool condition, std::string_view message);

    // Ok, or the first disagreement as kInvalidArgument.
    Status status() const { return status_; }

  private:
    void fail_once(std::string message);

    std::string where_;
    Status status_;
};

} // namespace lr
