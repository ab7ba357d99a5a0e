// SPDX-License-Identifier: Apache-2.0
//
// verify/faults.h: what a wrong kernel may leave, put into a tensor on purpose: the proof that a
// comparison catches it.
#pragma once

#include "core/view.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lr::verify {

enum class Fault : std::uint8_t {
    kElement, // one element off by four of its bounds and a step of its type
    kRow,     // a row that was not computed: zero
    kSwap,    // two neighbours exchanged
    kNan,     // one NaN
    kStale,   // a row as it was before the launch
    kId,      // an integer off by one
    kPad,     // a place that no live row owns, written
};
inline constexpr Fault kFaults[] = {Fault::kElement, Fault::kRow, Fault::kSwap, Fault::kNan,
                                    Fault::kStale,   Fault::kId,  Fault::kPad};
std::string_view fault_name(Fault fault); // "element", "row", ...
std::optional<Fault> fault_from_name(std::string_view name);

// Puts the fault into `tensor`, a right result, dense. `before` is what the tensor held before the
// launch, `bound` its elements' bounds (null: none). Returns what was done, "[3, 17]"; nothing
// where the tensor has no place for it (integers have no NaN; equal neighbours cannot be
// exchanged).
std::optional<std::string> put_fault(Fault fault, View tensor, std::span<const std::byte> before,
                                     const double* bound);

} // namespace lr::verify
