// SPDX-License-Identifier: Apache-2.0
//
// A small random model in any of the quantised layouts, written here with the quantisers of
// numerics, and beside it the same model in plain F32: what those codes and scales are worth by the
// dequantisers of numerics. The loader under test has no part in either.
#pragma once

#include "checkpoint/safetensors_writer.h"
#include "core/json.h"
#include "numerics/quantize.h"
#include "tests/engine/fixture.h"

#include <functional>
#include <utility>

namespace lr::engine {

enum class Flavor {
    kPlain,
    kBlockInv,      // weight_scale_inv BF16
    kBlock,         // weight_scale F32, as compressed-tensors names it
    kChannel,       // weight_scale BF16 [N, 1]
    kChannelFlat,   // weight_scale F32 [N]
    kTensor,        // weight_scale one F32
    kTensorStatic,  // and input_scale
    kModelOpt,      // NVFP4: weight_scale_2, input_scale
    kModelOptW4A16, // without input_scale
    kCompressed     // NVFP4: weight_packed, weight_global_scale, input_global_scale
};

// For activations up to 14 and 21. Powers of two, so that an inverse is exact.
inline constexpr float kFp8InputScale = 0x1p-5f, kNvfp4InputScale = 0x1p-7f;

struct RawTensor {
    DType dtype = DType::kF32;
    Shape shape;
    std::vector<std::byte> bytes;

    float& f32(std::size_t i) { return reinterpret_cast<float*>(bytes.data())[i]; }
};
using RawTensors = std::map<std::string, RawTensor>;

template <typename T> RawTensor raw(DType dtype, Shape shape, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return {dtype, shape, {bytes.begin(), bytes.end()}};
}
inline RawTensor raw_f32(Shape shape, std::vector<float> values) {
    return raw(DType::kF32, shape, values);
}
inline RawTensor raw_bf16(Shape shape, const std::vector<float>& values) {
    std::vector<std::uint16_t> codes;
    for (float v : values)
        codes.push_back(numerics::encode_bf16(v));
    return raw(DType::kBF16, shape, codes);
}

struct Recipe {
    std::string name;
    std::function<Flavor(const model::Entry& entry, const std::string& module)> flavor;
    bool fused_experts = false;     // X [E, N, K] with X_weight_scale, ...
    bool halves = false;            // fused: a factor each for gate and up
    bool powers_of_two = false;     // scales and factors: products with them are exact
    std::string config = {};        // quantization_config
    std::string modelopt_file = {}; // hf_quant_config.json
};

inline void PrintTo(const Recipe& recipe, std::ostream* out) {
    *out << recipe.name;
}

// Every linear that releases quantise.
inline Recipe everywhere(std::string name, Flavor flavor) {
    return {std::move(name), [flavor](const model::Entry& entry, const std::string&) {
                return entry.quantisable() ? flavor : Flavor::kPlain;
            }};
}

class QuantisedTensors {
  public:
    QuantisedTensors(const Recipe& recipe, const model::OpenModel& plain) : recipe_(recipe) {
        const auto& entries = plain.model().entries();
        for (std::size_t i = 0; i < entries.size(); ++i)
            for (const checkpoint::StoredWeight& weight : plain.resolved.stored[i])
                add(entries[i], *weight.weight);
    }
    RawTensors stored, widened;

  private:
    static std::string base_of(std::string_view name) {
        return std::string(name.substr(0, name.ends_with(".weight") ? name.size() - 7 : name.npos));
    }

    void add(const model::Entry& entry, const checkpoint::TensorInfo& tensor) {
        const std::string base = base_of(tensor.name);
        const Flavor flavor = recipe_.flavor(entry, base);
        RawTensor plain{*tensor.dtype, tensor.shape, {tensor.data, tensor.data + tensor.bytes}};
        if (flavor == Flavor::kPlain) {
            stored[std::string(tensor.name)] = plain;
            widened[std::string(tensor.name)] = plain;
            return;
        }
        std::vector<float> w(static_cast<std::size_t>(tensor.shape.count()));
        for (std::size_t i = 0; i < w.size(); ++i)
            w[i] = checkpoint::float_at(tensor, static_cast<std::int64_t>(i));
        std::vector<float> values;
        if (tensor.shape.rank() == 2) {
            values = quantise(base + ".", flavor, tensor.shape, w);
        } else {
            values = recipe_.fused_experts ? fused(base, flavor, tensor.shape, w)
                                           : experts(base, flavor, tensor.shape, w);
        }
        widened[std::string(tensor.name)] = raw_f32(tensor.shape, values);
    }

