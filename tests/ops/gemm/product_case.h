// SPDX-License-Identifier: Apache-2.0
//
// tests/ops/gemm/product_case.h: random operands of a matrix product in every format, and two
// oracles of one element of the product: its definition in f32, addition by addition, and its value
// in double. Codes are decoded by arithmetic here, not by the tables of numerics/.
#pragma once

#include "cpu/gemm/operand_rows.h"
#include "ops/operand.h"
#include "tests/cpu/plain_bf16_dot.h"
#include "tests/cpu/plain_dot.h"
#include "tests/ops/guarded_tensor.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace lr::ops {

inline float e4m3_value(int code) {
    const int exponent = code >> 3 & 15;
    const int mantissa = code & 7;
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
    return static_cast<float>(code & 0x80 ? -magnitude : magnitude);
}

inline float e2m1_value(int code) {
    constexpr std::array<double, 8> kValues = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const double magnitude = kValues[static_cast<std::size_t>(code & 7)];
    return static_cast<float>(code & 8 ? -magnitude : magnitude);
}

inline int e2m1_code(View view, std::int64_t row, std::int64_t column) {
    return view.row_as<std::uint8_t>(row)[column / 2] >> (column % 2 * 4) & 0xF;
}

// Random codes (no NaN) of an e4m3 or e2m1 tensor, or normal values of a float one.
inline void randomize(GuardedTensor& tensor, std::mt19937& random) {
    const View view = tensor.view();
    std::normal_distribution<double> normal;
    const auto rows = view.rows();
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < view.shape.row_count(); ++j) {
            if (view.dtype == DType::kE2M1) {
                if (j % 2 == 0)
                    view.row_as<std::uint8_t>(i)[j / 2] = static_cast<std::uint8_t>(random());
            } else if (view.dtype == DType::kE4M3) {
                const auto code = static_cast<std::uint8_t>(random());
                tensor.set(i * view.shape.row_count() + j, (code & 0x7F) == 0x7F ? 0 : code);
            } else {
                tensor.set(i * view.shape.row_count() + j, normal(random));
            }
        }
}

// Positive scales: e4m3 codes of 0.5 .. 4, else numbers of 2^-8 .. 2^-6.
inline void randomize_scales(GuardedTensor& tensor, std::mt19937& random) {
    std::uniform_real_distribution<double> uniform(0x1p-8, 0x1p-6);
    for (std::int64_t i = 0; i < tensor.count(); ++i)
        tensor.set(i, tensor.view().dtype == DType::kE4M3 ? 0x30 + random() % 24 : uniform(random));
}

inline float scale_value(GuardedTensor& scale, std::int64_t i) {
    const double value = scale.at(i);
    return scale.view().dtype == DType::kE4M3 ? e4m3_value(static_cast<int>(value))
                                              : static_cast<float>(value);
}

// One row as a dot reads it, what multiplies the dot, and, of a weight, what multiplies each 128
// values of x before it.
struct OperandRow {
    std::vector<float> values;
    float factor = 1.0f;
    std::vector<float> block_scales = {};
    // The same for a dot of numbers that are exact in bf16 (cpu/kernels/bf16_dot.h): numbers, none
    // if they are not, and the scales kept apart: of 128, of a weight's 16 (kNvfp4).
    std::vector<float> exact = {};
    std::vector<float> exact_scales = {};
    cpu::Codes codes = cpu::Codes::kBF16; // of a weight
};

class ActivationCase {
  public:
    ActivationCase(ActivationFormat format, DType plain, std::int64_t n, std::int64_t k,
                   unsigned seed)
        : format_(format), x_(x_dtype(format, plain), {n, k}),
          scale_(format == ActivationFormat::kNvfp4 ? DType::kE4M3 : DType::kF32,
                 format == ActivationFormat::kFp8Token   ? Shape{n}
                 : format == ActivationFormat::kFp8Group ? Shape{n, (k + 127) / 128}
                                                         : Shape{n, k / 16}) {
        std::mt19937 random(seed);
        randomize(x_, random);
        randomize_scales(scale_, random);
    }

    ConstView x() { return x_; }
    ConstView scale() {
        const bool none =
            format_ == ActivationFormat::kPlain || format_ == ActivationFormat::kFp8Static;
        return none ? ConstView() : ConstView(scale_);
    }
    float global() const {
        return format_ == ActivationFormat::kNvfp4 || format_ == ActivationFormat::kFp8Static
                   ? 0.0123f
                   : 1.0f;
    }
    GuardedTensor& data() { return x_; }
    GuardedTensor& scales() { return scale_; }

