// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/samples.h"

#include <algorithm>
#include <cmath>

namespace lr::cli {

double Samples::spread() const {
    const double middle = median();
    return middle == 0 ? 0 : (quantile(0.75) - quantile(0.25)) / middle;
}

// Between two samples: a straight line.
double Samples::quantile(double part) const {
    if (values_.empty())
        return 0;
    std::vector<double> sorted = values_;
    std::sort(sorted.begin(), sorted.end());
    const double place = part * static_cast<double>(sorted.size() - 1);
    const auto low = static_cast<std::size_t>(place);
    const std::size_t high = std::min(low + 1, sorted.size() - 1);
    return std::lerp(sorted[low], sorted[high], place - static_cast<double>(low));
}

} // namespace lr::cli