    float rounded(float scale) const {
        return recipe_.powers_of_two ? std::exp2(std::ceil(std::log2(scale))) : scale;
    }

    // Each expert's matrices; gate and up are halves of the stack's rows.
    std::vector<float> experts(const std::string& base, Flavor flavor, Shape stack,
                               const std::vector<float>& w) {
        const std::string container = base.substr(0, base.rfind('.') + 1);
        const bool up = base.ends_with("gate_up_proj");
        const std::int64_t rows = stack[1] / (up ? 2 : 1);
        const auto count = static_cast<std::size_t>(rows * stack[2]);
        std::vector<float> values;
        for (std::int64_t m = 0; m < stack[0] * (up ? 2 : 1); ++m) {
            const std::string leaf = !up ? "down_proj" : m % 2 == 0 ? "gate_proj" : "up_proj";
            const auto first = w.begin() + static_cast<std::ptrdiff_t>(count) * m;
            const auto found =
                quantise(fmt::format("{}{}.{}.", container, m / (up ? 2 : 1), leaf), flavor,
                         {rows, stack[2]}, {first, first + static_cast<std::ptrdiff_t>(count)});
            values.insert(values.end(), found.begin(), found.end());
        }
        return values;
    }

    // One tensor of each kind for all experts.
    std::vector<float> fused(const std::string& base, Flavor flavor, Shape stack,
                             const std::vector<float>& w) {
        const bool halves = recipe_.halves && base.ends_with("gate_up_proj");
        const std::int64_t parts = stack[0] * (halves ? 2 : 1);
        const std::int64_t rows = stack[1] / (halves ? 2 : 1);
        const auto count = static_cast<std::ptrdiff_t>(rows * stack[2]);
        RawTensors all;
        std::vector<float> values;
        for (std::int64_t m = 0; m < parts; ++m) {
            RawTensors one;
            std::swap(one, stored);
            const auto first = w.begin() + count * m;
            const auto found =
                quantise(base + "_", flavor, {rows, stack[2]}, {first, first + count});
            values.insert(values.end(), found.begin(), found.end());
            std::swap(one, stored);
            for (auto& [name, tensor] : one) {
                RawTensor& whole = all[name == base + "_weight" ? base : name];
                whole.dtype = tensor.dtype;
                whole.shape = tensor.shape;
                whole.bytes.insert(whole.bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
            }
        }
        for (auto& [name, tensor] : all) {
            if (tensor.shape.count() == 1) {
                tensor.shape = halves ? Shape{stack[0], 2} : Shape{stack[0]};
            } else {
                Shape shape{stack[0], tensor.shape[0] * (halves ? 2 : 1)};
                for (int i = 1; i < tensor.shape.rank(); ++i)
                    shape.push_back(tensor.shape[i]);
                tensor.shape = shape;
            }
            stored[name] = tensor;
        }
        // One input scale an expert, whatever the halves.
        for (const char* input : {"_input_scale", "_input_global_scale"})
            if (const auto found = stored.find(base + input); found != stored.end())
                found->second = raw_f32({1}, {found->second.f32(0)});
        return values;
    }

    std::vector<float> quantise(const std::string& x, Flavor flavor, Shape shape,
                                const std::vector<float>& w) {
        switch (flavor) {
        case Flavor::kPlain:
            break;
        case Flavor::kBlockInv:
        case Flavor::kBlock:
            return fp8_block(x, flavor, shape, w);
        case Flavor::kChannel:
        case Flavor::kChannelFlat:
        case Flavor::kTensor:
        case Flavor::kTensorStatic:
            return fp8_runs(x, flavor, shape, w);
        case Flavor::kModelOpt:
        case Flavor::kModelOptW4A16:
        case Flavor::kCompressed:
            return nvfp4(x, flavor, shape, w);
        }
        return {};
    }

    std::vector<float> fp8_block(const std::string& x, Flavor flavor, Shape shape,
                                 const std::vector<float>& w) {
        const bool inverse = flavor == Flavor::kBlockInv;
        const Shape blocks{(shape[0] + 127) / 128, (shape[1] + 127) / 128};
        std::vector<std::uint8_t> q(w.size());
        std::vector<float> s(static_cast<std::size_t>(blocks.count())), values(w.size());
        numerics::quantize_fp8_block(
            w, shape[1], inverse ? numerics::ScaleStorage::kBF16 : numerics::ScaleStorage::kF32, q,
            s);
        for (float& scale : s)
            scale = rounded(scale);
        stored[x + "weight"] = raw(DType::kE4M3, shape, q);
        stored[x + (inverse ? "weight_scale_inv" : "weight_scale")] =
            inverse ? raw_bf16(blocks, s) : raw_f32(blocks, s);
        for (std::size_t i = 0; i < w.size(); ++i) {
            const auto row = static_cast<std::int64_t>(i) / shape[1];
            const auto column = static_cast<std::int64_t>(i) % shape[1];
            const auto block = static_cast<std::size_t>(row / 128 * blocks[1] + column / 128);
            numerics::dequantize_fp8(std::span(q).subspan(i, 1), s[block],
                                     std::span(values).subspan(i, 1));
        }
        return values;
    }

    // A scale for each row, or for all.
    std::vector<float> fp8_runs(const std::string& x, Flavor flavor, Shape shape,
                                const std::vector<float>& w) {
        const bool channel = flavor == Flavor::kChannel || flavor == Flavor::kChannelFlat;
        const auto run = static_cast<std::size_t>(channel ? shape[1] : shape.count());
        std::vector<std::uint8_t> q(w.size());
        std::vector<float> s, values(w.size());
        for (std::size_t first = 0; first < w.size(); first += run) {
            const std::span<const float> values_in(w.data() + first, run);
            float scale = rounded(numerics::fp8_scale(numerics::absolute_max(values_in)));
            if (flavor == Flavor::kChannel)
                scale = numerics::round_bf16(scale);
            numerics::quantize_fp8_with_scale(values_in, scale, std::span(q).subspan(first, run));
            numerics::dequantize_fp8(std::span(q).subspan(first, run), scale,
                                     std::span(values).subspan(first, run));
            s.push_back(scale);
        }
        stored[x + "weight"] = raw(DType::kE4M3, shape, q);
        stored[x + "weight_scale"] = flavor == Flavor::kChannel       ? raw_bf16({shape[0], 1}, s)
                                     : flavor == Flavor::kChannelFlat ? raw_f32({shape[0]}, s)
                                                                      : raw_f32({}, s);
        if (flavor == Flavor::kTensorStatic)
            stored[x + "input_scale"] = raw_f32({}, {kFp8InputScale});
        return values;
    }

    std::vector<float> nvfp4(const std::string& x, Flavor flavor, Shape shape,
                             const std::vector<float>& w) {
        const Shape packed{shape[0], shape[1] / 2}, blocks{shape[0], shape[1] / 16};
        std::vector<std::uint8_t> codes(w.size() / 2), sf(w.size() / 16);
        std::vector<float> values(w.size());
        const numerics::DecodeScale d(
            rounded(numerics::nvfp4_decode_scale(numerics::absolute_max(w)).value));
        const bool compressed = flavor == Flavor::kCompressed;
        if (compressed) {
            const numerics::EncodeScale g(d);
            numerics::quantize_nvfp4_weight_compressed(w, g, codes, sf);
            numerics::dequantize_nvfp4(codes, sf, numerics::DecodeScale(g), values);
            stored[x + "weight_packed"] = raw(DType::kU8, packed, codes);
            stored[x + "weight_global_scale"] = raw_f32({1}, {g.value});
            stored[x + "input_global_scale"] = raw_f32({1}, {1 / kNvfp4InputScale});
        } else {
            numerics::quantize_nvfp4_weight_modelopt(w, d, codes, sf);
            numerics::dequantize_nvfp4(codes, sf, d, values);
            stored[x + "weight"] = raw(DType::kU8, packed, codes);
            stored[x + "weight_scale_2"] = raw_f32({}, {d.value});
            if (flavor == Flavor::kModelOpt)
                stored[x + "input_scale"] = raw_f32({}, {kNvfp4InputScale});
        }
        stored[x + "weight_scale"] = raw(DType::kE4M3, blocks, sf);
        return values;
    }

    const Recipe& recipe_;
};

inline void write_tensors(const std::string& folder, const RawTensors& tensors) {
    std::filesystem::create_directories(folder);
    std::vector<checkpoint::TensorSpec> specs;
    for (const auto& [name, tensor] : tensors)
        specs.push_back({name, tensor.dtype, tensor.shape});
    checkpoint::sort_for_alignment(specs);
    auto writer = checkpoint::SafetensorsWriter::create(folder + "/model.safetensors", specs);
    ASSERT_TRUE(writer) << writer.error().message();
    for (const auto& spec : specs) {
        const Status status = writer->append(spec.name, tensors.at(spec.name).bytes);
        ASSERT_TRUE(status.ok()) << status.message();
    }
    ASSERT_TRUE(writer->finish().ok());
}

// config.json of `from` with this quantization_config.
inline void write_config(const std::string& folder, const std::string& from,
                         const std::string& quantization) {
    std::filesystem::create_directories(folder);
    const Json root = *parse_json(*read_text_file(from + "/config.json"), from);
    std::vector<JsonMember> members = root.as_object().members();
    if (!quantization.empty()) {
        const auto value = parse_json(quantization, "quantization_config");
        ASSERT_TRUE(value) << value.error().message();
        members.push_back({"quantization_config", *value});
    }
    std::ofstream(folder + "/config.json") << to_json_string(Json::object(std::move(members)));
}

// Wide enough that two ranks divide it at whole FP8 blocks.
inline model::Config quantisable_config(bool moe = true) {
    model::Config c;
    c.model_type = moe ? "qwen3_5_moe_text" : "qwen3_5_text";
    c.vocab_size = 512;
    c.hidden = 128;
    c.layers = model::interval_layers(4, 4);
    c.max_positions = 1024;
    c.tied = false;
    c.q_heads = 4;
    c.kv_heads = 2;
    c.head_dim = 128;
    c.rotary_dim = 32;
    c.k_heads = 2;
    c.v_heads = 4;
    c.k_dim = c.v_dim = 128;
    if (moe) {
        c.experts = 4;
        c.experts_per_token = 2;
        c.expert_width = c.shared_expert_width = 256;
    } else {
        c.ffn_width = 256;
    }
    return c;
}

struct QuantisedModel {
    std::string stored, widened; // folders
    RawTensors tensors;          // of `stored`
};

inline QuantisedModel write_quantised(const Recipe& recipe, bool moe = true) {
    const std::string plain =
        write_model(moe ? "formats-moe" : "formats-dense", quantisable_config(moe), {.seed = 7});
    const auto opened = model::open_model(plain);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message());
    QuantisedTensors made(recipe, *opened);
    const std::string folder = fmt::format("{}liverow-engine-{}{}", testing::TempDir(), recipe.name,
                                           moe ? "-moe" : "-dense");
    const std::string pid = fmt::format("-{}", ::getpid());
    QuantisedModel written{folder + "-stored" + pid, folder + "-widened" + pid, made.stored};
    write_tensors(written.stored, made.stored);
    write_config(written.stored, plain, recipe.config);
    if (!recipe.modelopt_file.empty())
        std::ofstream(written.stored + "/hf_quant_config.json") << recipe.modelopt_file;
    write_tensors(written.widened, made.widened);
    write_config(written.widened, plain, "");
    return written;
}

} // namespace lr::engine
