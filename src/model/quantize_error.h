// SPDX-License-Identifier: Apache-2.0
//
// model/quantize_error.h: how far quantised weights are from what they were.
#pragma once

#include "core/json.h"
#include "core/status.h"

#include <cstdint>

namespace lr::model {

// Sums over elements w with dequantised values v. They add up: a part's errors and the whole's are
// one type.
struct QuantizeError {
    std::int64_t matrices = 0, elements = 0;
    std::int64_t saturated = 0;             // |w| beyond the largest code by more than half a step
    double max_abs = 0;                     // largest |w - v|
    double ww = 0, vv = 0, wv = 0, off = 0; // sums of w^2, v^2, w v and (w - v)^2

    void add(const QuantizeError& other);

    double relative_rms() const; // sqrt(off / ww); 0 where all is exact
    double cosine() const;       // of w and v as vectors; 1 where all is exact
    double saturated_share() const;
};

// Every sum and figure; the sums alone are read back.
Json quantize_error_to_json(const QuantizeError& error);
Result<QuantizeError> quantize_error_from_json(const JsonCursor& json);

} // namespace lr::model
