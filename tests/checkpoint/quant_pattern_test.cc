// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/quant_pattern.h"
#include "tests/checkpoint/files.h"

namespace lr::checkpoint {
namespace {

bool glob(std::string_view pattern, std::string_view name) {
    const auto compiled = ModulePattern::glob(pattern);
    EXPECT_TRUE(compiled) << pattern;
    return compiled && compiled->matches(name);
}

bool regex(std::string_view pattern, std::string_view name) {
    const auto compiled = ModulePattern::regex(pattern);
    EXPECT_TRUE(compiled) << pattern << ": " << (compiled ? "" : compiled.error().message());
    return compiled && compiled->matches(name);
}

TEST(ModulePattern, AGlobMatchesTheWholeName) {
    EXPECT_TRUE(glob("*", ""));
    EXPECT_TRUE(glob("*mlp.gate", "layers.0.mlp.gate"));
    EXPECT_FALSE(glob("*mlp.gate", "layers.0.mlp.gate_proj"));
    EXPECT_TRUE(glob("layers.?.mlp*", "layers.3.mlp.gate"));
    EXPECT_FALSE(glob("layers.?.mlp*", "layers.13.mlp.gate"));
    EXPECT_TRUE(glob("layers.[0-3].*", "layers.2.x"));
    EXPECT_FALSE(glob("layers.[!0-3].*", "layers.2.x"));
    EXPECT_FALSE(glob("a.b", "axb")) << "a dot is a dot";
    EXPECT_TRUE(glob("a+(b)$", "a+(b)$"));
}

// Each as Python's re.match says.
TEST(ModulePattern, ARegexMatchesFromTheStart) {
    EXPECT_TRUE(regex("", "anything"));
    EXPECT_TRUE(regex("abc", "abcdef"));
    EXPECT_FALSE(regex("bcd", "abcdef"));
    EXPECT_FALSE(regex("abc$", "abcdef"));
    EXPECT_TRUE(regex("^abc$", "abc"));
    EXPECT_TRUE(regex(".*lm_head", "model.lm_head"));
    EXPECT_TRUE(regex(R"(.*mlp\.gate$)", "layers.7.mlp.gate"));
    EXPECT_FALSE(regex(R"(.*mlp\.gate$)", "layers.7.mlp.gate_proj"));
    EXPECT_FALSE(regex(R"(a\.b)", "axb"));
    const char* projections = R"(model\.layers\.\d+\.self_attn\.(q|k|v|o)_proj$)";
    EXPECT_TRUE(regex(projections, "model.layers.31.self_attn.v_proj"));
    EXPECT_FALSE(regex(projections, "model.layers.31.self_attn.z_proj"));
    EXPECT_TRUE(regex("(?:a|bc)+d", "abcabcd"));
    EXPECT_FALSE(regex("(?:a|bc)+d", "abcbd"));
    EXPECT_TRUE(regex("a{2,3}b", "aaab"));
    EXPECT_FALSE(regex("a{2,3}b", "aaaab"));
    EXPECT_TRUE(regex("a{2,}b", "aaaaaab"));
    EXPECT_FALSE(regex("a{2}b", "ab"));
    EXPECT_TRUE(regex("x?y+?z*?", "y"));
    EXPECT_TRUE(regex("[^.]+$", "abc"));
    EXPECT_FALSE(regex("[^.]+$", "a.c"));
    EXPECT_TRUE(regex(R"([\w.]+-[a-c])", "x_1.y-b"));
    EXPECT_TRUE(regex("a|b|", "c")) << "an empty alternative";
    EXPECT_TRUE(regex("(a*)*b", "aaab"));
    EXPECT_TRUE(regex("a$|ab", "ab"));
}

TEST(ModulePattern, RefusesWhatItCannotRead) {
    for (const char* pattern : {"(?!x)y", "(?i)x", R"((a)\1)", "(a", "a)", "[a", "*a", "a**", "a{2",
                                "a{3,2}", "a{99999}", "\\", R"(\bx)"})
        expect_error(ModulePattern::regex(pattern), Code::kUnsupported, {"pattern \""});
    expect_error(ModulePattern::glob("[a"), Code::kUnsupported, {"a '[' without ']'"});
    std::string deep(60, '(');
    expect_error(ModulePattern::regex(deep + "a" + std::string(60, ')')), Code::kUnsupported,
                 {"too deep"});
    expect_error(ModulePattern::regex("((((a{99}){99}){99}){99})"), Code::kUnsupported,
                 {"too long"});
}

// What takes a backtracking matcher 2^40 steps; and more sets of states than are kept.
TEST(ModulePattern, TakesTimeLinearInTheName) {
    EXPECT_FALSE(regex("(a|a)*(a|a)*(a|aa)+$", std::string(4000, 'a') + "b"));
    std::string name;
    for (int i = 0; i < 40'000; ++i)
        name += "ab"[(i * 7919 >> 3 ^ i >> 5) & 1];
    EXPECT_TRUE(regex("(a|b)*a(a|b){14}$", name.substr(0, 39'985) + "a" + std::string(14, 'b')));
    EXPECT_FALSE(regex("(a|b)*a(a|b){14}$", name.substr(0, 39'985) + std::string(15, 'b')));
}

} // namespace
} // namespace lr::checkpoint
