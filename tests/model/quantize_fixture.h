// SPDX-License-Identifier: Apache-2.0
//
// tests/model/quantize_fixture.h: small plain checkpoints, edits of them, and their quantised
// copies.
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_writer.h"
#include "core/text_file.h"
#include "model/quantize.h"
#include "model/synth.h"
#include "numerics/convert.h"
#include "tests/checkpoint/digest.h"
#include "tests/checkpoint/files.h"
#include "tests/model/configs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace lr::model {

inline const std::string kText = "model.language_model.";

inline std::vector<float> floats_of(const checkpoint::TensorInfo& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.count()));
    numerics::decode_to_f32(*tensor.dtype, tensor.data, tensor.shape.count(), values.data());
    return values;
}

inline std::vector<std::uint8_t> bytes_of(const checkpoint::TensorInfo& tensor) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(tensor.data);
    return {first, first + tensor.bytes};
}

class QuantizeFolders : public testing::Test {
  protected:
    using Checkpoint = checkpoint::Checkpoint;

    std::string folder(std::string_view name) const { return files_.file(name); }

    void write_plain(const char* name, const Config& config, SynthOptions options = {.seed = 3}) {
        ThreadPool pool(1);
        const auto report = synth_checkpoint(folder(name), config, options, pool);
        ASSERT_TRUE(report) << report.error().message();
    }

    // A tensor of a one-file checkpoint, to be changed; a file time of before is kept when `keep`.
    struct Tensor {
        checkpoint::TensorSpec spec;
        std::vector<std::byte> bytes;
        float get(std::int64_t i) const {
            float value = 0;
            numerics::decode_to_f32(spec.dtype, bytes.data() + dtype_bytes(spec.dtype, i), 1,
                                    &value);
            return value;
        }
        void set(std::int64_t i, float value) {
            numerics::encode_from_f32(spec.dtype, &value, 1,
                                      bytes.data() + dtype_bytes(spec.dtype, i));
        }
    };
    void edit(const char* name, const std::function<void(std::vector<Tensor>&)>& change,
              bool keep_time = false) {
        const std::string path = folder(name) + "/model.safetensors";
        const auto time = std::filesystem::last_write_time(path);
        std::vector<Tensor> tensors;
        {
            const auto opened = Checkpoint::open(path);
            ASSERT_TRUE(opened);
            for (const checkpoint::TensorInfo& tensor : opened->tensors())
                tensors.push_back({{std::string(tensor.name), *tensor.dtype, tensor.shape},
                                   {tensor.data, tensor.data + tensor.bytes}});
        }
        change(tensors);
        std::vector<checkpoint::TensorSpec> specs;
        for (const Tensor& tensor : tensors)
            specs.push_back(tensor.spec);
        auto writer = checkpoint::SafetensorsWriter::create(path, specs);
        ASSERT_TRUE(writer);
        for (const Tensor& tensor : tensors)
            ASSERT_TRUE(writer->append(tensor.spec.name, tensor.bytes).ok());
        ASSERT_TRUE(writer->finish().ok());
        if (keep_time)
            std::filesystem::last_write_time(path, time);
    }
    // Changes one element of one tensor.
    void set_element(const char* name, const std::string& tensor, std::int64_t index, float value,
                     bool keep_time = false) {
        edit(
            name,
            [&](std::vector<Tensor>& tensors) {
                for (Tensor& candidate : tensors)
                    if (candidate.spec.name == tensor)
                        return candidate.set(index, value);
                ADD_FAILURE() << tensor;
            },
            keep_time);
    }

    static QuantizeOptions options(std::string_view format, std::string_view flavor = "",
                                   bool experts_only = false,
                                   numerics::BlockScales scales = numerics::BlockScales::kAmax) {
        const auto scheme = quantize_scheme(format, flavor, experts_only, scales);
        EXPECT_TRUE(scheme) << scheme.error().message();
        return {.scheme = *scheme};
    }

    Result<QuantizeReport> try_quantize(const char* in, const char* out,
                                        const QuantizeOptions& options, int threads = 1) {
        ThreadPool pool(threads);
        return quantize_checkpoint(folder(in), folder(out), options, pool);
    }
    QuantizeReport quantize(const char* in, const char* out, const QuantizeOptions& options,
                            int threads = 1) {
        const auto report = try_quantize(in, out, options, threads);
        EXPECT_TRUE(report) << (report ? "" : report.error().message());
        return report ? *report : QuantizeReport();
    }

    Checkpoint open(std::string_view name) const {
        auto checkpoint = Checkpoint::open(folder(name));
        EXPECT_TRUE(checkpoint) << (checkpoint ? "" : checkpoint.error().message());
        return std::move(checkpoint).value();
    }
    Json json(const std::string& path) const {
        return *parse_json(*read_text_file(folder(path)), path);
    }
    std::set<std::string> names_in(std::string_view name) const {
        std::set<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(folder(name)))
            names.insert(entry.path().filename().string());
        return names;
    }

    checkpoint::TempFolder files_;
};

} // namespace lr::model
