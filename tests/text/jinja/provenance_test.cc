// SPDX-License-Identifier: Apache-2.0
#include "tests/text/jinja/rendering.h"

#include <random>

namespace lr::text::jinja {
namespace {

struct Case {
    const char* source;
    const char* variables;
    const char* expected;
};

TEST(JinjaProvenance, EachOperationMarksWhatCameFromOutsideAndNothingElse) {
    const char* data = R"({"u": "aB c", "v": "x\ny", "n": 12, "f": 1.5, "l": ["p", "q"],
                           "d": {"k": "w", "m": [1, null]}, "t": true, "e": ""})";
    const Case cases[] = {
        {"<{{ u }}>", data, "<⟦aB c⟧>"},
        {"{{ '<' + u + '>' }}", data, "<⟦aB c⟧>"},
        {"{{ '<' ~ u ~ n ~ '>' }}", data, "<⟦aB c12⟧>"},
        {"{{ ('<' + u + '>')[1:3] }}", data, "⟦aB⟧"},
        {"{{ ('<' + u + '>')[::-1] }}", data, ">⟦c Ba⟧<"},
        {"{{ ('<' + u + '>')[-1] }}", data, ">"},
        {"{{ ('<' + u + '>').upper() }}", data, "<⟦AB C⟧>"},
        {"{{ ('-' + u) | title }}", data, "-⟦Ab C⟧"},
        {"{{ (' ' + u + ' ') | trim }}", data, "⟦aB c⟧"},
        {"{{ ('a' + u).strip('a') }}", data, "⟦B c⟧"},
        {"{{ ('i,' + u + ',j').split(',') | join('|') }}", data, "i|⟦aB c⟧|j"},
        {"{{ ('i ' + u).split() | join('|') }}", data, "i|⟦aB⟧|⟦c⟧"},
        {"{{ ('i\n' + v).splitlines() | join('|') }}", data, "i|⟦x⟧|⟦y⟧"},
        {"{{ 'abc'.replace('b', u) }}", data, "a⟦aB c⟧c"},
        {"{{ ('<' + u + '>').replace(' ', '_') }}", data, "<⟦aB⟧_⟦c⟧>"},
        {"{{ u.replace('B', '') }}", data, "⟦a c⟧"},
        {"{{ l | join(', ') }}", data, "⟦p⟧, ⟦q⟧"},
        {"{{ ['a', 'b'] | join(u) }}", data, "a⟦aB c⟧b"},
        {"{{ u.join(['1', '2']) }}", data, "1⟦aB c⟧2"},
        {"{{ u.partition(' ')[0] }}", data, "⟦aB⟧"},
        {"{{ ('a' + u).removeprefix('a') }}", data, "⟦aB c⟧"},
        {"{{ u | center(8) }}", data, "  ⟦aB c⟧  "},
        {"{{ u.rjust(6, '.') }}", data, "..⟦aB c⟧"},
        {"{{ ('x\n' + v) | indent(2) }}", data, "x\n  ⟦x⟧\n  ⟦y⟧"},
        {"{{ 'i' | indent(u, first=true) }}", data, "⟦aB c⟧i"},
        {"{{ (u ~ 'tail') | truncate(3, true, '', 0) }}", data, "⟦aB ⟧"},
        {"{{ '%s=%d' % (u, n) }}", data, "⟦aB c⟧=⟦12⟧"},
        {"{{ '%s' | format(u) }}", data, "⟦aB c⟧"},
        {"{{ '[{}|{:>4}|{:.1f}]'.format(u, n, f) }}", data, "[⟦aB c⟧|  ⟦12⟧|⟦1.5⟧]"},
        {"{{ u.format(1) }}", data, "⟦aB c⟧"},
        {"{{ '%c' % 60 }}{{ '%c' % (n + 48) }}", data, "<⟦<⟧"},
        {"{{ n }}{{ n + 1 }}{{ -n }}{{ n // 5 }}{{ 3 }}", data, "⟦1213-122⟧3"},
        {"{{ f }}{{ f * 2 }}{{ n | float }}{{ '7' | int }}", data, "⟦1.53.012.0⟧7"},
        {"{{ t }}{{ none }}{{ d.m[1] }}", data, "⟦True⟧None⟦None⟧"},
        {"{{ n | string }}{{ n | abs }}{{ f | round }}", data, "⟦12122.0⟧"},
        {"{{ l }}", data, "⟦['p', 'q']⟧"},
        {"{{ [u, 'i'] }}", data, "[⟦'aB c'⟧, 'i']"},
        {"{{ {'k': u} }}", data, "{'k': ⟦'aB c'⟧}"},
        {"{{ d | tojson }}", data, "⟦{\"k\": \"w\", \"m\": [1, null]}⟧"},
        {"{{ {'a': d.k, 'b': 1} | tojson }}", data, "{\"a\": ⟦\"w\"⟧, \"b\": 1}"},
        {"{{ u | tojson }}", data, "⟦\"aB c\"⟧"},
        {"{% for k, x in d.items() %}{{ k }}:{% endfor %}", data, "⟦k⟧:⟦m⟧:"},
        {"{% for c in u %}{{ c }}.{% endfor %}", data, "⟦a⟧.⟦B⟧.⟦ ⟧.⟦c⟧."},
        {"{% set s %}<{{ u }}>{% endset %}{{ s | upper }}", data, "<⟦AB C⟧>"},
        {"{% macro m(x) %}({{ x }}){% endmacro %}{{ m(u) ~ m('i') }}", data, "(⟦aB c⟧)(i)"},
        {"{% filter upper %}<{{ u }}>{% endfilter %}", data, "<⟦AB C⟧>"},
        {"{% set ns = namespace(x=u) %}{{ ns.x }}{{ ns }}", data,
         "⟦aB c⟧<Namespace {'x': ⟦'aB c'⟧}>"},
        {"{{ l | map('upper') | list }}", data, "[⟦'P'⟧, ⟦'Q'⟧]"},
        {"{{ l | sort | first }}{{ l | max }}{{ (l + ['z']) | last }}", data, "⟦pq⟧z"},
        {"{{ 'y' if u == 'aB c' else 'n' }}{{ u | length }}{{ 'c' in u }}", data, "y4True"},
        {"{{ u | default('i') }}{{ e | default('i', true) }}", data, "⟦aB c⟧i"},
        {"{{ ('<' ~ u) | e }}", data, "&lt;⟦aB c⟧"},
        {"{{ range(n)[11] }}{{ n * 'ab' }}", R"({"n": 12})", "⟦11⟧abababababababababababab"},
        {"{{ u * 2 }}", data, "⟦aB caB c⟧"},
        {"{{ strftime_now(u) }}{{ strftime_now('%Y') }}", data, "⟦aB c⟧1999"},
        {"{{ d.k.zfill(3) }}", data, "00⟦w⟧"},
        {"{{ 'i'.center(5, d.k) }}{{ 'i'.ljust(3, d.k) }}", data, "⟦ww⟧i⟦ww⟧i⟦ww⟧"},
        {"{{ ('{:' ~ d.k ~ '>3}').format('i') }}", data, "⟦ww⟧i"},
        {"{{ ['i'] | tojson(indent=d.k) }}", data, "[\n⟦w⟧\"i\"\n]"},
        {"{{ ['i', 'j'] | tojson(separators=(d.k, ':')) }}", data, "[\"i\"⟦w⟧\"j\"]"},
        {"{{ dict(**d) }}", data, "{⟦'k'⟧: ⟦'w'⟧, ⟦'m'⟧: ⟦[1, None]⟧}"},
        {"{{ namespace(d) }}", data, "<Namespace {⟦'k'⟧: ⟦'w'⟧, ⟦'m'⟧: ⟦[1, None]⟧}>"},
        {"{% macro m() %}{{ kwargs | join }}{{ varargs[0] }}{% endmacro %}{{ m(*l, **d) }}", data,
         "⟦kmp⟧"},
        {"{{ d | items | map('first') | join }}", data, "⟦km⟧"},
        {"{{ loop_ }}{{ u[0] ~ u[1:] }}", data, "⟦aB c⟧"},
    };
    for (const Case& each : cases)
        EXPECT_EQ(run_marked(each.source, each.variables), each.expected) << each.source;
}

