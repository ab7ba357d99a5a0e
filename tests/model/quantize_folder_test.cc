// SPDX-License-Identifier: Apache-2.0
//
// The folder that quantize writes: its files, what an interruption leaves, what is refused.
#include "model/open.h"
#include "tests/model/quantize_fixture.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <limits>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

namespace lr::model {
namespace {

namespace fs = std::filesystem;
using checkpoint::expect_error;

std::vector<std::string> strings(const Json& array) {
    std::vector<std::string> values;
    for (const Json& value : array.as_array())
        values.push_back(value.as_string());
    return values;
}

bool contains(const std::vector<std::string>& values, const std::string& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
}

class QuantizedFolder : public QuantizeFolders {
  protected:
    Json declared(const char* name) const {
        return *json(std::string(name) + "/config.json").find("quantization_config");
    }
    // A model whose last layer is bad: the run stops behind some complete files.
    QuantizeOptions interrupted_run() {
        write_plain("in", small_moe());
        set_element("in", kBad, 5, std::numeric_limits<float>::infinity(), true);
        QuantizeOptions small_files = options("nvfp4");
        small_files.max_shard_bytes = 150'000;
        const auto stopped = try_quantize("in", "out", small_files);
        expect_error(stopped, Code::kInvalidFile, {kBad});
        return small_files;
    }
    void repair() { set_element("in", kBad, 5, good_, true); }

