// SPDX-License-Identifier: Apache-2.0
//
// cli/bench/samples.h: one thing measured again and again.
#pragma once

#include <vector>

namespace lr::cli {

class Samples {
  public:
    void add(double value) { values_.push_back(value); }

    // Both 0 without samples.
    double median() const { return quantile(0.5); }
    // Distance of the quartiles over the median: how far apart the middle half of the samples lies.
    double spread() const;

  private:
    double quantile(double part) const;

    std::vector<double> values_;
};

} // namespace lr::cli
