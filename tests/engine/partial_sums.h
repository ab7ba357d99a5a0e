// SPDX-License-Identifier: Apache-2.0
//
// tests/engine/partial_sums.h: how far the sums that ranks share may be from one rank's, by
// counting the roundings on the way to them.
//
// Every bound is against the exact sum of the products of the (bit-equal) inputs. u = 2^-8 is the
// rounding of a store to bf16, v = 2^-24 one of f32.
#pragma once

#include "cpu/rows.h"
#include "engine/observer.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace lr::engine {

constexpr double kU = 0x1p-8;
constexpr double kV = 0x1p-24;

inline std::vector<double> to_doubles(ConstView view) {
    const std::int64_t width = view.shape.row_count();
    std::vector<float> row(static_cast<std::size_t>(width));
    std::vector<double> all;
    for (std::int64_t i = 0; i < view.rows(); ++i) {
        cpu::load_floats(view, i, 0, width, row.data());
        all.insert(all.end(), row.begin(), row.end());
    }
    return all;
}

// A tensor that is a part of a sum over ranks: what it holds, and its largest error.
struct Partial {
    std::vector<double> value, error;
};

// The last part of a tensor's name: "A" of "L3.A".
inline std::string last_part(const std::string& name) {
    return name.substr(name.rfind('.') + 1);
}

// The partial tensors of one rank, by name, as its nodes write them.
class PartialSums {
  public:
    void after(const Launched& launched) {
        for (const Launched::Written& written : launched.written()) {
            const std::string& name =
                launched.step.tensors[static_cast<std::size_t>(written.tensor)].name;
            if (const auto* linear = std::get_if<ops::LinearArgs>(&launched.args)) {
                const std::string part = last_part(name);
                if (part == "A" || part == "U" || part == "Y_s")
                    keep(name, *linear);
            } else if (const auto* down = std::get_if<ops::ExpertsDownArgs>(&launched.args)) {
                keep(name, *down);
            } else if (const auto* sum = std::get_if<ops::FinalizeArgs>(&launched.args)) {
                keep(name, *sum);
            } else if (const auto* merge = std::get_if<ops::SharedGateMergeArgs>(&launched.args)) {
                keep(name, *merge);
            }
        }
    }

    // Nothing for a tensor of which no rank's part is rounded (embedding rows).
    const Partial* find(const std::string& name) const {
        const auto found = all_.find(name);
        return found == all_.end() ? nullptr : &found->second;
    }

  private:
    // A dot over K: a product each, at most K/16 + 4 additions to any of them, and one more for a
    // tail. `store` rounds the result.
    static double dot_error(const std::vector<double>& x, std::size_t at, ConstView w,
                            std::int64_t row, double result) {
        const auto k = static_cast<std::size_t>(w.shape[1]);
        std::vector<float> weights(k);
        cpu::load_floats(w, row, 0, w.shape[1], weights.data());
        double absolute = 0;
        for (std::size_t i = 0; i < k; ++i)
            absolute += std::abs(x[at + i] * static_cast<double>(weights[i]));
        return (static_cast<double>(k) / 16 + 6) * kV * absolute + kU * std::abs(result);
    }

    void keep(const std::string& name, const ops::LinearArgs& args) {
        Partial& partial = all_[name] = {to_doubles(args.y), {}};
        const std::vector<double> x = to_doubles(args.x);
        for (std::int64_t i = 0; i < args.x.rows(); ++i)
            for (const ops::WeightPart& part : args.w.parts)
                for (std::int64_t j = 0; j < part.data.rows(); ++j)
                    partial.error.push_back(
                        dot_error(x, static_cast<std::size_t>(i * args.x.shape[1]), part.data, j,
                                  partial.value[partial.error.size()]));
    }

    // Rows outside the endpoints stay without error: nobody reads them.
    void keep(const std::string& name, const ops::ExpertsDownArgs& args) {
        const std::int64_t width = args.z.shape[1];
        Partial& partial = all_[name];
        partial.value = to_doubles(args.z);
        partial.error.assign(partial.value.size(), 0.0);
        const std::vector<double> f = to_doubles(args.f);
        for (std::int64_t e = 0; e < args.start.shape[0]; ++e)
            for (std::int64_t i = cpu::int_at(args.start, e); i < cpu::int_at(args.end, e); ++i)
                for (std::int64_t j = 0; j < width; ++j) {
                    const auto at = static_cast<std::size_t>(i * width + j);
                    partial.error[at] = dot_error(f, static_cast<std::size_t>(i * args.f.shape[1]),
                                                  args.w.parts[static_cast<std::size_t>(e)].data, j,
                                                  partial.value[at]);
                }
    }

    // A product and at most K additions for each term.
    void keep(const std::string& name, const ops::FinalizeArgs& args) {
        const Partial& z = all_.at(name.substr(0, name.rfind('.') + 1) + "Z");
        Partial& partial = all_[name];
        partial.value = to_doubles(args.y);
        partial.error.assign(partial.value.size(), 0.0);
        const std::vector<double> weights = to_doubles(args.weights);
        const std::int64_t slots = args.weights.shape[1], width = args.y.shape[1];
        for (std::int64_t t = 0; t < args.y.rows(); ++t)
            for (std::int64_t j = 0; j < width; ++j) {
                const auto at = static_cast<std::size_t>(t * width + j);
                for (std::int64_t k = 0; k < slots; ++k) {
                    const std::int64_t row = cpu::int_at(args.row_of, t * slots + k);
                    if (row < 0)
                        continue;
                    const auto from = static_cast<std::size_t>(row * width + j);
                    partial.error[at] += weights[static_cast<std::size_t>(t * slots + k)] *
                                         (z.error[from] + static_cast<double>(slots + 1) * kV *
                                                              std::abs(z.value[from]));
                }
                partial.error[at] += kU * std::abs(partial.value[at]);
            }
    }

    // eta is the same on all and at most 1.
    void keep(const std::string& name, const ops::SharedGateMergeArgs& args) {
        const std::string scope = name.substr(0, name.rfind('.') + 1);
        const Partial &routed = all_.at(scope + "Y_r"), &shared = all_.at(scope + "Y_s");
        Partial& partial = all_[name] = {to_doubles(args.y), {}};
        for (std::size_t i = 0; i < partial.value.size(); ++i)
            partial.error.push_back(routed.error[i] + shared.error[i] +
                                    2 * kV *
                                        (std::abs(routed.value[i]) + std::abs(shared.value[i])) +
                                    kU * std::abs(partial.value[i]));
    }

    std::map<std::string, Partial> all_;
};

} // namespace lr::engine