    const std::string kBad = kText + "layers.3.self_attn.o_proj.weight";
    float good_ = 0.015625f;
};

// --- files ---

TEST_F(QuantizedFolder, HoldsEverythingElseOfTheInput) {
    write_plain("in", small_dense());
    files_.write("in/chat_template.jinja", "{{ messages }}");
    files_.write("in/pytorch_model.bin", "weights in another format");
    files_.write("in/hf_quant_config.json", R"({"quantization": {"quant_algo": null}})");
    files_.write("in/.gitattributes", "x");
    files_.write("blob", "{\"a\": 1}");
    fs::create_symlink(folder("blob"), folder("in/preprocessor_config.json"));
    fs::create_directory(folder("in/assets"));
    quantize("in", "out", options("fp8-block"));
    EXPECT_EQ(names_in("out"),
              (std::set<std::string>{"chat_template.jinja", "config.json", "generation_config.json",
                                     "model.safetensors", "preprocessor_config.json",
                                     "tokenizer.json", "tokenizer_config.json"}));
    EXPECT_FALSE(fs::is_symlink(folder("out/preprocessor_config.json")));
    for (const char* name : {"tokenizer.json", "chat_template.jinja", "preprocessor_config.json"})
        EXPECT_EQ(*read_text_file(folder(std::string("out/") + name)),
                  *read_text_file(folder(std::string("in/") + name)));
    const Json before = json("in/config.json"), after = json("out/config.json");
    for (const JsonMember& member : before.as_object().members())
        EXPECT_EQ(to_json_string(*after.find(member.key)), to_json_string(member.value));
    EXPECT_EQ(after.as_object().size(), before.as_object().size() + 1);
}

TEST_F(QuantizedFolder, ManyFilesHaveAnIndexThatLoads) {
    write_plain("in", small_moe());
    QuantizeOptions small_files = options("fp8-block");
    small_files.max_shard_bytes = 100'000;
    const auto report = quantize("in", "out", small_files);
    quantize("in", "one", options("fp8-block"));
    EXPECT_GT(report.files, 5);
    const Checkpoint out = open("out");
    EXPECT_EQ(out.files().size(), static_cast<std::size_t>(report.files));
    EXPECT_EQ(digest(out), digest(open("one")));
    EXPECT_EQ(
        json("out/model.safetensors.index.json").find("metadata")->find("total_size")->as_int(),
        out.total_bytes());
    const auto opened = open_model(folder("out"));
    ASSERT_TRUE(opened) << opened.error().message();
    // Scales lie in the file of their codes.
    for (const checkpoint::SafetensorsFile& file : out.files())
        for (const checkpoint::TensorInfo& tensor : file.tensors())
            if (tensor.name.ends_with("_scale_inv"))
                EXPECT_NE(file.find(tensor.name.substr(0, tensor.name.size() - 10)), nullptr);
}

// --- configs ---

TEST_F(QuantizedFolder, ConfigsSayWhatIsStoredInEachFlavor) {
    Config config = small_moe();
    config.mtp_layers = 1;
    write_plain("in", config);
    edit("in", [](std::vector<Tensor>& tensors) {
        tensors.push_back(
            {{"model.visual.merger.norm.weight", DType::kBF16, {2}}, std::vector<std::byte>(4)});
    });
    const std::string gate = kText + "layers.0.mlp.gate", q = kText + "layers.3.self_attn.q_proj";

    quantize("in", "hf", options("fp8-block", "hf", true));
    const Json hf = declared("hf");
    EXPECT_EQ(hf.find("quant_method")->as_string(), "fp8");
    EXPECT_EQ(hf.find("activation_scheme")->as_string(), "dynamic");
    const auto kept = strings(*hf.find("modules_to_not_convert"));
    for (const std::string& name :
         {gate, q, std::string("lm_head"), std::string("mtp"), std::string("model.visual")})
        EXPECT_TRUE(contains(kept, name)) << name;
    EXPECT_FALSE(contains(kept, kText + "layers.3.mlp.shared_expert.up_proj"));

    quantize("in", "ct", options("nvfp4", "compressed-tensors"));
    const Json ct = declared("ct");
    EXPECT_EQ(ct.find("quant_method")->as_string(), "compressed-tensors");
    EXPECT_EQ(ct.find("format")->as_string(), "nvfp4-pack-quantized");
    const Json& group = *ct.find("config_groups")->find("group_0");
    EXPECT_EQ(to_json_string(*group.find("weights")),
              R"({"num_bits":4,"type":"float","symmetric":true,"strategy":"tensor_group",)"
              R"("dynamic":false,"group_size":16,"scale_dtype":"torch.float8_e4m3fn"})");
    EXPECT_TRUE(group.find("input_activations")->is_null()) << "weights alone: W4A16";
    EXPECT_EQ(strings(*ct.find("ignore")),
              (std::vector<std::string>{
                  R"(re:.*\.embed_tokens$)", R"(re:.*\.linear_attn\.in_proj_b$)",
                  R"(re:.*\.linear_attn\.in_proj_a$)", R"(re:.*\.linear_attn\.conv1d$)",
                  R"(re:.*\.mlp\.gate$)", R"(re:.*\.mlp\.shared_expert_gate$)", "lm_head",
                  R"(re:.*mtp\..*)", R"(re:.*visual\..*)"}));

    quantize("in", "channel", options("fp8-channel"));
    const Json fp8 = *declared("channel").find("config_groups")->find("group_0");
    EXPECT_EQ(fp8.find("weights")->find("strategy")->as_string(), "channel");
    EXPECT_EQ(fp8.find("input_activations")->find("strategy")->as_string(), "token");
    EXPECT_TRUE(fp8.find("input_activations")->find("dynamic")->as_bool());

    quantize("in", "modelopt", options("nvfp4"));
    const Json modelopt = declared("modelopt");
    EXPECT_EQ(modelopt.find("quant_algo")->as_string(), "W4A16_NVFP4");
    EXPECT_TRUE(contains(strings(*modelopt.find("ignore")), "mtp*"));
    EXPECT_TRUE(contains(strings(*modelopt.find("ignore")), gate));
    EXPECT_EQ(modelopt.find("quantized_layers"), nullptr);

    quantize("in", "mixed", options("nvfp4-mixed"));
    const Json quantization = *json("mixed/hf_quant_config.json").find("quantization");
    EXPECT_EQ(quantization.find("quant_algo")->as_string(), "MIXED_PRECISION");
    EXPECT_TRUE(quantization.find("kv_cache_quant_algo")->is_null());
    EXPECT_TRUE(contains(strings(*quantization.find("exclude_modules")), "model.visual*"));
    const Json& layers = *quantization.find("quantized_layers");
    EXPECT_EQ(to_json_string(*layers.find(q)), R"({"quant_algo":"FP8"})");
    EXPECT_EQ(to_json_string(*layers.find(kText + "layers.2.mlp.experts")),
              R"({"quant_algo":"W4A16_NVFP4","group_size":16})");
    EXPECT_EQ(layers.find(gate), nullptr);
    EXPECT_EQ(to_json_string(*declared("mixed").find("quantized_layers")), to_json_string(layers));
}

// --- interruption ---

TEST_F(QuantizedFolder, AnInterruptedRunLooksUnfinishedAndGoesOn) {
    const QuantizeOptions small_files = interrupted_run();
    const auto left = names_in("out");
    EXPECT_TRUE(left.contains("liverow-quantize.json"));
    EXPECT_FALSE(left.contains("config.json"));
    EXPECT_FALSE(left.contains("model.safetensors.index.json"));
    for (const std::string& name : left)
        EXPECT_FALSE(name.ends_with(".partial")) << name;
    expect_error(open_model(folder("out")), Code::kNotFound, {"config.json"});
    std::string first;
    for (const std::string& name : left)
        if (name.ends_with(".safetensors"))
            first = name;
    ASSERT_FALSE(first.empty());
    const auto written = fs::last_write_time(folder("out/" + first));

    repair();
    const auto report = quantize("in", "out", small_files);
    EXPECT_EQ(report.kept_files, static_cast<std::int64_t>(left.size()) - 1);
    EXPECT_EQ(fs::last_write_time(folder("out/" + first)), written) << "written once";
    const auto whole = quantize("in", "whole", small_files);
    EXPECT_EQ(names_in("out"), names_in("whole"));
    for (const std::string& name : names_in("whole"))
        EXPECT_EQ(*read_text_file(folder("out/" + name)), *read_text_file(folder("whole/" + name)))
            << name;
    ASSERT_EQ(report.kinds.size(), whole.kinds.size());
    for (std::size_t i = 0; i < whole.kinds.size(); ++i)
        EXPECT_EQ(to_json_string(quantize_error_to_json(report.kinds[i].error)),
                  to_json_string(quantize_error_to_json(whole.kinds[i].error)))
            << "errors of files that were kept count";
}

TEST_F(QuantizedFolder, AFileThatWentMissingMeanwhileIsWrittenAgain) {
    const QuantizeOptions small_files = interrupted_run();
    repair();
    for (const auto& entry : fs::directory_iterator(folder("out")))
        if (entry.path().extension() == ".safetensors") {
            fs::remove(entry.path());
            break;
        }
    quantize("in", "out", small_files);
    quantize("in", "whole", small_files);
    EXPECT_EQ(digest(open("out")), digest(open("whole")));
}

TEST_F(QuantizedFolder, GoesOnWithTheSameOptionsAndInputOnly) {
    QuantizeOptions small_files = interrupted_run();
    repair();
    QuantizeOptions other = small_files;
    other.scheme.scales = numerics::BlockScales::kMse;
    expect_error(
        try_quantize("in", "out", other), Code::kInvalidArgument,
        {"out: holds an unfinished run with options", "\"scales\":\"max\"", "\"scales\":\"mse\""});
    other = small_files;
    other.max_shard_bytes = 140'000;
    expect_error(try_quantize("in", "out", other), Code::kInvalidArgument,
                 {"\"shard_bytes\":140000"});
    set_element("in", kBad, 6, 0.5f); // with a new time
    expect_error(try_quantize("in", "out", small_files), Code::kInvalidArgument,
                 {"out: holds an unfinished run from other files than", "in has now"});
    files_.write("out/liverow-quantize.json", "{\"liverow\": 3");
    expect_error(try_quantize("in", "out", small_files), Code::kInvalidFile,
                 {"liverow-quantize.json"});
}

TEST_F(QuantizedFolder, AWriteThatFailsSaysWhereAndLeavesNoHalfFile) {
    write_plain("in", small_moe());
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit small = {200'000, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto failed = try_quantize("in", "out", options("fp8-block"));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, old_handler);
    expect_error(failed, Code::kInternal,
                 {"out/model.safetensors: cannot write to the file: File too large"});
    EXPECT_EQ(names_in("out"), (std::set<std::string>{"liverow-quantize.json"}));
    quantize("in", "out", options("fp8-block"));
    EXPECT_FALSE(names_in("out").contains("liverow-quantize.json"));
}

TEST_F(QuantizedFolder, ADiskWithoutRoomIsRefusedBeforeAnyWeightIsWritten) {
    // A vision tensor of more bytes than are free, as a hole in the file.
    write_plain("in", small_dense());
    std::error_code error;
    const auto free = fs::space(folder("in"), error).available;
    ASSERT_FALSE(error);
    fs::rename(folder("in/model.safetensors"), folder("in/model-00001-of-00002.safetensors"));
    const std::uint64_t bytes = free + (1u << 30);
    const std::string header =
        fmt::format(R"({{"model.visual.x":{{"dtype":"U8","shape":[{}],"data_offsets":[0,{}]}}}})",
                    bytes, bytes);
    const std::string path =
        files_.write("in/model-00002-of-00002.safetensors", checkpoint::safetensors(header));
    fs::resize_file(path, 8 + header.size() + bytes, error);
    if (error)
        GTEST_SKIP() << "no file of " << bytes << " bytes here: " << error.message();
    std::string map = R"("model.visual.x":"model-00002-of-00002.safetensors")";
    const auto first = Checkpoint::open(folder("in/model-00001-of-00002.safetensors"));
    for (const checkpoint::TensorInfo& tensor : first->tensors())
        map += fmt::format(R"(,"{}":"model-00001-of-00002.safetensors")", tensor.name);
    files_.write("in/model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
    expect_error(try_quantize("in", "out", options("fp8-block")), Code::kResourceExhausted,
                 {"out: the checkpoint needs", "GB free", "make room or take another disk"});
    EXPECT_EQ(names_in("out"), (std::set<std::string>{"liverow-quantize.json"}));
}

// --- refusals ---

TEST_F(QuantizedFolder, RefusesFoldersThatAreNotForIt) {
    write_plain("in", small_dense());
    const QuantizeOptions fp8 = options("fp8-block");
    expect_error(try_quantize("in", "in", fp8), Code::kInvalidArgument,
                 {"in: is the folder of the input"});
    expect_error(try_quantize("in", "in/../in", fp8), Code::kInvalidArgument,
                 {"is the folder of the input"});
    files_.write("file", "x");
    expect_error(try_quantize("in", "file", fp8), Code::kInvalidArgument,
                 {"file: cannot be made a folder"});
    expect_error(try_quantize("in", "file/below", fp8), Code::kInvalidArgument,
                 {"file/below: cannot be made a folder"});
    fs::create_directory(folder("other"));
    files_.write("other/notes.txt", "mine");
    expect_error(try_quantize("in", "other", fp8), Code::kInvalidArgument,
                 {"other: expected a new or empty folder", "found notes.txt"});
    quantize("in", "out", fp8);
    expect_error(try_quantize("in", "out", fp8), Code::kInvalidArgument,
                 {"out: expected a new or empty folder"});
    fs::create_directory(folder("empty"));
    quantize("in", "empty", fp8);
    expect_error(try_quantize("absent", "new", fp8), Code::kNotFound, {"absent: no such model"});
    EXPECT_FALSE(fs::exists(folder("new")));
}

TEST_F(QuantizedFolder, RefusesAFolderThatAnotherRunWrites) {
    write_plain("in", small_dense());
    fs::create_directory(folder("out"));
    const int other = ::open(folder("out").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
    expect_error(try_quantize("in", "out", options("fp8-block")), Code::kInvalidArgument,
                 {"out: another process is quantising into it"});
    ::close(other);
    quantize("in", "out", options("fp8-block"));
}

TEST_F(QuantizedFolder, RefusesWhatIsQuantisedAlready) {
    write_plain("in", small_moe());
    quantize("in", "fp8", options("fp8-block"));
    expect_error(try_quantize("fp8", "again", options("nvfp4")), Code::kInvalidFile,
                 {"fp8: expected a checkpoint in BF16, F16 or F32", "is stored as fp8-block",
                  "quantise the release it was made from"});
    EXPECT_FALSE(fs::exists(folder("again")));
}

TEST_F(QuantizedFolder, NamesTheFirstWeightThatIsNotFinite) {
    write_plain("in", small_moe());
    const std::string stack = kText + "layers.1.mlp.experts.gate_up_proj";
    const auto refusal = [&](const std::string& tensor, std::int64_t index, float value,
                             const char* out) {
        set_element("in", tensor, index, value);
        const auto failed = try_quantize("in", out, options("fp8-channel"));
        set_element("in", tensor, index, 0.0f);
        return failed;
    };
    const float infinity = std::numeric_limits<float>::infinity();
    expect_error(refusal(stack, (3 * 256 + 130) * 128 + 7, std::nanf(""), "a"), Code::kInvalidFile,
                 {"'" + stack + "', element [3, 130, 7]: expected a finite weight, got nan"});
    expect_error(refusal(kText + "layers.0.linear_attn.in_proj_z.weight", 0, -infinity, "b"),
                 Code::kInvalidFile, {"in_proj_z.weight', element [0, 0]", "got -inf"});
    expect_error(refusal(kText + "layers.3.self_attn.k_proj.weight", 128 * 128 - 1, infinity, "c"),
                 Code::kInvalidFile, {"k_proj.weight', element [127, 127]", "got inf"});
    // What is copied is not looked at.
    set_element("in", kText + "layers.0.mlp.gate.weight", 3, infinity);
    quantize("in", "d", options("fp8-channel"));
}

TEST_F(QuantizedFolder, RefusesNvfp4RowsThatAreNoWholeBlocks) {
    Config config = small_moe();
    config.shared_expert_width = 24;
    write_plain("in", config);
    expect_error(try_quantize("in", "out", options("nvfp4")), Code::kUnsupported,
                 {"layers.0.mlp.shared_expert.down_proj", "whole blocks of 16, got 24 columns"});
    EXPECT_FALSE(fs::exists(folder("out")));
    quantize("in", "mixed", options("nvfp4-mixed")); // the shared expert is FP8 there
}

TEST_F(QuantizedFolder, RefusesExpertsOfADenseModel) {
    write_plain("in", small_dense());
    expect_error(try_quantize("in", "out", options("nvfp4", "", true)), Code::kInvalidArgument,
                 {"in: expected a mixture of experts for experts-only, got a dense model"});
    expect_error(try_quantize("in", "out", options("nvfp4-mixed")), Code::kInvalidArgument,
                 {"stores routed experts in NVFP4, and this model has none"});
}

TEST(QuantizeScheme, ExistsForTheListedPairsOnly) {
    const auto scheme = [](const char* format, const char* flavor, bool mse = false) {
        return quantize_scheme(format, flavor, false,
                               mse ? numerics::BlockScales::kMse : numerics::BlockScales::kAmax);
    };
    int pairs = 0;
    for (const std::string& format : quantize_format_names())
        for (const std::string& flavor : quantize_flavor_names())
            pairs += scheme(format.c_str(), flavor.c_str()).has_value();
    EXPECT_EQ(pairs, 6);
    EXPECT_EQ(scheme("fp8-block", "")->flavor, QuantizeFlavor::kHf);
    EXPECT_EQ(scheme("fp8-channel", "")->flavor, QuantizeFlavor::kCompressedTensors);
    EXPECT_EQ(scheme("nvfp4", "")->flavor, QuantizeFlavor::kModelOpt);
    EXPECT_EQ(scheme("nvfp4-mixed", "")->flavor, QuantizeFlavor::kModelOpt);
    expect_error(scheme("nvfp4", "hf"), Code::kInvalidArgument,
                 {"format nvfp4 does not exist in flavor hf; expected one of fp8-block (hf, "
                  "compressed-tensors), fp8-channel (compressed-tensors), nvfp4 (modelopt, "
                  "compressed-tensors), nvfp4-mixed (modelopt)"});
    expect_error(
        scheme("int8", ""), Code::kInvalidArgument,
        {"format: expected one of fp8-block, fp8-channel, nvfp4, nvfp4-mixed, got \"int8\""});
    expect_error(scheme("fp8-block", "", true), Code::kInvalidArgument,
                 {"scales mse: expected a format with NVFP4 blocks"});
    EXPECT_TRUE(scheme("nvfp4-mixed", "", true));
}

} // namespace
} // namespace lr::model