TEST(JinjaProvenance, GrowingTextInALoopKeepsTheMarksOfEarlierCopies) {
    // Appending goes into the same buffer: what was there before must not change.
    EXPECT_EQ(run_marked("{% set ns = namespace(t='" + std::string(600, '.') +
                             "', old='') %}{% for x in l %}{% set ns.t = ns.t + x %}"
                             "{% if loop.first %}{% set ns.old = ns.t %}"
                             "{% set ns.side = ns.t + '!' %}{% endif %}"
                             "{% set ns.t = ns.t + ',' %}{% endfor %}"
                             "{{ ns.t[600:] }} {{ ns.old[600:] }} {{ ns.side[600:] }}",
                         R"({"l": ["a", "b", "c"]})"),
              "⟦a⟧,⟦b⟧,⟦c⟧, ⟦a⟧ ⟦a⟧!");
}

// Random expressions over a marker and templates' own text: every byte of the marker's letters
// (which no template text has) must be marked, and every mark must lie on them or on what a
// conservative operation may add.
class RandomExpression {
  public:
    explicit RandomExpression(unsigned seed) : random_(seed) {}

    std::string text(int depth) {
        if (depth == 0)
            return pick({"u", "'tpl'", "d.a", "l[0]", "'-'", "u[1:]", "m(u)", "s"});
        const std::string a = text(depth - 1);
        switch (random_() % 18) {
        case 0:
            return "(" + a + " + " + text(depth - 1) + ")";
        case 1:
            return "(" + a + " ~ " + text(depth - 1) + ")";
        case 2:
            return "(" + a + ")" + pick({"[1:]", "[:-1]", "[::-1]", "[::2]", "[0:3]"});
        case 3:
            return "(" + a + " | " + pick({"trim", "lower", "title", "string", "safe", "indent"}) +
                   ")";
        case 4:
            return "(" + a + ").replace('-', " + text(depth - 1) + ")";
        case 5:
            return "(" + a + ").split('-') | join('/')";
        case 6:
            return "[" + a + ", " + text(depth - 1) + "] | join('+')";
        case 7:
            return "({'k': " + a + "} | tojson)";
        case 8:
            return "('%s.%r' % (" + a + ", " + text(depth - 1) + "))";
        case 9:
            return "('{}:{:>9}'.format(" + a + ", " + text(depth - 1) + "))";
        case 10:
            return "(" + a + " | center(30))";
        case 11:
            return "([" + a + "] | string)";
        case 12:
            return "(" + a + ").partition('-') | join('*')";
        case 13:
            return "(" + a + " | truncate(9, true, '~', 0))";
        case 14:
            return "m(" + a + ")";
        case 15:
            return "(" + a + ").rsplit('-', 1)[-1]";
        case 16:
            return "([" + a + ", " + text(depth - 1) + "] | sort | map('capitalize') | join('-'))";
        default:
            return "(" + a + " if u else " + text(depth - 1) + ")";
        }
    }

