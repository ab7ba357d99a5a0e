// SPDX-License-Identifier: Apache-2.0
#include "cpu/experts/experts.h"
#include "numerics/quantize.h"
#include "ops/experts/experts_gate_up.h"
#include "tests/ops/experts/expert_case.h"

#include <gtest/gtest.h>

#include <optional>

namespace lr::ops {
namespace {

using A = ActivationFormat;
using W = WeightFormat;

struct Form {
    A x;
    W w;
    A f = A::kPlain;
    DType act = DType::kBF16;
    Precision precision = Precision::kModel;
    bool two_parts = true;
    std::int64_t d = 160, width = 144;
};

std::string name_of(const Form& form) {
    return fmt::format("{} x {} -> {}", activation_format_name(form.x), weight_format_name(form.w),
                       activation_format_name(form.f));
}

// Everything of one call; f and its scale start as poison.
struct Case {
    Form form;
    std::int64_t tokens = 6;
    std::int32_t per_token = 2;
    RowsCase rows;
    ActivationCase x;
    WeightCase w;
    GuardedTensor f, f_scale;
    ExpertsGateUpArgs args;

    Case(const Form& form_in, std::vector<std::int32_t> counts, std::int32_t align = 4)
        : form(form_in), rows(std::move(counts), align, tokens, per_token),
          x(form.x, form.act, tokens, form.d, 1),
          w(form.w, DType::kBF16, rows.local(),
            form.two_parts ? std::vector{form.width, form.width} : std::vector{2 * form.width},
            form.d, 2),
          f(f_dtype(), {rows.rows, form.width}),
          f_scale(form.f == A::kNvfp4 ? DType::kE4M3 : DType::kF32, scale_shape()) {
        args.x = x.x();
        args.x_scale = x.scale();
        args.start = rows.start;
        args.end = rows.end;
        args.row_map = rows.row_map;
        args.w = w.weight();
        args.f = f;
        if (form.f == A::kFp8Token || form.f == A::kFp8Group || form.f == A::kNvfp4)
            args.f_scale = f_scale;
        args.per_token = per_token;
        args.x_global = x.global();
        args.f_global = form.f == A::kPlain ? 1.0f : 0.37f;
        args.precision = form.precision;
    }

