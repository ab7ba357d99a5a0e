// SPDX-License-Identifier: Apache-2.0
//
// The prefill chain (nodes 6 to 17) against the decode chain (nodes 6 and 7) and against the
// recurrence in double: the same outputs, matrix states and convolution states.
#include "core/thread_pool.h"
#include "cpu/gdn/gdn.h"
#include "tests/ops/gdn/gdn_case.h"

namespace lr::ops {
namespace {

using namespace gdn_test;

constexpr std::int64_t kSlots = 4;

// Weights and states of one layer.
struct Layer {
    std::int64_t hk, hv, dk, dv, channels;
    Precision precision;
    DType act;
    GuardedTensor taps, a_log, dt_bias, conv_state, ssm_state;
    std::vector<WeightPart> parts;
    Weight conv;

    Layer(std::int64_t key_heads, std::int64_t group, std::int64_t key_width,
          std::int64_t value_width, Precision how)
        : hk(key_heads), hv(key_heads * group), dk(key_width), dv(value_width),
          channels(2 * hk * dk + hv * dv), precision(how), act(act_dtype(how)),
          taps(act, {channels, 4}), a_log(DType::kF32, {hv}), dt_bias(DType::kF32, {hv}),
          conv_state(act, {kSlots, channels, 3}), ssm_state(DType::kF32, {kSlots, hv, dv, dk}) {
        taps.fill("taps", 0.5);
        a_log.fill("a_log", 1.0, -3.0); // half lives from a few tokens to a few hundred
        dt_bias.fill("dt_bias", 0.5);
        conv_state.fill("conv_state", 1.0);
        ssm_state.fill("ssm_state", 0.3);
        parts = {{.data = taps, .scale = {}}};
        conv = {.shape = {channels, 4}, .dtype = act, .parts = parts};
    }
    Layer(const Layer&) = delete;
};

// The projections of one sequence.
struct Sequence {
    std::int64_t length;
    GuardedTensor qkvz, ba;

    Sequence(const Layer& layer, std::int64_t tokens, const char* name)
        : length(tokens), qkvz(layer.act, {tokens, layer.channels + layer.hv * layer.dv}),
          ba(layer.act, {tokens, 2 * layer.hv}) {
        qkvz.fill(name, 1.0);
        ba.fill(name, 1.0);
    }
};

// Tokens [first, first + count) of a sequence.
struct Piece {
    Sequence* sequence;
    std::int64_t first, count;
    int slot, mask;
};

void copy_rows(GuardedTensor& from, std::int64_t first, std::int64_t count, GuardedTensor& to,
               std::int64_t row) {
    const std::int64_t width = from.view().shape.row_count();
    for (std::int64_t i = 0; i < count * width; ++i)
        to.set(row * width + i, from.at(first * width + i));
}

// One prefill batch: o of every row, states in the layer's slots.
class Prefill {
  public:
    Prefill(Layer& layer, const std::vector<Piece>& pieces, int threads)
        : o(layer.act, {rows(pieces) + 3, layer.hv, layer.dv}), layer_(layer),
          batch_(lengths(pieces), slots(pieces), masks(pieces)), pool_(threads) {
        convolve(pieces);
        chunk();
    }
    GuardedTensor o;

  private:
    static std::vector<std::int64_t> lengths(const std::vector<Piece>& pieces) {
        std::vector<std::int64_t> out;
        for (const Piece& piece : pieces)
            out.push_back(piece.count);
        return out;
    }
    static std::vector<int> slots(const std::vector<Piece>& pieces) {
        std::vector<int> out;
        for (const Piece& piece : pieces)
            out.push_back(piece.slot);
        return out;
    }
    static std::vector<int> masks(const std::vector<Piece>& pieces) {
        std::vector<int> out;
        for (const Piece& piece : pieces)
            out.push_back(piece.mask);
        return out;
    }
    static std::int64_t rows(const std::vector<Piece>& pieces) {
        return Packed::total(lengths(pieces));
    }

