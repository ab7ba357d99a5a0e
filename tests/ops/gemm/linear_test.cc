// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/gemm.h"
#include "ops/gemm/linear.h"
#include "tests/ops/gemm/product_case.h"

#include <gtest/gtest.h>

namespace lr::ops {
namespace {

using A = ActivationFormat;
using W = WeightFormat;

struct Case {
    A x;
    W w;
    DType x_dtype = DType::kBF16; // of plain values
    DType w_dtype = DType::kBF16;
    DType scale = DType::kBF16;
    std::vector<std::int64_t> part_rows = {5, 12};
    std::int64_t k = 272; // two blocks of 128 and a short one
};

std::vector<Case> supported_cases() {
    return {
        {A::kPlain, W::kPlain},
        {A::kPlain, W::kPlain, DType::kF32, DType::kF16},
        {A::kPlain, W::kPlain, DType::kF32, DType::kF32, DType::kBF16, {3}, 75},
        {A::kPlain, W::kFp8Block, DType::kBF16, DType::kBF16, DType::kBF16, {128, 40}},
        {A::kPlain, W::kFp8Block, DType::kF32, DType::kBF16, DType::kF32, {256, 1}},
        {A::kPlain, W::kFp8Channel},
        {A::kPlain, W::kFp8Tensor},
        {A::kPlain, W::kNvfp4},
        {A::kFp8Token, W::kFp8Channel, DType::kBF16, DType::kBF16, DType::kF32},
        {A::kFp8Token, W::kFp8Tensor},
        {A::kFp8Static, W::kFp8Channel},
        {A::kFp8Static, W::kFp8Tensor},
        {A::kFp8Group, W::kFp8Block, DType::kBF16, DType::kBF16, DType::kBF16, {128, 40}},
        {A::kFp8Group, W::kFp8Block, DType::kBF16, DType::kBF16, DType::kF32, {6}, 256},
        {A::kNvfp4, W::kNvfp4},
    };
}

LinearArgs bind(ActivationCase& x, const WeightCase& w, View y) {
    LinearArgs args;
    args.x = x.x();
    args.x_scale = x.scale();
    args.w = w.weight();
    args.y = y;
    args.x_global = x.global();
    return args;
}

std::string name_of(const Case& c) {
    return fmt::format("{} x {}", activation_format_name(c.x), weight_format_name(c.w));
}

WeightCase make_weight(const Case& c) {
    return WeightCase(c.w, c.w_dtype, 0, c.part_rows, c.k, 2, c.scale);
}

TEST(Linear, EveryProductHasTheBitsOfItsDefinition) {
    ThreadPool pool(2);
    for (const Case& c : supported_cases()) {
        const std::int64_t n = 11;
        ActivationCase x(c.x, c.x_dtype, n, c.k, 1);
        WeightCase w = make_weight(c);
        const std::int64_t columns = w.weight().rows();
        GuardedTensor y(DType::kF32, {n, columns});
        const LinearArgs args = bind(x, w, y);
        ASSERT_TRUE(check(args).ok()) << name_of(c) << ": " << check(args).message();
        cpu::linear(args, pool);
        EXPECT_TRUE(y.guards_intact());
        for (std::int64_t j = 0; j < columns; ++j) {
            const OperandRow w_row = w.row(0, j);
            for (std::int64_t i = 0; i < n; ++i) {
                const OperandRow x_row = x.row(i);
                const auto got = static_cast<float>(y.at(i * columns + j));
                ASSERT_EQ(got, product_f32(x_row, w_row)) << name_of(c) << " " << i << "," << j;
                const Exact exact = product_exact(x_row, w_row);
                ASSERT_LE(std::abs(got - exact.value), exact.bound) << name_of(c);
            }
        }
    }
}

TEST(Linear, RoundsOnceWhenTheResultIsBf16) {
    ThreadPool pool(1);
    ActivationCase x(A::kPlain, DType::kBF16, 3, 64, 1);
    WeightCase w(W::kPlain, DType::kBF16, 0, {6}, 64, 2);
    GuardedTensor exact(DType::kF32, {3, 6}), rounded(DType::kBF16, {3, 6});
    cpu::linear(bind(x, w, exact), pool);
    cpu::linear(bind(x, w, rounded), pool);
    for (std::int64_t i = 0; i < 18; ++i)
        EXPECT_EQ(rounded.at(i), numerics::round_bf16(static_cast<float>(exact.at(i))));
}

TEST(Linear, ARowDoesNotDependOnBatchTileOrThreads) {
    ThreadPool one(1), two(2), three(3);
    for (const Case& c :
         {Case{A::kPlain, W::kPlain},
          Case{A::kPlain, W::kPlain, DType::kBF16, DType::kBF16, DType::kBF16, {70, 260}, 141},
          Case{A::kPlain, W::kNvfp4}, Case{A::kFp8Token, W::kFp8Channel},
          Case{A::kPlain, W::kFp8Block, DType::kBF16, DType::kBF16, DType::kBF16, {128, 200}},
          Case{A::kFp8Group, W::kFp8Block, DType::kBF16, DType::kBF16, DType::kBF16, {128, 9}}}) {
        ActivationCase x(c.x, c.x_dtype, 200, c.k, 1);
        const WeightCase w = make_weight(c);
        GuardedTensor all(DType::kF32, {200, w.weight().rows()});
        cpu::linear(bind(x, w, all), two);
        for (std::int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 25, 33, 63, 64, 200}) {
            GuardedTensor y(DType::kF32, {n, w.weight().rows()});
            LinearArgs args = bind(x, w, y);
            args.x = x.x().slice_rows(200 - n, n);
            if (!x.scale().empty())
                args.x_scale = x.scale().slice_rows(200 - n, n);
            for (ThreadPool* pool : {&one, &two, &three}) {
                y.poison(0, n);
                cpu::linear(args, *pool);
                for (std::int64_t i = 0; i < n; ++i)
                    ASSERT_EQ(y.row_bits(i), all.row_bits(200 - n + i)) << name_of(c) << " n=" << n;
            }
        }
    }
}

TEST(Linear, DeadRowsAreZeroAndTheirInputsAreNotRead) {
    ThreadPool pool(2);
    for (const Case& c : supported_cases()) {
        ActivationCase x(c.x, c.x_dtype, 13, c.k, 1);
        const WeightCase w = make_weight(c);
        GuardedTensor full(DType::kF32, {13, w.weight().rows()});
        cpu::linear(bind(x, w, full), pool);
        GuardedTensor y(DType::kF32, {13, w.weight().rows()}), live(DType::kI32, {1});
        for (std::int64_t n_live : {0, 4, 10}) {
            LinearArgs args = bind(x, w, y);
            args.n_live = live;
            live.set(0, static_cast<double>(n_live));
            x.data().poison(n_live, 13 - n_live);
            if (!x.scale().empty())
                x.scales().poison(n_live, 13 - n_live);
            ActivationCase fresh(c.x, c.x_dtype, 13, c.k, 1);
            for (std::int64_t i = 0; i < n_live; ++i) { // the poison of a smaller n_live
                std::memcpy(x.data().view().row(i), fresh.data().view().row(i),
                            x.data().row_bits(i).size());
                if (!x.scale().empty())
                    std::memcpy(x.scales().view().row(i), fresh.scales().view().row(i),
                                x.scales().row_bits(i).size());
            }
            cpu::linear(args, pool);
            EXPECT_TRUE(y.guards_intact());
            for (std::int64_t i = 0; i < 13; ++i)
                if (i < n_live)
                    ASSERT_EQ(y.row_bits(i), full.row_bits(i)) << name_of(c);
                else
                    ASSERT_TRUE(y.row_is_zero(i)) << name_of(c);
        }
    }
}

TEST(Linear, ReadsAShardOfColumnsAtAnyAddress) {
    ThreadPool pool(1);
    WeightCase whole(W::kFp8Block, DType::kBF16, 0, {130}, 512, 3);
    WeightCase shard(W::kFp8Block, DType::kBF16, 0, {130}, 256, 4);
    for (std::int64_t j = 0; j < 130; ++j)
        std::memcpy(shard.data(0).view().row(j), whole.data(0).view().row(j) + 128, 256);
    // The shard's scales: columns 1 and 2 of the whole's.
    const ConstView scale = whole.parts()[0].scale;
    shard.parts()[0].scale = scale.slice_columns(1, 2);
    ActivationCase x(A::kPlain, DType::kBF16, 3, 256, 1);
    GuardedTensor expected(DType::kF32, {3, 130}), got(DType::kF32, {3, 130});
    cpu::linear(bind(x, shard, expected), pool);

    WeightPart strided = whole.parts()[0];
    strided.data = strided.data.slice_columns(128, 256);
    strided.scale = scale.slice_columns(1, 2);
    LinearArgs args = bind(x, shard, got);
    args.w.parts = {&strided, 1};
    ASSERT_TRUE(check(args).ok()) << check(args).message();
    cpu::linear(args, pool);
    EXPECT_EQ(got.all_bytes(), expected.all_bytes());

    // bf16 at an odd address, as a file may place it.
    ActivationCase x2(A::kPlain, DType::kBF16, 2, 24, 1);
    WeightCase aligned(W::kPlain, DType::kBF16, 0, {4}, 24, 2);
    std::vector<std::byte> moved(4 * 48 + 1);
    std::memcpy(moved.data() + 1, aligned.data(0).view().data, 4 * 48);
    GuardedTensor y1(DType::kF32, {2, 4}), y2(DType::kF32, {2, 4});
    cpu::linear(bind(x2, aligned, y1), pool);
    aligned.parts()[0].data.data = moved.data() + 1;
    cpu::linear(bind(x2, aligned, y2), pool);
    EXPECT_EQ(y1.all_bytes(), y2.all_bytes());
}

TEST(Linear, ANaNStaysInItsRow) {
    ThreadPool pool(1);
    ActivationCase x(A::kPlain, DType::kBF16, 9, 64, 1);
    WeightCase w(W::kPlain, DType::kBF16, 0, {6}, 64, 2);
    x.data().set(3 * 64 + 17, NAN);
    GuardedTensor y(DType::kBF16, {9, 6});
    cpu::linear(bind(x, w, y), pool);
    for (std::int64_t i = 0; i < 54; ++i)
        EXPECT_EQ(std::isnan(y.at(i)), i / 6 == 3);
}

TEST(Linear, RefusesWhatDoesNotFit) {
    ActivationCase x(A::kPlain, DType::kBF16, 4, 64, 1);
    WeightCase w(W::kPlain, DType::kBF16, 0, {6}, 64, 2);
    GuardedTensor y(DType::kBF16, {4, 6}), narrow(DType::kBF16, {4, 5});
    const LinearArgs good = bind(x, w, y);
    EXPECT_TRUE(check(good).ok());

    LinearArgs args = good;
    args.y = narrow;
    EXPECT_EQ(check(args).message(), "linear: y dim 1: expected N=6, got 5");
    args = good;
    args.x.shape[1] = 60;
    EXPECT_EQ(check(args).message(), "linear: w dim 1: expected K=60, got 64");
    args = good;
    args.w = Weight{};
    EXPECT_EQ(check(args).message(), "linear: w: expected a weight, got none");
    args = good;
    args.x_scale = ConstView(y);
    EXPECT_EQ(check(args).message(),
              "linear: x_scale: expected none beside bf16 values, got shape [4, 6]");
    args = good;
    WeightPart part = good.w.parts[0];
    part.data = part.data.slice_rows(0, 5);
    args.w.parts = {&part, 1};
    EXPECT_EQ(check(args).message(), "linear: w: expected 6 rows in 1 parts, got 5");
}

TEST(Linear, RefusesUnsupportedProductsWithTheList) {
    for (A a : {A::kPlain, A::kFp8Token, A::kFp8Group, A::kFp8Static, A::kNvfp4})
        for (W f : {W::kPlain, W::kFp8Block, W::kFp8Channel, W::kFp8Tensor, W::kNvfp4}) {
            ActivationCase x(a, DType::kBF16, 4, 256, 1);
            WeightCase w(f, DType::kBF16, 0, {6}, 256, 2);
            GuardedTensor y(DType::kBF16, {4, 6});
            const Status status = check(bind(x, w, y));
            EXPECT_EQ(status.ok(), product_supported(a, f)) << status.message();
            if (status.ok())
                continue;
            EXPECT_EQ(status.message(),
                      fmt::format("linear: no product of {} activations with {} weights; "
                                  "supported: plain x any, fp8-token or fp8-static x fp8-channel "
                                  "or fp8-tensor, fp8-group x fp8-block, nvfp4 x nvfp4",
                                  activation_format_name(a), weight_format_name(f)));
        }
}

TEST(Linear, RefusesScalesOfTheWrongShape) {
    ActivationCase x(A::kFp8Group, DType::kBF16, 4, 256, 1);
    WeightCase w(W::kFp8Block, DType::kBF16, 0, {130}, 256, 2);
    GuardedTensor y(DType::kBF16, {4, 130});
    LinearArgs args = bind(x, w, y);
    args.x_scale.shape[1] = 3;
    EXPECT_EQ(check(args).message(), "linear: x_scale dim 1: expected 2, got 3");
    args = bind(x, w, y);
    WeightPart part = args.w.parts[0];
    part.scale = part.scale.slice_rows(0, 1);
    args.w.parts = {&part, 1};
    EXPECT_EQ(check(args).message(), "linear: w part 0 scale dim 0: expected 2, got 1");
    WeightCase channel(W::kFp8Channel, DType::kBF16, 0, {130}, 256, 2);
    part = channel.parts()[0];
    part.scale = {};
    args.w = channel.weight();
    args.w.parts = {&part, 1};
    EXPECT_EQ(check(args).message(), "linear: w part 0 scale: expected a tensor, got none");
}

// A tensor before it has memory: check and cost must not look at what it points to.
View symbol(DType dtype, Shape shape) {
    return {reinterpret_cast<std::byte*>(0x40), dtype, shape};
}

TEST(Linear, CountsTheWorkOfAPublishedShape) {
    // 35B-A3B, in_proj_qkvz with per-channel FP8: 25,214,976 weight bytes, 50,331,648 FLOP a token.
    LinearArgs args;
    args.x = symbol(DType::kE4M3, {4, 2048});
    args.x_scale = symbol(DType::kF32, {4});
    args.w.format = W::kFp8Channel;
    args.w.dtype = DType::kE4M3;
    args.w.shape = {12288, 2048};
    args.y = symbol(DType::kBF16, {4, 12288});
    ASSERT_TRUE(check(args).ok()) << check(args).message();
    const Cost got = cost(args);
    EXPECT_EQ(got.weight_bytes, 25214976);
    EXPECT_EQ(got.flops, 4 * 50331648);
    EXPECT_EQ(got.read_bytes, 25214976 + 4 * 2048 + 16);
    EXPECT_EQ(got.write_bytes, 4 * 12288 * 2);
}

} // namespace
} // namespace lr::ops
