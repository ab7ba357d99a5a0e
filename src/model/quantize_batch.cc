// SPDX-License-Identifier: Apache-2.0
#include "model/quantize_batch.h"

#include "core/check.h"
#include "numerics/convert.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace lr::model {
namespace {

using checkpoint::StoredFormat;
using checkpoint::TensorInfo;
using numerics::DecodeScale;
using numerics::EncodeScale;

// Elements that a thread takes at a time: in the L2 with their codes.
constexpr std::int64_t kGrain = std::int64_t{1} << 15;
constexpr std::int64_t kChunkBytes = std::int64_t{64} << 20; // of a copy
// Half a step beyond the largest code: from there on the rounding is no nearest value.
constexpr float kE4M3Edge = 464.0f, kE2M1Edge = 7.0f;

std::size_t length(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

// w against v over a run of elements; |w| > edge counts as saturated.
void measure(std::span<const float> w, std::span<const float> v, float edge, QuantizeError& error) {
    for (std::size_t i = 0; i < w.size(); ++i) {
        const double a = w[i], b = v[i], off = a - b;
        error.ww += a * a;
        error.vv += b * b;
        error.wv += a * b;
        error.off += off * off;
        error.max_abs = std::max(error.max_abs, std::fabs(off));
        error.saturated += std::fabs(w[i]) > edge;
    }
    error.elements += static_cast<std::int64_t>(w.size());
}

void store(std::vector<std::byte>& out, DType dtype, std::int64_t first,
           std::span<const float> values) {
    numerics::encode_from_f32(dtype, values.data(), static_cast<std::int64_t>(values.size()),
                              out.data() + dtype_bytes(dtype, first));
}

std::uint8_t* codes_at(std::vector<std::byte>& out, std::int64_t first) {
    return reinterpret_cast<std::uint8_t*>(out.data()) + first;
}

// A thread's rows: values, and what their codes stand for.
struct Scratch {
    std::vector<float> w, v, scales;
};
Scratch& scratch() {
    thread_local Scratch mine;
    return mine;
}

} // namespace

// A matrix with its outputs.
struct QuantizeBatch::Matrix {
    const QuantizeMatrix* in;
    std::size_t job; // of the batch
    StoredFormat format;
    std::vector<std::byte> input, global, scale, codes;
    DecodeScale decode{1}; // of the job, where the format has a global factor
    EncodeScale encode{1};

    std::vector<std::byte>& of(StoredPart part) {
        switch (part) {
        case StoredPart::kInput:
            return input;
        case StoredPart::kGlobal:
            return global;
        case StoredPart::kScale:
            return scale;
        case StoredPart::kCodes:
            break;
        }
        return codes;
    }
};

// Rows of a matrix that one thread quantises.
struct QuantizeBatch::Band {
    Matrix* matrix;
    std::int64_t first, rows;
    float amax = 0;
    QuantizeError error;

    std::int64_t columns() const { return matrix->in->columns; }
    void read(std::vector<float>& w) const {
        const TensorInfo& source = *matrix->in->source;
        w.resize(length(rows * columns()));
        numerics::decode_to_f32(
            *source.dtype,
            source.data + dtype_bytes(*source.dtype, matrix->in->first + first * columns()),
            rows * columns(), w.data());
    }
    void fp8_block(Scratch& s);
    void fp8_channel(Scratch& s);
    void fp8_tensor(Scratch& s);
    void nvfp4(Scratch& s, numerics::BlockScales scales);
};

void QuantizeBatch::Band::fp8_block(Scratch& s) {
    const std::int64_t across = (columns() + numerics::kFp8Block - 1) / numerics::kFp8Block;
    std::uint8_t* codes = codes_at(matrix->codes, first * columns());
    s.scales.resize(length(across));
    LR_CHECK_LE(rows, numerics::kFp8Block);
    numerics::quantize_fp8_block(s.w, columns(), numerics::ScaleStorage::kBF16, {codes, s.w.size()},
                                 s.scales);
    store(matrix->scale, DType::kBF16, first / numerics::kFp8Block * across, s.scales);
    for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t block = 0; block < across; ++block) {
            const std::int64_t begin = block * numerics::kFp8Block;
            const std::size_t at = length(row * columns() + begin);
            const std::size_t count = length(std::min(numerics::kFp8Block, columns() - begin));
            const float scale = s.scales[length(block)];
            const auto v = std::span(s.v).subspan(at, count);
            numerics::dequantize_fp8({codes + at, count}, scale, v);
            measure(std::span(s.w).subspan(at, count), v, kE4M3Edge * scale, error);
        }
}

