// SPDX-License-Identifier: Apache-2.0
//
// text/jinja/template.h: Jinja templates as Hugging Face chat templates use them.
//
// The language is that of jinja2's ImmutableSandboxedEnvironment with trim_blocks, lstrip_blocks
// and loopcontrols, and of transformers: raise_exception, strftime_now, its own tojson, and blocks
// {% generation %}. What is not supported is an error where the template is compiled or, for
// attributes and methods, where it is met; nothing is silently different. Numbers are exact to 127
// bits, characters those of Unicode 14 and 15.
//
// The output says which of its bytes came from the variables (see text/marked_text.h): strings
// carry that through every operation, byte by byte where an operation can, else as a whole.
#pragma once

#include "core/json.h"
#include "text/marked_text.h"
#include "text/values/context.h"

#include <memory>
#include <optional>
#include <span>

namespace lr::text::jinja {

// What a template sees under a name. `value` outlives the render.
struct RenderVariable {
    std::string_view name;
    const Json* value;
    bool outside = true; // false: ours, as the template itself
};

struct RenderOptions {
    Limits limits;
    std::optional<std::time_t> now; // what strftime_now shows, in local time; absent: the clock
};

// Immutable; every function may be called from many threads at once.
class Template {
  public:
    // `name` stands in errors: "name:line:column: ...". kInvalidFile: the text is no template (or
    // no UTF-8); kUnsupported: it asks for what this engine does not have.
    static Result<Template> compile(std::string_view source, std::string_view name);

    Template(Template&&) noexcept;
    Template& operator=(Template&&) noexcept;
    ~Template();

    // Names not given are undefined. kInvalidArgument: an operation failed, at "name:line:column";
    // what raise_exception says stands alone. kResourceExhausted: a limit was met. Strings that are
    // not UTF-8 are refused.
    Result<MarkedText> render(std::span<const RenderVariable> variables,
                              const RenderOptions& options = {}) const;

  private:
    struct Compiled;
    explicit Template(std::unique_ptr<const Compiled> compiled);
    std::unique_ptr<const Compiled> compiled_;
};

} // namespace lr::text::jinja