    OperandRow row(std::int64_t i) {
        const std::int64_t k = x_.view().shape[1];
        OperandRow row{.values = std::vector<float>(static_cast<std::size_t>(k))};
        for (std::int64_t c = 0; c < k; ++c) {
            float& value = row.values[static_cast<std::size_t>(c)];
            if (format_ == ActivationFormat::kNvfp4)
                value =
                    e2m1_value(e2m1_code(x_, i, c)) * scale_value(scale_, i * (k / 16) + c / 16);
            else if (format_ == ActivationFormat::kPlain)
                value = static_cast<float>(x_.at(i * k + c));
            else
                value = e4m3_value(static_cast<int>(x_.at(i * k + c)));
            if (format_ != ActivationFormat::kPlain || x_.view().dtype == DType::kBF16)
                row.exact.push_back(value);
            if (format_ == ActivationFormat::kFp8Group)
                value *= scale_value(scale_, i * ((k + 127) / 128) + c / 128);
        }
        if (format_ == ActivationFormat::kFp8Group)
            for (std::int64_t b = 0; b < (k + 127) / 128; ++b)
                row.exact_scales.push_back(scale_value(scale_, i * ((k + 127) / 128) + b));
        row.factor = format_ == ActivationFormat::kFp8Token ? scale_value(scale_, i) : global();
        return row;
    }

  private:
    static DType x_dtype(ActivationFormat format, DType plain) {
        if (format == ActivationFormat::kPlain)
            return plain;
        return format == ActivationFormat::kNvfp4 ? DType::kE2M1 : DType::kE4M3;
    }
    ActivationFormat format_;
    GuardedTensor x_, scale_;
};

// A weight of `experts` x parts; experts == 0 is a rank-2 weight.
class WeightCase {
  public:
    WeightCase(WeightFormat format, DType plain, std::int64_t experts,
               std::vector<std::int64_t> part_rows, std::int64_t k, unsigned seed,
               DType scale_dtype = DType::kBF16)
        : part_rows_(std::move(part_rows)), k_(k) {
        std::mt19937 random(seed);
        std::int64_t rows = 0;
        for (std::int64_t part : part_rows_)
            rows += part;
        for (std::int64_t e = 0; e < std::max<std::int64_t>(experts, 1); ++e)
            for (std::int64_t part : part_rows_)
                add_part(format, plain, part, random, scale_dtype);
        weight_.format = format;
        weight_.dtype = format == WeightFormat::kPlain   ? plain
                        : format == WeightFormat::kNvfp4 ? DType::kE2M1
                                                         : DType::kE4M3;
        weight_.shape = experts == 0 ? Shape{rows, k} : Shape{experts, rows, k};
        weight_.parts = parts_;
    }

    const Weight& weight() const { return weight_; }
    std::vector<WeightPart>& parts() { return parts_; }
    GuardedTensor& data(std::size_t part) { return *data_[part]; }

    // Row j of expert e.
    OperandRow row(std::int64_t e, std::int64_t j) {
        auto part = static_cast<std::size_t>(e) * part_rows_.size();
        for (std::size_t p = 0; j >= part_rows_[p]; ++p, ++part)
            j -= part_rows_[p];
        GuardedTensor& data = *data_[part];
        GuardedTensor& scale = *scale_[part];
        const std::int64_t blocks = (k_ + 127) / 128;
        OperandRow row{.values = std::vector<float>(static_cast<std::size_t>(k_))};
        for (std::int64_t c = 0; c < k_; ++c) {
            float& value = row.values[static_cast<std::size_t>(c)];
            if (weight_.format == WeightFormat::kNvfp4)
                value = e2m1_value(e2m1_code(data, j, c));
            else if (weight_.format == WeightFormat::kPlain)
                value = static_cast<float>(data.at(j * k_ + c));
            else
                value = e4m3_value(static_cast<int>(data.at(j * k_ + c)));
            if (data.view().dtype != DType::kF32 && data.view().dtype != DType::kF16)
                row.exact.push_back(value);
            if (weight_.format == WeightFormat::kNvfp4)
                value *= scale_value(scale, j * (k_ / 16) + c / 16);
        }
        row.codes = weight_.format == WeightFormat::kNvfp4   ? cpu::Codes::kNvfp4
                    : weight_.format == WeightFormat::kPlain ? cpu::Codes::kBF16
                                                             : cpu::Codes::kE4M3;
        if (weight_.format == WeightFormat::kNvfp4)
            for (std::int64_t b = 0; b < k_ / 16; ++b)
                row.exact_scales.push_back(scale_value(scale, j * (k_ / 16) + b));
        if (weight_.format == WeightFormat::kFp8Channel)
            row.factor = scale_value(scale, j);
        else if (weight_.format != WeightFormat::kPlain &&
                 weight_.format != WeightFormat::kFp8Block)
            row.factor = parts_[part].global;
        if (weight_.format == WeightFormat::kFp8Block)
            for (std::int64_t b = 0; b < blocks; ++b)
                row.block_scales.push_back(scale_value(scale, j / 128 * blocks + b));
        if (weight_.format == WeightFormat::kFp8Block)
            row.exact_scales = row.block_scales;
        return row;
    }

