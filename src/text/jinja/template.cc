// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/template.h"

#include "text/jinja/globals.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"
#include "text/jinja/scopes.h"
#include "text/unicode.h"

#include <algorithm>
#include <ctime>

namespace lr::text::jinja {

namespace {

constexpr std::size_t kMostSourceBytes = std::size_t{1} << 20; // published templates have 20 KB
constexpr std::size_t kCompiledBytes = std::size_t{512} << 20;
constexpr int kMostJsonDepth = 200;

// A document as values; strings stay where they are.
class Importer {
  public:
    Importer(Context& context, bool outside) : context_(context), outside_(outside) {}

    Value import(const Json& json, int depth = 0) {
        if (depth == kMostJsonDepth)
            throw_limit("expected at most {} nested arrays and objects, got more", kMostJsonDepth);
        switch (json.kind()) {
        case Json::Kind::kNull:
            return Value::none(outside_);
        case Json::Kind::kBool:
            return Value::of(json.as_bool(), outside_);
        case Json::Kind::kInt:
            return Value::of(Int{json.as_int()}, outside_);
        case Json::Kind::kUint:
            return Value::of(Int{json.as_uint()}, outside_);
        case Json::Kind::kDouble:
            return Value::of(json.as_double(), outside_);
        case Json::Kind::kString:
            return string(json.as_string());
        case Json::Kind::kArray:
            return array(json.as_array(), depth);
        case Json::Kind::kObject:
            break;
        }
        std::vector<Entry> entries;
        entries.reserve(json.as_object().size());
        for (const JsonMember& member : json.as_object().members())
            entries.push_back({string(member.key), import(member.value, depth + 1)});
        return Value::of(make_dict(context_.arena, entries), outside_);
    }

  private:
    Value string(std::string_view text) {
        if (first_invalid_utf8(text))
            throw_error("expected strings in UTF-8, got {} bytes that are not", text.size());
        return Value::of(borrow_str(context_.arena, text, outside_));
    }

    Value array(const JsonArray& items, int depth) {
        Value* values = context_.arena.make_array<Value>(items.size());
        for (std::size_t i = 0; i < items.size(); ++i)
            values[i] = import(items[i], depth + 1);
        return Value::list(context_.arena.make<Sequence>(values, items.size(), false), outside_);
    }

    Context& context_;
    const bool outside_;
};

struct Place {
    std::size_t line, column; // from 1; columns in bytes
};

Place place_of(std::string_view text, std::size_t at) {
    const std::string_view before = text.substr(0, at);
    const std::size_t line_end = before.rfind('\n');
    const std::size_t begin = line_end == std::string_view::npos ? 0 : line_end + 1;
    const auto lines = std::count(before.begin(), before.end(), '\n');
    return {static_cast<std::size_t>(lines) + 1, at - begin + 1};
}

} // namespace

struct Template::Compiled {
    Compiled(std::string_view source, std::string_view given_name)
        : name(given_name), text(normalized_source(source)), arena(kCompiledBytes) {
        program = resolve_scopes(Parser(text, arena).parse(), arena);
    }

    std::string name;
    std::string text; // what the program's names and strings point into
    Arena arena;
    Program program;
};

Template::Template(std::unique_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::compile(std::string_view source, std::string_view name) {
    if (source.size() > kMostSourceBytes)
        return fail(Code::kInvalidFile, "{}: expected a template of at most {} bytes, got {}", name,
                    kMostSourceBytes, source.size());
    if (const std::optional<std::size_t> offset = first_invalid_utf8(source))
        return fail(Code::kInvalidFile,
                    "{}: expected a template in UTF-8, got an invalid sequence at byte {}", name,
                    *offset);
    try {
        return Template(std::make_unique<const Compiled>(source, name));
    } catch (const TemplateError& error) {
        const Place place = place_of(normalized_source(source), error.at.value_or(0));
        return fail(error.code, "{}:{}:{}: {}", name, place.line, place.column, error.message);
    }
}

Result<MarkedText> Template::render(std::span<const RenderVariable> variables,
                                    const RenderOptions& options) const {
    Context context(options.limits, options.now.value_or(std::time(nullptr)));
    try {
        const Program& program = compiled_->program;
        std::vector<Value> values;
        for (std::string_view name : program.names) {
            const auto given =
                std::find_if(variables.begin(), variables.end(),
                             [&](const RenderVariable& each) { return each.name == name; });
            const Function* function = find_function(name);
            if (given != variables.end())
                values.push_back(Importer(context, given->outside).import(*given->value));
            else
                values.push_back(function == nullptr ? Value() : Value::of(function));
        }
        Builder out(context);
        Interpreter(program, values, context).run(out);
        if (out.size() > options.limits.output_bytes)
            throw_limit("expected at most {} bytes of output, got {}", options.limits.output_bytes,
                        out.size());
        return out.take();
    } catch (const TemplateError& error) {
        if (error.verbatim)
            return fail(error.code, "{}", error.message);
        const Place place = place_of(compiled_->text, error.at.value_or(context.at));
        return fail(error.code, "{}:{}:{}: {}", compiled_->name, place.line, place.column,
                    error.message);
    }
}

} // namespace lr::text::jinja