    GuardedTensor tensor(std::int64_t heads, std::int64_t width) {
        return {layer_.act, {batch_.n, heads, width}};
    }

    void convolve(const std::vector<Piece>& pieces) {
        GuardedTensor qkvz(layer_.act, {batch_.n, layer_.channels + layer_.hv * layer_.dv});
        GuardedTensor ba(layer_.act, {batch_.n, 2 * layer_.hv});
        std::int64_t row = 0;
        for (const Piece& piece : pieces) {
            copy_rows(piece.sequence->qkvz, piece.first, piece.count, qkvz, row);
            copy_rows(piece.sequence->ba, piece.first, piece.count, ba, row);
            row += piece.count;
        }
        GuardedTensor u(layer_.act, {batch_.n, layer_.channels});
        run_op(cpu::causal_conv,
               CausalConvArgs{.qkv = qkvz.view().slice_columns(0, layer_.channels),
                              .cu_seqlens = batch_.cu_seqlens,
                              .slot = batch_.slot,
                              .mask = batch_.mask,
                              .n_live = batch_.n_live,
                              .conv = layer_.conv,
                              .conv_state = layer_.conv_state,
                              .y = u},
               pool_);
        run_op(cpu::qkv_split,
               QkvSplitArgs{.x = u, .n_live = batch_.n_live, .q = q_, .k = k_, .v = v_}, pool_);
        run_op(cpu::gating,
               GatingArgs{.ba = ba,
                          .a_log = layer_.a_log,
                          .dt_bias = layer_.dt_bias,
                          .n_live = batch_.n_live,
                          .g = g_,
                          .beta = beta_,
                          .precision = layer_.precision},
               pool_);
        for (GuardedTensor* x : {&q_, &k_})
            run_op(cpu::l2norm, L2normArgs{.x = *x, .n_live = batch_.n_live, .y = *x}, pool_);
        run_op(cpu::chunk_cumsum,
               ChunkCumsumArgs{.g = g_,
                               .chunk_row = batch_.chunk_row,
                               .chunk_len = batch_.chunk_len,
                               .n_live = batch_.n_live,
                               .g_cumsum = g_},
               pool_);
    }

    void chunk() {
        GuardedTensor a_inv = tensor(layer_.hv, kGdnChunk), w = tensor(layer_.hv, layer_.dk);
        GuardedTensor u = tensor(layer_.hv, layer_.dv), v_new = tensor(layer_.hv, layer_.dv);
        GuardedTensor h(layer_.act, {batch_.chunks, layer_.hv, layer_.dv, layer_.dk});
        run_op(cpu::chunk_kkt_solve,
               ChunkKktSolveArgs{.k = k_,
                                 .beta = beta_,
                                 .g_cumsum = g_,
                                 .chunk_row = batch_.chunk_row,
                                 .chunk_len = batch_.chunk_len,
                                 .a_inv = a_inv,
                                 .precision = layer_.precision},
               pool_);
        run_op(cpu::chunk_recompute_wu,
               ChunkRecomputeWuArgs{.k = k_,
                                    .v = v_,
                                    .beta = beta_,
                                    .g_cumsum = g_,
                                    .a_inv = a_inv,
                                    .chunk_row = batch_.chunk_row,
                                    .chunk_len = batch_.chunk_len,
                                    .n_live = batch_.n_live,
                                    .w = w,
                                    .u = u,
                                    .precision = layer_.precision},
               pool_);
        run_op(cpu::chunk_state,
               ChunkStateArgs{.k = k_,
                              .w = w,
                              .u = u,
                              .g_cumsum = g_,
                              .chunk_row = batch_.chunk_row,
                              .chunk_len = batch_.chunk_len,
                              .seq_chunk = batch_.seq_chunk,
                              .slot = batch_.slot,
                              .mask = batch_.mask,
                              .n_live = batch_.n_live,
                              .ssm_state = layer_.ssm_state,
                              .h = h,
                              .v_new = v_new,
                              .precision = layer_.precision},
               pool_);
        run_op(cpu::chunk_output,
               ChunkOutputArgs{.q = q_,
                               .k = k_,
                               .v_new = v_new,
                               .h = h,
                               .g_cumsum = g_,
                               .chunk_row = batch_.chunk_row,
                               .chunk_len = batch_.chunk_len,
                               .o = o,
                               .precision = layer_.precision},
               pool_);
    }