    DType f_dtype() const {
        return form.f == A::kPlain ? form.act : form.f == A::kNvfp4 ? DType::kE2M1 : DType::kE4M3;
    }
    Shape scale_shape() const {
        if (form.f == A::kNvfp4)
            return {rows.rows, form.width / 16};
        if (form.f == A::kFp8Group)
            return {rows.rows, (form.width + 127) / 128};
        return {rows.rows};
    }
    void run(int threads = 1) {
        ASSERT_TRUE(check(args).ok()) << name_of(form) << ": " << check(args).message();
        ThreadPool pool(threads);
        cpu::experts_gate_up(args, pool);
        EXPECT_TRUE(f.guards_intact() && f_scale.guards_intact());
    }
    // F of a row in f32, by the definition.
    std::vector<float> expected(std::int64_t e, std::int64_t r) {
        const bool round = form.precision == Precision::kModel;
        const OperandRow token = x.row(static_cast<std::int64_t>(rows.row_map.at(r)) / per_token);
        std::vector<float> out;
        for (std::int64_t i = 0; i < form.width; ++i) {
            float g = product_f32(token, w.row(e, i));
            float u = product_f32(token, w.row(e, form.width + i));
            if (round) {
                g = numerics::round_bf16(g);
                u = numerics::round_bf16(u);
            }
            const float product = g / (1.0f + std::exp(-g)) * u;
            out.push_back(round ? numerics::round_bf16(product) : product);
        }
        return out;
    }
};

std::vector<std::byte> bytes_of_row(View view, std::int64_t r) {
    return {view.row(r), view.row(r) + dtype_bytes(view.dtype, view.shape.row_count())};
}

// Rows outside [start, end) still hold what they held.
void expect_dead_rows_untouched(Case& c) {
    for (std::int64_t r = 0; r < c.rows.rows; ++r) {
        if (c.rows.live(r))
            continue;
        for (std::byte b : bytes_of_row(c.f, r))
            ASSERT_EQ(b, std::byte{0xFF}) << "row " << r;
        for (std::byte b : bytes_of_row(c.f_scale, r))
            ASSERT_EQ(b, std::byte{0xFF}) << "scale row " << r;
    }
}

TEST(ExpertsGateUp, PlainResultHasTheBitsOfItsDefinition) {
    for (const Form& form :
         {Form{A::kPlain, W::kPlain},
          Form{A::kPlain, W::kPlain, A::kPlain, DType::kF32, Precision::kF32, false},
          Form{A::kPlain, W::kFp8Block, A::kPlain, DType::kF32, Precision::kF32},
          Form{A::kPlain, W::kNvfp4, A::kPlain, DType::kBF16, Precision::kModel, false},
          Form{A::kFp8Group, W::kFp8Block}, Form{A::kFp8Token, W::kFp8Channel},
          Form{A::kFp8Static, W::kFp8Tensor}, Form{A::kNvfp4, W::kNvfp4}}) {
        Case c(form, {5, 0, 9, 1});
        c.run(2);
        for (std::int64_t e = 0; e < 4; ++e)
            for (std::int64_t r = c.rows.first(e); r < c.rows.last(e); ++r) {
                const std::vector<float> expected = c.expected(e, r);
                for (std::int64_t i = 0; i < form.width; ++i)
                    ASSERT_EQ(c.f.at(r * form.width + i), expected[static_cast<std::size_t>(i)])
                        << name_of(form) << " expert " << e << " row " << r << " column " << i;
            }
        expect_dead_rows_untouched(c);
    }
}

TEST(ExpertsGateUp, CodesAreTheQuantisedRoundedF) {
    for (const Form& form :
         {Form{A::kFp8Token, W::kFp8Channel, A::kFp8Token},
          Form{A::kFp8Group, W::kFp8Block, A::kFp8Group},
          Form{A::kFp8Static, W::kFp8Tensor, A::kFp8Static}, Form{A::kNvfp4, W::kNvfp4, A::kNvfp4},
          Form{A::kPlain, W::kPlain, A::kFp8Token}}) {
        Case c(form, {3, 2});
        c.run(2);
        const auto width = static_cast<std::size_t>(form.width);
        for (std::int64_t e = 0; e < 2; ++e)
            for (std::int64_t r = c.rows.first(e); r < c.rows.last(e); ++r) {
                const std::vector<float> values = c.expected(e, r);
                std::vector<std::uint8_t> codes(form.f == A::kNvfp4 ? width / 2 : width);
                std::vector<float> scales((width + 127) / 128);
                std::vector<std::uint8_t> blocks(width / 16);
                if (form.f == A::kFp8Token)
                    scales = {numerics::quantize_fp8(values, codes)};
                else if (form.f == A::kFp8Group)
                    numerics::quantize_fp8_groups(values, codes, scales);
                else if (form.f == A::kFp8Static)
                    numerics::quantize_fp8_with_scale(values, 0.37f, codes);
                else
                    numerics::quantize_nvfp4_activation(values, numerics::EncodeScale(0.37f), codes,
                                                        blocks);
                const void* scale = form.f == A::kNvfp4 ? static_cast<void*>(blocks.data())
                                                        : static_cast<void*>(scales.data());
                ASSERT_EQ(std::memcmp(c.f.view().row(r), codes.data(), codes.size()), 0)
                    << name_of(form) << " row " << r;
                if (form.f != A::kFp8Static) {
                    const auto got = bytes_of_row(c.f_scale, r);
                    ASSERT_EQ(std::memcmp(got.data(), scale, got.size()), 0) << name_of(form);
                }
            }
        expect_dead_rows_untouched(c);
    }
}

TEST(ExpertsGateUp, ARowDoesNotDependOnItsExpertsOtherRowsOrThreads) {
    const Form form{A::kPlain,         W::kNvfp4, A::kFp8Token, DType::kBF16,
                    Precision::kModel, true,      64,           32};
    Case many(form, {1, 21}), again(form, {1, 21});
    many.run(1);
    again.run(2);
    EXPECT_EQ(many.f.all_bytes(), again.f.all_bytes());
    EXPECT_EQ(many.f_scale.all_bytes(), again.f_scale.all_bytes());
    for (std::int64_t r = many.rows.first(1); r < many.rows.last(1); ++r) {
        Case alone(form, {1, 1});
        alone.rows.row_map.set(alone.rows.first(1), many.rows.row_map.at(r));
        alone.run();
        EXPECT_EQ(bytes_of_row(alone.f, alone.rows.first(1)), bytes_of_row(many.f, r));
    }
}

TEST(ExpertsGateUp, CountsMayChangeBetweenRuns) {
    const Form form{A::kPlain, W::kPlain, A::kPlain, DType::kBF16, Precision::kModel, true, 32, 16};
    Case c(form, {2, 0, 4});
    for (std::int64_t e = 0; e < 3; ++e) { // nothing is live
        c.rows.start.set(e, 0);
        c.rows.end.set(e, 0);
    }
    c.run();
    expect_dead_rows_untouched(c);
    c.rows.end.set(2, 6); // one takes all
    for (std::int64_t r = 0; r < 6; ++r)
        c.rows.row_map.set(r, static_cast<double>(r));
    c.run();
    for (std::int64_t r = 0; r < 6; ++r)
        EXPECT_EQ(c.f.at(r * 16 + 3), c.expected(2, r)[3]);
}

TEST(ExpertsGateUp, RefusesWhatDoesNotFit) {
    Case c(Form{A::kFp8Group, W::kFp8Block, A::kFp8Group}, {2, 2});
    ExpertsGateUpArgs args = c.args;
    args.f.shape[1] = 80;
    args.f_scale.shape[1] = 1;
    EXPECT_EQ(check(args).message(), "experts_gate_up: w dim 1: expected 160, got 288");
    args = c.args;
    args.end.shape[0] = 3;
    EXPECT_EQ(check(args).message(), "experts_gate_up: end dim 0: expected L=2, got 3");
    args = c.args;
    args.f_scale.shape[1] = 1;
    EXPECT_EQ(check(args).message(), "experts_gate_up: f_scale dim 1: expected 2, got 1");
    args = c.args;
    args.w.format = W::kFp8Channel;
    args.w.parts = {};
    EXPECT_NE(check(args).message().find("no product of fp8-group activations with fp8-channel"),
              std::string::npos);
    args = c.args;
    args.w.parts = args.w.parts.first(3);
    EXPECT_EQ(check(args).message(), "experts_gate_up: w: expected as many parts for each of 2 "
                                     "experts, got 3 parts");
}

TEST(ExpertsGateUp, CountsTheWorkOfALoad) {
    Case c(Form{A::kPlain, W::kPlain}, {5, 0, 9, 1});
    const std::int64_t weight = 4 * 2 * 144 * 160 * 2;
    EXPECT_EQ(cost(c.args).weight_bytes, weight);
    EXPECT_EQ(cost(c.args).flops, 2 * c.rows.rows * 2 * 144 * 160);
    // One token, 2 of 8 experts, 4 of them here: 1 expected row, 1 expected expert of 4.
    c.args.load = {.tokens = 1, .per_token = 2, .experts = 8};
    EXPECT_EQ(cost(c.args).weight_bytes, weight / 4);
    EXPECT_EQ(cost(c.args).flops, 2 * 2 * 144 * 160);
    EXPECT_EQ(cost(c.args).write_bytes, 144 * 2);
}

} // namespace
} // namespace lr::ops