  private:
    std::string pick(std::initializer_list<const char*> choices) {
        return *(choices.begin() + random_() % choices.size());
    }
    std::mt19937 random_;
};

TEST(JinjaProvenance, AMarkerFromOutsideIsCoveredWhateverIsDoneToIt) {
    // Letters that stand in no text of the templates below, in upper and lower case.
    const std::string letters = "QqZzXx";
    const Json data = json_of(R"({"u": "Qz-xQ", "d": {"a": "ZxQ"}, "l": ["q-Z"]})");
    int covered = 0;
    for (unsigned seed = 0; seed < 1500; ++seed) {
        const std::string source = "{% macro m(i) %}<{{ i }}>{% endmacro %}"
                                   "{% set s %}[{{ u }}]{% endset %}{{ " +
                                   RandomExpression(seed).text(1 + static_cast<int>(seed % 4)) +
                                   " }}";
        const Result<MarkedText> out = render(source, data);
        ASSERT_TRUE(out.has_value()) << source << "\n" << out.error().message();
        std::vector<bool> outside(out->text.size());
        std::size_t end = 0;
        for (const ByteRange& range : out->outside) {
            ASSERT_TRUE(range.begin >= end && range.begin < range.end);
            ASSERT_TRUE(end == 0 || range.begin > end) << "touching ranges";
            end = range.end;
            ASSERT_LE(end, out->text.size());
            std::fill(outside.begin() + static_cast<std::ptrdiff_t>(range.begin),
                      outside.begin() + static_cast<std::ptrdiff_t>(range.end), true);
        }
        for (std::size_t i = 0; i < out->text.size(); ++i) {
            if (letters.find(out->text[i]) == std::string::npos)
                continue;
            ASSERT_TRUE(outside[i]) << source << "\n" << marked(*out);
            ++covered;
        }
    }
    EXPECT_GT(covered, 5000); // the expressions do print the marker
}

} // namespace
} // namespace lr::text::jinja
