// SPDX-License-Identifier: Apache-2.0
#include "tests/text/jinja/rendering.h"

#include <thread>

namespace lr::text::jinja {
namespace {

Code code_of(std::string_view source, std::string_view variables = "{}", Limits limits = {}) {
    const Result<MarkedText> out = render(source, json_of(variables), limits);
    return out ? Code::kOk : out.error().code();
}

std::string repeated(std::string_view text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i)
        all += text;
    return all;
}

TEST(JinjaLimits, EndlessAndExplodingTemplatesEndWithAnError) {
    const char* hostile[] = {
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
        "{% for i in [[]] recursive %}{{ loop([[]]) }}{% endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(99999) %}{% set ns.x = ns.x ~ ns.x %}"
        "{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}{% set ns.x = ns.x + ns.x %}"
        "{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) if false %}{% endfor %}{% endfor %}",
        "{{ 'x' * 10 ** 30 }}",
        "{{ [1] * 10 ** 30 }}",
        "{{ 'x' * 10 ** 9 }}",
        "{{ 'x' | center(10 ** 12) }}",
        "{{ '%999999999d' % 1 }}",
        "{{ '{:>999999999}'.format(1) }}",
        "{{ '%.999999999f' % 1 }}",
        "{{ 'x'.ljust(10 ** 12) }}",
        "{{ 'x'.zfill(10 ** 12) }}",
        "{{ 'a\nb' | indent(10 ** 12) }}",
        "{{ [1] | tojson(indent=10 ** 12) }}",
        "{{ [1] | batch(10 ** 12, 0) | list }}",
        "{{ [1] | slice(10 ** 12) | list }}",
        "{{ range(10 ** 6) }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}"
        "{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}"
        "{% endfor %}{{ ns.x | tojson }}",
        "{% set ns = namespace(x=[], y=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}"
        "{% set ns.y = [ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
        "{% set ns = namespace(x=()) %}{% for i in range(5000) %}{% set ns.x = (ns.x,) %}"
        "{% endfor %}{{ {ns.x: 1} }}",
        "{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}",
        "{% set ns = namespace(x=[1, 2]) %}{% for i in range(5000) %}"
        "{% set ns.x = ns.x | map('string') %}{% endfor %}{{ ns.x | list }}",
        "{% set ns = namespace(x=[1, 2]) %}{% for i in range(5000) %}"
        "{% set ns.x = ns.x | select('defined') %}{% endfor %}{{ ns.x | first }}",
    };
    const Limits small{.memory_bytes = 16 << 20, .steps = 500'000};
    for (const char* source : hostile)
        EXPECT_EQ(code_of(source, "{}", small), Code::kResourceExhausted) << source;
    // Those that the limits of every day must stop, too.
    for (const char* source : {hostile[0], hostile[4], hostile[6]})
        EXPECT_EQ(code_of(source), Code::kResourceExhausted) << source;
}

TEST(JinjaLimits, DeepSourcesAreRefusedAndDestroyNothing) {
    for (int depth : {1000, 100000}) {
        const std::string sources[] = {
            "{{ " + repeated("(", depth) + "1" + repeated(")", depth) + " }}",
            "{{ " + repeated("[", depth) + repeated("]", depth) + " }}",
            "{{ " + repeated("not ", depth) + "1 }}",
            "{{ " + repeated("-", depth) + "1 }}",
            "{{ 1" + repeated(" + 1", depth) + " }}",
            "{{ x" + repeated(".a", depth) + " }}",
            "{{ x" + repeated("|e", depth) + " }}",
            "{{ 1" + repeated(" if 1 else 1", depth) + " }}",
            "{{ x" + repeated(" is y", depth) + " }}",
            repeated("{% if 1 %}", depth) + repeated("{% endif %}", depth),
            repeated("{% for x in y %}", depth),
            "{% set " + repeated("(", depth) + "a" + repeated(")", depth) + " = 1 %}",
        };
        for (const std::string& source : sources) {
            const Result<Template> compiled = Template::compile(source, "t");
            ASSERT_FALSE(compiled.has_value()) << source.substr(0, 40);
            EXPECT_EQ(compiled.error().code(), Code::kInvalidFile) << source.substr(0, 40);
        }
    }
}

TEST(JinjaLimits, LongFlatSourcesAreFine) {
    const int many = 5000;
    EXPECT_EQ(run(repeated("{{ 1 }}", many)), repeated("1", many));
    EXPECT_EQ(run("{% if 0 %}" + repeated("{% elif 0 %}", many) + "{% else %}x{% endif %}"), "x");
    EXPECT_EQ(run("{{ [" + repeated("1, ", many) + "] | length }}"), "5000");
    EXPECT_EQ(run("{{ 'a'" + repeated(" ~ 'a'", many) + " }}"), repeated("a", many + 1));
}

TEST(JinjaLimits, DeepDataIsAnErrorNotACrash) {
    std::string deep = "1";
    for (int i = 0; i < 199; ++i)
        deep = "[" + deep + "]";
    EXPECT_EQ(run("{{ x | tojson | length }}", "{\"x\": " + deep + "}"), "399");
    Json json(1);
    for (int i = 0; i < 5000; ++i) {
        JsonArray outer;
        outer.push_back(std::move(json));
        json = Json(std::move(outer));
    }
    const Result<Template> compiled = Template::compile("{{ x }}", "t");
    const RenderVariable variable{"x", &json};
    const Result<MarkedText> out = compiled->render({&variable, 1});
    ASSERT_FALSE(out.has_value());
    EXPECT_EQ(out.error().code(), Code::kResourceExhausted);
}

TEST(JinjaLimits, TheLimitsGivenAreTheOnesThatHold) {
    const char* source = "{% for i in range(100) %}0123456789{% endfor %}";
    EXPECT_EQ(code_of(source), Code::kOk);
    EXPECT_EQ(code_of(source, "{}", {.output_bytes = 1000}), Code::kOk);
    EXPECT_EQ(code_of(source, "{}", {.output_bytes = 999}), Code::kResourceExhausted);
    EXPECT_EQ(code_of(source, "{}", {.steps = 100}), Code::kResourceExhausted);
    EXPECT_EQ(code_of(source, "{}", {.memory_bytes = 500}), Code::kResourceExhausted);
    EXPECT_EQ(code_of("{{ 1 + 1 }}", "{}", {.depth = 1}), Code::kResourceExhausted);
}

TEST(JinjaLimits, TheDeepestEvaluationAllowedFitsASmallStack) {
    // As deep as the limits let it go: through macros, expressions and blocks at once.
    const std::string source = "{% macro m(n) %}{% if 1 %}{% for i in [1] %}{{ " +
                               repeated("[", 10) + "m(n)" + repeated("]", 10) +
                               " }}{% endfor %}{% endif %}{% endmacro %}{{ m(0) }}";
    EXPECT_EQ(code_of(source), Code::kResourceExhausted);
    EXPECT_EQ(code_of("{% macro m() %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}"),
              Code::kInvalidArgument); // a macro that takes no caller
    EXPECT_EQ(code_of("{% macro m() %}{{ caller }}{% call m() %}{% endcall %}{% endmacro %}"
                      "{{ m() }}"),
              Code::kResourceExhausted);
}

TEST(JinjaLimits, SearchesInLongTextsAreNotQuadraticForever) {
    // A user chooses both texts; find, count, split and replace must stay near linear.
    const std::string haystack(200000, 'a');
    const std::string needle = std::string(100000, 'a') + "b";
    const Json data = Json::object({{"h", Json(haystack)}, {"n", Json(needle)}});
    for (const char* source :
         {"{{ n in h }}", "{{ h.find(n) }}", "{{ h.split(n) | length }}", "{{ h.count(n) }}",
          "{{ h.replace(n, '') | length }}", "{{ h.rsplit(n) | length }}", "{{ h.rfind(n) }}",
          "{{ h.strip(n) | length }}", "{{ h | trim(n) | length }}"}) {
        const Result<MarkedText> out = render(source, data);
        EXPECT_TRUE(out.has_value() || out.error().code() == Code::kResourceExhausted) << source;
    }
}

TEST(JinjaTemplate, RendersFromManyThreadsAtOnce) {
    const Result<Template> compiled = Template::compile(
        "{% set ns = namespace(t='') %}{% for x in l %}{% set ns.t = ns.t + x + 'c' %}{% endfor %}"
        "{{ ns.t }}{{ 'lit' + l[0] }}",
        "t");
    ASSERT_TRUE(compiled.has_value());
    std::vector<std::thread> threads;
    std::vector<int> right(4);
    for (std::size_t t = 0; t < right.size(); ++t)
        threads.emplace_back([&, t] {
            const Json list(JsonArray{Json(std::string(300 + t, 'a')), Json("b")});
            const RenderVariable variable{"l", &list};
            const std::string a(300 + t, 'a');
            for (int i = 0; i < 50; ++i) {
                const Result<MarkedText> out = compiled->render({&variable, 1});
                right[t] += out && out->text == a + "cbclit" + a ? 1 : 0;
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(right, std::vector<int>(4, 50));
}

TEST(JinjaTemplate, ErrorsNameTheFileTheLineAndTheColumn) {
    EXPECT_EQ(run("a\n  {{ 1 + }}"), "error: t:2:10: expected an expression, got '}}'");
    EXPECT_EQ(run("a\n\n{{ x.y.z }}"), "error: t:3:5: 'x' is undefined");
    EXPECT_EQ(run("{{ x.y.z }}", R"({"x": {}})"),
              "error: t:1:7: expected a dict with 'y', got one without");
    EXPECT_EQ(run("{{ 'a' + 1 }}"), "error: t:1:8: '+' of a str and a int");
    EXPECT_EQ(run("{{ 1 | nosuch }}"), "error: t:1:8: there is no filter 'nosuch'");
    EXPECT_EQ(run("{% block x %}"), "error: t:1:4: the tag 'block' is not supported");
    EXPECT_EQ(run("{{ 'a' | urlize }}"), "error: t:1:10: the filter 'urlize' is not supported");
    EXPECT_EQ(run("{% if x %}"), "error: t:1:11: expected '{% endif %}' or '{% elif %}' or "
                                 "'{% else %}', got 'the end of the template'");
    EXPECT_EQ(run("x{{ raise_exception('own words: ' ~ u) }}", R"({"u": "y"})"),
              "error: own words: y");
}

TEST(JinjaTemplate, TextThatIsNotUtf8IsRefused) {
    EXPECT_EQ(run("a\xFF"), "error: t: expected a template in UTF-8, got an invalid sequence at "
                            "byte 1");
    const Json bad(std::string("a\xFF"));
    const RenderVariable variable{"x", &bad};
    const Result<MarkedText> out = Template::compile("{{ x }}", "t")->render({&variable, 1});
    ASSERT_FALSE(out.has_value());
    EXPECT_EQ(out.error().code(), Code::kInvalidArgument);
}

TEST(JinjaTemplate, WhatIsNotSupportedIsSaidWhereItIsMet) {
    for (const char* source :
         {"{{ x | urlize }}", "{{ x | random }}", "{% include 'a' %}", "{% import 'a' as b %}",
          "{% block b %}{% endblock %}", "{% extends 'a' %}",
          "{% autoescape true %}{% endautoescape %}", "{{ lipsum() }}", "{{ self.x }}",
          "{{ '\\N{BULLET}' }}", "{{ x[1:2, 3] }}"}) {
        const Result<Template> compiled = Template::compile(source, "t");
        ASSERT_FALSE(compiled.has_value()) << source;
        EXPECT_EQ(compiled.error().code(), Code::kUnsupported) << source;
    }
    for (const char* source :
         {"{{ 'a'.encode() }}", "{{ 'a'.__class__ }}", "{{ [] | map }}x{{ range }}",
          "{{ 'a'.upper }}", "{{ [1] | map('string') }}", "{{ 2 ** 200 }}",
          "{{ 'a' is sameas 'a' }}", "{{ (-8) ** 0.5 }}"})
        EXPECT_NE(code_of(source), Code::kOk) << source;
}

} // namespace
} // namespace lr::text::jinja
