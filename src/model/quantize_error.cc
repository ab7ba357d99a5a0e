// SPDX-License-Identifier: Apache-2.0
#include "model/quantize_error.h"

#include <algorithm>
#include <cmath>

namespace lr::model {

void QuantizeError::add(const QuantizeError& other) {
    matrices += other.matrices;
    elements += other.elements;
    saturated += other.saturated;
    max_abs = std::max(max_abs, other.max_abs);
    ww += other.ww;
    vv += other.vv;
    wv += other.wv;
    off += other.off;
}

double QuantizeError::relative_rms() const {
    return off == 0 ? 0.0 : std::sqrt(off / ww);
}

double QuantizeError::cosine() const {
    return off == 0 ? 1.0 : vv == 0 ? 0.0 : wv / (std::sqrt(ww) * std::sqrt(vv));
}

double QuantizeError::saturated_share() const {
    return elements == 0 ? 0.0 : static_cast<double>(saturated) / static_cast<double>(elements);
}

Json quantize_error_to_json(const QuantizeError& error) {
    return Json::object({{"matrices", Json(error.matrices)},
                         {"elements", Json(error.elements)},
                         {"saturated", Json(error.saturated)},
                         {"max_abs", Json(error.max_abs)},
                         {"ww", Json(error.ww)},
                         {"vv", Json(error.vv)},
                         {"wv", Json(error.wv)},
                         {"off", Json(error.off)},
                         {"relative_rms", Json(error.relative_rms())},
                         {"cosine", Json(error.cosine())},
                         {"saturated_share", Json(error.saturated_share())}});
}

Result<QuantizeError> quantize_error_from_json(const JsonCursor& json) {
    QuantizeError error;
    LR_TRY_ASSIGN(error.matrices, json.required_int("matrices", 0));
    LR_TRY_ASSIGN(error.elements, json.required_int("elements", 0));
    LR_TRY_ASSIGN(error.saturated, json.required_int("saturated", 0));
    LR_TRY_ASSIGN(error.max_abs, json.required_double("max_abs"));
    LR_TRY_ASSIGN(error.ww, json.required_double("ww"));
    LR_TRY_ASSIGN(error.vv, json.required_double("vv"));
    LR_TRY_ASSIGN(error.wv, json.required_double("wv"));
    LR_TRY_ASSIGN(error.off, json.required_double("off"));
    return error;
}

} // namespace lr::model