void QuantizeBatch::Band::fp8_channel(Scratch& s) {
    std::uint8_t* codes = codes_at(matrix->codes, first * columns());
    s.scales.resize(length(rows));
    numerics::quantize_fp8_rows(s.w, columns(), {codes, s.w.size()}, s.scales);
    store(matrix->scale, DType::kF32, first, s.scales);
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::size_t at = length(row * columns()), count = length(columns());
        const float scale = s.scales[length(row)];
        const auto v = std::span(s.v).subspan(at, count);
        numerics::dequantize_fp8({codes + at, count}, scale, v);
        measure(std::span(s.w).subspan(at, count), v, kE4M3Edge * scale, error);
    }
}

void QuantizeBatch::Band::fp8_tensor(Scratch& s) {
    const std::span codes(codes_at(matrix->codes, first * columns()), s.w.size());
    numerics::quantize_fp8_with_scale(s.w, matrix->decode.value, codes);
    numerics::dequantize_fp8(codes, matrix->decode.value, s.v);
    measure(s.w, s.v, kE4M3Edge * matrix->decode.value, error);
}

void QuantizeBatch::Band::nvfp4(Scratch& s, numerics::BlockScales scales) {
    constexpr std::size_t kBlock = numerics::kNvfp4Block;
    const std::span codes(codes_at(matrix->codes, first * columns() / 2), s.w.size() / 2);
    const std::span sf(codes_at(matrix->scale, first * columns() / numerics::kNvfp4Block),
                       s.w.size() / kBlock);
    if (matrix->format == StoredFormat::kNvfp4ModelOpt)
        numerics::quantize_nvfp4_weight_modelopt(s.w, matrix->decode, codes, sf, scales);
    else
        numerics::quantize_nvfp4_weight_compressed(s.w, matrix->encode, codes, sf, scales);
    numerics::dequantize_nvfp4(codes, sf, matrix->decode, s.v);
    for (std::size_t b = 0; b < sf.size(); ++b)
        measure(std::span(s.w).subspan(b * kBlock, kBlock),
                std::span(s.v).subspan(b * kBlock, kBlock),
                kE2M1Edge * (numerics::decode_e4m3(sf[b]) * matrix->decode.value), error);
}

QuantizeBatch::QuantizeBatch(const QuantizePlan& plan, std::span<const QuantizeJob> jobs)
    : plan_(plan), jobs_(jobs) {}
QuantizeBatch::~QuantizeBatch() = default;

void QuantizeBatch::look(Band& band) {
    Scratch& s = scratch();
    band.read(s.w);
    band.amax = numerics::absolute_max(s.w);
}

void QuantizeBatch::quantise(Band& band) {
    Scratch& s = scratch();
    band.read(s.w);
    s.v.resize(s.w.size());
    switch (band.matrix->format) {
    case StoredFormat::kPlain:
        break;
    case StoredFormat::kFp8Block:
        return band.fp8_block(s);
    case StoredFormat::kFp8Channel:
        return band.fp8_channel(s);
    case StoredFormat::kFp8Tensor:
        return band.fp8_tensor(s);
    case StoredFormat::kNvfp4ModelOpt:
    case StoredFormat::kNvfp4Compressed:
        return band.nvfp4(s, plan_.scheme.scales);
    }
    LR_CHECK(band.matrix->format != StoredFormat::kPlain);
}

void QuantizeBatch::cut_into_bands() {
    std::size_t count = 0;
    for (const QuantizeJob& job : jobs_)
        count += job.matrices.size();
    matrices_.reserve(count); // bands and outputs_ point into it
    for (std::size_t j = 0; j < jobs_.size(); ++j)
        for (const QuantizeMatrix& in : jobs_[j].matrices) {
            const Entry& entry = plan_.model.entries()[length(jobs_[j].entry)];
            matrices_.push_back(
                {&in, j, stored_format(plan_.scheme, entry.format), {}, {}, {}, {}});
            Matrix& matrix = matrices_.back();
            for (const StoredSpec& out : in.out) {
                matrix.of(out.part).resize(length(out.spec.bytes()));
                outputs_[out.spec.name] = &matrix.of(out.part);
            }
            const std::int64_t step = matrix.format == StoredFormat::kFp8Block
                                          ? numerics::kFp8Block
                                          : std::max(kGrain / in.columns, std::int64_t{1});
            for (std::int64_t first = 0; first < in.rows; first += step)
                bands_.push_back({&matrix, first, std::min(step, in.rows - first), 0, {}});
        }
}