  private:
    void add_part(WeightFormat format, DType plain, std::int64_t rows, std::mt19937& random,
                  DType scale_dtype) {
        const DType dtype = format == WeightFormat::kPlain   ? plain
                            : format == WeightFormat::kNvfp4 ? DType::kE2M1
                                                             : DType::kE4M3;
        data_.push_back(std::make_unique<GuardedTensor>(dtype, Shape{rows, k_}));
        randomize(*data_.back(), random);
        const Shape shape = format == WeightFormat::kFp8Block
                                ? Shape{(rows + 127) / 128, (k_ + 127) / 128}
                            : format == WeightFormat::kNvfp4 ? Shape{rows, k_ / 16}
                                                             : Shape{rows};
        scale_.push_back(std::make_unique<GuardedTensor>(
            format == WeightFormat::kNvfp4 ? DType::kE4M3 : scale_dtype, shape));
        randomize_scales(*scale_.back(), random);
        const bool scaled = format == WeightFormat::kFp8Block ||
                            format == WeightFormat::kFp8Channel || format == WeightFormat::kNvfp4;
        const bool global = format == WeightFormat::kFp8Tensor || format == WeightFormat::kNvfp4;
        WeightPart part;
        part.data = *data_.back();
        part.scale = scaled ? ConstView(*scale_.back()) : ConstView();
        part.global = global ? 0.01f + 0.003f * static_cast<float>(parts_.size()) : 1.0f;
        parts_.push_back(part);
    }

    std::vector<std::int64_t> part_rows_;
    std::int64_t k_;
    std::vector<std::unique_ptr<GuardedTensor>> data_, scale_;
    std::vector<WeightPart> parts_;
    Weight weight_;
};

// Whether the instruction set in use takes this product in bf16.
inline bool product_in_bf16(const OperandRow& x, const OperandRow& w) {
    return cpu::kernels().bf16 && !x.exact.empty() && !w.exact.empty();
}

// The definition (ops/operand.h), in f32.
inline float product_f32(const OperandRow& x, const OperandRow& w) {
    const auto count = static_cast<std::int64_t>(x.values.size());
    if (product_in_bf16(x, w)) {
        std::vector<float> scales = w.exact_scales;
        for (std::size_t b = 0; b < x.exact_scales.size(); ++b)
            scales[b] *= x.exact_scales[b];
        return plain_bf16_dot(w.codes, x.exact.data(), w.exact.data(), count, scales) *
               (x.factor * w.factor);
    }
    std::vector<float> values = x.values;
    if (!w.block_scales.empty())
        for (std::size_t k = 0; k < values.size(); ++k)
            values[k] *= w.block_scales[k / 128];
    return plain_dot(values.data(), w.values.data(), count) * (x.factor * w.factor);
}

// The value in double, and a bound on the error of product_f32: of a sum of K terms in 16 lanes,
// each term meets ceil(K/16) roundings of its lane, 4 of the fold and at most 3 of scales; each is
// 2^-24 of no more than the sum of magnitudes. (The scale of a group of x is one of the three.) In
// bf16, lanes take 8 terms of each 128 and one more rounding where a block is scaled.
struct Exact {
    double value = 0;
    double bound = 0;
};
inline Exact product_exact(const OperandRow& x, const OperandRow& w) {
    Exact exact;
    double magnitudes = 0;
    const double factor = static_cast<double>(x.factor) * w.factor;
    for (std::size_t k = 0; k < x.values.size(); ++k) {
        double term = static_cast<double>(x.values[k]) * w.values[k] * factor;
        if (!w.block_scales.empty())
            term *= w.block_scales[k / 128];
        exact.value += term;
        magnitudes += std::abs(term);
    }
    const auto k = static_cast<double>(x.values.size());
    const double lane = product_in_bf16(x, w) ? 8 * std::ceil(k / 128) + 1 : std::ceil(k / 16);
    exact.bound = (lane + 4 + 3) * 0x1p-24 * magnitudes;
    return exact;
}

} // namespace lr::ops
