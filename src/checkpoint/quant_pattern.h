// SPDX-License-Identifier: Apache-2.0
//
// checkpoint/quant_pattern.h: the two pattern languages in which configs name modules.
//
//   glob   `*` any run of characters, `?` one, `[abc]`, `[a-z]`, `[!x]`; matches the whole name
//   regex  what configs use of Python's `re`, matched as re.match does: from the start, to anywhere
//          unless `$` says otherwise. Literals, `.`, classes, `\d \w \s \D \W \S`, escapes, groups
//          (also `(?:`), `|`, `* + ? {m} {m,n}` and their lazy forms, `^`, `$`. The rest
//          (look-ahead, back references, flags) is kUnsupported.
//
// A match takes time linear in the name, whatever the pattern: patterns come from files.
#pragma once

#include "core/status.h"

#include <memory>
#include <string_view>

namespace lr::checkpoint {

class ModulePattern {
  public:
    static Result<ModulePattern> glob(std::string_view pattern);
    static Result<ModulePattern> regex(std::string_view pattern);
    ModulePattern(ModulePattern&&) noexcept;
    ModulePattern& operator=(ModulePattern&&) noexcept;
    ~ModulePattern();

    bool matches(std::string_view name) const; // by one thread at a time: it learns

  private:
    class Automaton;
    explicit ModulePattern(std::unique_ptr<Automaton> automaton);
    std::unique_ptr<Automaton> automaton_;
};

} // namespace lr::checkpoint