// "'...gate_up_proj', element [3, 17, 5]" of the first element that is not finite.
Status QuantizeBatch::check_finite() const {
    for (const Band& band : bands_) {
        if (std::isfinite(band.amax))
            continue;
        const QuantizeMatrix& in = *band.matrix->in;
        std::vector<float> w;
        band.read(w);
        const auto bad =
            std::find_if(w.begin(), w.end(), [](float x) { return !std::isfinite(x); });
        std::int64_t at = in.first + band.first * in.columns + (bad - w.begin());
        const Shape& shape = in.source->shape;
        std::string place;
        for (int dim = shape.rank() - 1; dim >= 0; at /= shape[dim--])
            place = fmt::format("{}{}{}", at % shape[dim], place.empty() ? "" : ", ", place);
        return fail(Code::kInvalidFile,
                    "tensor '{}', element [{}]: expected a finite weight, got {}; nothing can "
                    "stand for it in a quantised model",
                    in.source->name, place, *bad);
    }
    return {};
}

// The factor that the matrices of a job share.
void QuantizeBatch::set_globals() {
    std::vector<float> amax(jobs_.size(), 0.0f);
    for (const Band& band : bands_)
        amax[band.matrix->job] = std::max(amax[band.matrix->job], band.amax);
    for (Matrix& matrix : matrices_) {
        if (matrix.global.empty())
            continue;
        const float largest = amax[matrix.job];
        const bool fp8 = matrix.format == StoredFormat::kFp8Tensor;
        matrix.decode =
            fp8 ? DecodeScale(numerics::fp8_scale(largest)) : numerics::nvfp4_decode_scale(largest);
        matrix.encode = EncodeScale(matrix.decode);
        float stored = matrix.decode.value;
        if (matrix.format == StoredFormat::kNvfp4Compressed) {
            // Readers invert what is stored; so do we.
            matrix.decode = DecodeScale(matrix.encode);
            stored = matrix.encode.value;
        }
        std::memcpy(matrix.global.data(), &stored, sizeof stored);
    }
}

void QuantizeBatch::set_inputs() {
    for (Matrix& matrix : matrices_) {
        if (matrix.input.empty())
            continue;
        const auto entry = length(jobs_[matrix.job].entry);
        const DecodeScale decode(plan_.model.entries()[entry].input_scale);
        const bool inverse = matrix.format == StoredFormat::kNvfp4Compressed;
        const float stored = inverse ? EncodeScale(decode).value : decode.value;
        std::memcpy(matrix.input.data(), &stored, sizeof stored);
    }
}

Status QuantizeBatch::run(ThreadPool& pool) {
    cut_into_bands();
    const auto each_band = [&](auto body) {
        pool.parallel_for(static_cast<std::int64_t>(bands_.size()), 1,
                          [&](std::int64_t from, std::int64_t to) {
                              for (std::int64_t b = from; b < to; ++b)
                                  body(bands_[length(b)]);
                          });
    };
    each_band([this](Band& band) { look(band); });
    LR_TRY(check_finite());
    set_globals();
    set_inputs();
    each_band([this](Band& band) { quantise(band); });
    std::vector<QuantizeError> sums(jobs_.size());
    for (const Band& band : bands_)
        sums[band.matrix->job].add(band.error);
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
        sums[j].matrices = static_cast<std::int64_t>(jobs_[j].matrices.size());
        if (!jobs_[j].copied)
            errors_.push_back({jobs_[j].entry, sums[j]});
    }
    return {};
}

Status QuantizeBatch::write(checkpoint::SafetensorsWriter& writer,
                            FunctionRef<void(std::int64_t)> wrote) const {
    for (const QuantizeJob& job : jobs_)
        for (const checkpoint::TensorSpec& spec : job.specs()) {
            const auto bytes = job.copied ? std::span(job.copied->data, length(job.copied->bytes))
                                          : std::span<const std::byte>(*outputs_.at(spec.name));
            for (std::size_t at = 0; at < bytes.size(); at += length(kChunkBytes)) {
                const std::size_t count = std::min(length(kChunkBytes), bytes.size() - at);
                LR_TRY(writer.append(spec.name, bytes.subspan(at, count)));
                wrote(static_cast<std::int64_t>(count));
            }
        }
    return {};
}

} // namespace lr::model
