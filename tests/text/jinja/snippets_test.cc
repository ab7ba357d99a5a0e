// SPDX-License-Identifier: Apache-2.0
//
// Everything tools/templates/snippets.py tries, against what jinja2 made of it.
#include "tests/text/jinja/rendering.h"

namespace lr::text::jinja {
namespace {

const Json& fixture() {
    static const Json json = json_of(read_test_file("jinja/snippets.json"));
    return json;
}

// `place` is "t:line:column: ..."; 0 where there is no such thing.
int line_of(const std::string& message) {
    return message.starts_with("t:") ? std::atoi(message.c_str() + 2) : 0;
}

// A string: the output. An array: what raise_exception said. A number: an error, and its line when
// it is not 0.
void expect_outcome(const std::string& source, const Json& expected) {
    const Result<MarkedText> got = render(source, *fixture().find("variables"));
    if (expected.is_string()) {
        ASSERT_TRUE(got.has_value()) << source << "\n" << got.error().message();
        EXPECT_EQ(got->text, expected.as_string()) << source;
        return;
    }
    ASSERT_FALSE(got.has_value()) << source << "\n" << got->text;
    if (expected.is_array())
        EXPECT_EQ(got.error().message(), expected.as_array()[0].as_string()) << source;
    else if (expected.as_int() != 0)
        EXPECT_EQ(line_of(got.error().message()), expected.as_int()) << source << "\n"
                                                                     << got.error().message();
}

// `pattern` with its letters A and B replaced.
std::string filled(std::string_view pattern, const std::string& a, const std::string& b = "B") {
    std::string text;
    for (char c : pattern)
        text += c == 'A' ? a : c == 'B' ? b : std::string(1, c);
    return text;
}

std::vector<std::string> strings_of(const Json& array) {
    std::vector<std::string> strings;
    for (const Json& text : array.as_array())
        strings.push_back(text.as_string());
    return strings;
}

TEST(JinjaSnippets, SingleOnesPrintOrFailAsJinja2) {
    const JsonArray& singles = fixture().find("singles")->as_array();
    ASSERT_GE(singles.size(), 600u);
    for (const Json& single : singles)
        expect_outcome(single.as_array()[0].as_string(), single.as_array()[1]);
}

class Outcomes {
  public:
    explicit Outcomes(const Json& group)
        : values_(group.find("values")->as_array()), of_(group.find("of")->as_array()) {}
    std::size_t size() const { return of_.size(); }
    const Json& operator[](std::size_t i) const {
        return values_[static_cast<std::size_t>(of_[i].as_int())];
    }

  private:
    const JsonArray& values_;
    const JsonArray& of_;
};

TEST(JinjaSnippets, EveryKindOfValueUnderEveryOperatorFilterAndTestGivesWhatJinja2Gives) {
    const std::vector<std::string> operands = strings_of(*fixture().find("operands"));
    const Json& group = *fixture().find("unary");
    const Outcomes outcomes(group);
    std::size_t next = 0;
    for (const std::string& pattern : strings_of(*group.find("patterns")))
        for (const std::string& a : operands)
            expect_outcome(filled(pattern, a), outcomes[next++]);
    EXPECT_EQ(next, outcomes.size());
}

TEST(JinjaSnippets, EveryPairOfKindsUnderEveryOperatorGivesWhatJinja2Gives) {
    const std::vector<std::string> operands = strings_of(*fixture().find("operands"));
    const Json& group = *fixture().find("binary");
    const Outcomes outcomes(group);
    std::size_t next = 0;
    for (const std::string& pattern : strings_of(*group.find("patterns")))
        for (const std::string& a : operands)
            for (const std::string& b : operands)
                expect_outcome(filled(pattern, a, b), outcomes[next++]);
    EXPECT_EQ(next, outcomes.size());
}

TEST(JinjaSnippets, OutsideMarksChangeNoOutput) {
    // The same values, once from outside and once the template's own.
    const Json& variables = *fixture().find("variables");
    for (const Json& single : fixture().find("singles")->as_array()) {
        const std::string& source = single.as_array()[0].as_string();
        const Result<Template> compiled = Template::compile(source, "t");
        if (!compiled)
            continue;
        std::vector<RenderVariable> inside;
        for (const JsonMember& member : variables.as_object().members())
            inside.push_back({member.key, &member.value, false});
        const Result<MarkedText> ours = compiled->render(inside, {{}, kNow});
        const Result<MarkedText> theirs = render(source, variables);
        ASSERT_EQ(ours.has_value(), theirs.has_value()) << source;
        if (!ours)
            continue;
        EXPECT_EQ(ours->text, theirs->text) << source;
        EXPECT_TRUE(ours->outside.empty()) << source;
    }
}

} // namespace
} // namespace lr::text::jinja
