// SPDX-License-Identifier: Apache-2.0
//
// comm/expert_rows.h: reading the views of comm/expert_layout.h.
#pragma once

#include "core/view.h"

#include <algorithm>
#include <cstdint>

namespace lr::comm {

inline std::int32_t int_at(ConstView view, std::int64_t index) {
    return view.as<std::int32_t>()[index];
}
inline std::int32_t int_at(ConstView view, std::int64_t row, std::int64_t column) {
    return view.row_as<std::int32_t>(row)[column];
}

inline std::int64_t live_rows(ConstView n_live, std::int64_t rows) {
    return std::clamp<std::int64_t>(int_at(n_live, 0), 0, rows);
}

// A dense [A,B,D] as [A*B,D].
template <typename Byte> BasicView<Byte> flat(BasicView<Byte> view) {
    return {view.data, view.dtype, {view.shape[0] * view.shape[1], view.shape[2]}};
}

} // namespace lr::comm