    Layer& layer_;
    Packed batch_;
    ThreadPool pool_;
    GuardedTensor q_ = tensor(layer_.hk, layer_.dk), k_ = tensor(layer_.hk, layer_.dk);
    GuardedTensor v_ = tensor(layer_.hv, layer_.dv);
    GuardedTensor g_{DType::kF32, {batch_.n, layer_.hv}}, beta_{DType::kF32, {batch_.n, layer_.hv}};
};

// Token by token from the slot's state: o of every token.
GuardedTensor decode(Layer& layer, Sequence& sequence, int slot_index) {
    GuardedTensor o(layer.act, {sequence.length, layer.hv, layer.dv});
    GuardedTensor q(layer.act, {1, layer.hk, layer.dk}), k(layer.act, {1, layer.hk, layer.dk});
    GuardedTensor v(layer.act, {1, layer.hv, layer.dv}), z(layer.act, {1, layer.hv, layer.dv});
    GuardedTensor b(layer.act, {1, layer.hv}), a(layer.act, {1, layer.hv});
    GuardedTensor slot(DType::kI32, {1});
    slot.set(0, slot_index);
    ThreadPool pool(1);
    for (std::int64_t t = 0; t < sequence.length; ++t) {
        run_op(cpu::unpack_conv,
               UnpackConvArgs{.qkvz = sequence.qkvz.view().slice_rows(t, 1),
                              .ba = sequence.ba.view().slice_rows(t, 1),
                              .slot = slot,
                              .n_live = {},
                              .conv = layer.conv,
                              .conv_state = layer.conv_state,
                              .q = q,
                              .k = k,
                              .v = v,
                              .z = z,
                              .b = b,
                              .a = a},
               pool);
        run_op(cpu::recurrent_update,
               RecurrentUpdateArgs{.q = q,
                                   .k = k,
                                   .v = v,
                                   .b = b,
                                   .a = a,
                                   .a_log = layer.a_log,
                                   .dt_bias = layer.dt_bias,
                                   .slot = slot,
                                   .n_live = {},
                                   .ssm_state = layer.ssm_state,
                                   .o = o.view().slice_rows(t, 1),
                                   .precision = layer.precision},
               pool);
    }
    return o;
}

// The recurrence in double.
class Oracle {
  public:
    std::vector<double> state, o; // [Hv, dv, dk], [T, Hv, dv]

    Oracle(Layer& layer, Sequence& sequence, int slot) : layer_(layer) {
        for (std::int64_t i = 0; i < layer.hv * layer.dv * layer.dk; ++i)
            state.push_back(layer.ssm_state.at(slot * layer.hv * layer.dv * layer.dk + i));
        for (std::int64_t t = 0; t < sequence.length; ++t) {
            std::vector<double> u;
            for (std::int64_t c = 0; c < layer.channels; ++c)
                u.push_back(convolved(sequence, slot, t, c));
            for (std::int64_t head = 0; head < layer.hv; ++head)
                step(sequence, t, head, u);
        }
    }

