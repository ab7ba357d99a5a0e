// SPDX-License-Identifier: Apache-2.0
//
// verify/compare.h: one tensor of a device against the reference's.
#pragma once

#include "core/view.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lr::verify {

// The first element that is not what it may be.
struct Mismatch {
    std::vector<std::int64_t> at; // coordinate
    std::string reference, device;
    std::string expected; // "equal", "within 1.2e-05", "a NaN", "finite"
};

struct Agreement {
    std::int64_t elements = 0;
    std::int64_t bounded = 0; // those with a bound above 0
    std::int64_t apart = 0;   // of these, those that differ
    double largest_share = 0; // of its bound that a difference makes up; 1 is all
    double largest_bound = 0; // over the root mean square of the tensor's elements
    std::optional<Mismatch> first;

    void add(const Agreement& other);
};

// `reference` and `device` are dense, of one type and shape; `bound` has one entry an element, or
// is null: all must be equal. NaN and infinity first, in the whole tensor; then bounds. Integers
// are equal; codes with bound 0 have the same bits, others decode to values within the bound.
Agreement compare(ConstView reference, ConstView device, const double* bound);

} // namespace lr::verify