  private:
    double convolved(Sequence& sequence, int slot, std::int64_t t, std::int64_t c) {
        const std::int64_t columns = layer_.channels + layer_.hv * layer_.dv;
        double sum = 0;
        for (std::int64_t tap = 0; tap < 4; ++tap) {
            const std::int64_t from = t + tap - 3;
            sum += layer_.taps.at(c * 4 + tap) *
                   (from >= 0 ? sequence.qkvz.at(from * columns + c)
                              : layer_.conv_state.at((slot * layer_.channels + c) * 3 + from + 3));
        }
        return silu(sum);
    }
    static std::vector<double> unit(const std::vector<double>& u, std::int64_t first,
                                    std::int64_t width) {
        std::vector<double> x(u.begin() + first, u.begin() + first + width);
        double squares = 1e-6;
        for (double value : x)
            squares += value * value;
        for (double& value : x)
            value /= std::sqrt(squares);
        return x;
    }
    void step(Sequence& sequence, std::int64_t t, std::int64_t head, const std::vector<double>& u) {
        const std::int64_t key_head = head / (layer_.hv / layer_.hk);
        const auto qn = unit(u, key_head * layer_.dk, layer_.dk);
        const auto kn = unit(u, (layer_.hk + key_head) * layer_.dk, layer_.dk);
        const double beta = sigmoid(sequence.ba.at(t * 2 * layer_.hv + head));
        const double a = sequence.ba.at(t * 2 * layer_.hv + layer_.hv + head);
        const double alpha =
            std::exp(-std::exp(layer_.a_log.at(head)) * softplus(a + layer_.dt_bias.at(head)));
        const double scale = 1 / std::sqrt(static_cast<double>(layer_.dk));
        for (std::int64_t i = 0; i < layer_.dv; ++i) {
            double* s = state.data() + (head * layer_.dv + i) * layer_.dk;
            double read = 0, out = 0;
            for (std::size_t j = 0; j < kn.size(); ++j) {
                s[j] *= alpha;
                read += s[j] * kn[j];
            }
            const std::int64_t channel = 2 * layer_.hk * layer_.dk + head * layer_.dv + i;
            const double d = beta * (u[static_cast<std::size_t>(channel)] - read);
            for (std::size_t j = 0; j < kn.size(); ++j) {
                s[j] += d * kn[j];
                out += s[j] * qn[j];
            }
            o.push_back(out * scale);
        }
    }
    Layer& layer_;
};

// Largest difference, relative to the root mean square of what is expected.
template <typename Got, typename Expected>
double distance(Got got, Expected expected, std::int64_t count) {
    double worst = 0, squares = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const double difference = std::abs(got(i) - expected(i));
        worst = difference <= worst ? worst : difference; // a NaN wins
        squares += expected(i) * expected(i);
    }
    return worst / std::sqrt(squares / static_cast<double>(count));
}

void expect_equal_chains(std::int64_t group, std::int64_t dk, std::int64_t dv, std::int64_t length,
                         Precision precision, double limit) {
    constexpr int kSlot = 2;
    Layer chunked(2, group, dk, dv, precision), stepped(2, group, dk, dv, precision);
    Sequence sequence(chunked, length, "sequence");
    Oracle oracle(chunked, sequence, kSlot);
    const std::int64_t state_first = kSlot * chunked.hv * dv * dk;
    const auto state_count = static_cast<std::int64_t>(oracle.state.size());
    const auto o_count = static_cast<std::int64_t>(oracle.o.size());

    GuardedTensor before = chunked.ssm_state;
    Prefill prefill(chunked, {{&sequence, 0, length, kSlot, 1}}, 2);
    GuardedTensor decoded = decode(stepped, sequence, kSlot);

    const auto from = [](GuardedTensor& x, std::int64_t first) {
        return [&x, first](std::int64_t i) { return x.at(first + i); };
    };
    const auto of = [](const std::vector<double>& x) {
        return [&x](std::int64_t i) { return x[static_cast<std::size_t>(i)]; };
    };
    const auto where = ::testing::Message() << "r " << group << ", dk " << dk << ", T " << length;
    EXPECT_LE(distance(from(prefill.o, 0), of(oracle.o), o_count), limit) << where;
    EXPECT_LE(distance(from(decoded, 0), of(oracle.o), o_count), limit) << where;
    EXPECT_LE(distance(from(prefill.o, 0), from(decoded, 0), o_count), limit) << where;
    EXPECT_LE(distance(from(chunked.ssm_state, state_first), of(oracle.state), state_count), limit)
        << where;
    EXPECT_LE(distance(from(stepped.ssm_state, state_first), of(oracle.state), state_count), limit)
        << where;
    EXPECT_EQ(chunked.conv_state.all_bytes(), stepped.conv_state.all_bytes()) << where;
    for (std::int64_t other : {0, 1, 3})
        EXPECT_EQ(chunked.ssm_state.row_bits(other), before.row_bits(other)) << where;
    EXPECT_TRUE(prefill.o.guards_intact());
}

TEST(ChunkEqualsRecurrence, InF32ForEveryLengthAndGroup) {
    for (std::int64_t length : {1, 2, 3, 63, 64, 65, 130, 200})
        for (std::int64_t group : {1, 2, 3, 4})
            expect_equal_chains(group, 32, 16, length, Precision::kF32, 1e-5);
}

TEST(ChunkEqualsRecurrence, InF32AtTheModelsHeadWidth) {
    for (std::int64_t length : {65, 200})
        expect_equal_chains(2, 128, 128, length, Precision::kF32, 1e-5);
}

// A sanity check of the roundings together: the worst of thousands of elements stays below 32 of
// them, relative to the root mean square (0.06 was seen; a wrong boundary is worth 0.3 and more).
TEST(ChunkEqualsRecurrence, InBf16WithinAFewRoundings) {
    for (std::int64_t length : {3, 65, 200})
        expect_equal_chains(2, 32, 16, length, Precision::kModel, 32 * kBf16Error);
}

TEST(ChunkEqualsRecurrence, PackedSequencesHaveTheBitsOfEachAlone) {
    for (Precision precision : {Precision::kF32, Precision::kModel}) {
        Layer both(2, 2, 32, 16, precision), one(2, 2, 32, 16, precision);
        Sequence first(both, 100, "first"), second(both, 131, "second");
        Prefill packed(both, {{&first, 0, 100, 3, 1}, {&second, 0, 131, 0, 0}}, 2);
        Prefill first_alone(one, {{&first, 0, 100, 3, 1}}, 1);
        Prefill second_alone(one, {{&second, 0, 131, 0, 0}}, 1);
        for (std::int64_t row = 0; row < 231; ++row)
            ASSERT_EQ(packed.o.row_bits(row),
                      row < 100 ? first_alone.o.row_bits(row) : second_alone.o.row_bits(row - 100))
                << row;
        EXPECT_EQ(both.ssm_state.all_bytes(), one.ssm_state.all_bytes());
        EXPECT_EQ(both.conv_state.all_bytes(), one.conv_state.all_bytes());
    }
}

TEST(ChunkEqualsRecurrence, PiecesOfWholeChunksHaveTheBitsOfOnePiece) {
    for (Precision precision : {Precision::kF32, Precision::kModel})
        for (std::int64_t cut : {64, 128, 192}) {
            Layer whole(2, 2, 32, 16, precision), parts(2, 2, 32, 16, precision);
            Sequence sequence(whole, 200, "sequence");
            Prefill once(whole, {{&sequence, 0, 200, 1, 0}}, 2);
            Prefill before(parts, {{&sequence, 0, cut, 1, 0}}, 2);
            Prefill after(parts, {{&sequence, cut, 200 - cut, 1, 1}}, 2);
            for (std::int64_t row = 0; row < 200; ++row)
                ASSERT_EQ(once.o.row_bits(row),
                          row < cut ? before.o.row_bits(row) : after.o.row_bits(row - cut))
                    << cut << " " << row;
            EXPECT_EQ(whole.ssm_state.all_bytes(), parts.ssm_state.all_bytes());
            EXPECT_EQ(whole.conv_state.all_bytes(), parts.conv_state.all_bytes());
        }
}

} // namespace
} // namespace lr::ops
