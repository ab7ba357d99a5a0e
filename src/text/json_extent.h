// SPDX-License-Identifier: Apache-2.0
//
// text/json_extent.h: where a JSON object that is still arriving ends, and where in it the value of
// one member lies. It counts brackets outside of strings; whether the object is valid is for
// parse_json to say.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lr::text {

class JsonExtent {
  public:
    explicit JsonExtent(std::string_view key); // of the member; plain characters

    // `text` begins with "{" and only grows from call to call. True once it holds the object's end;
    // what was read before is not read again.
    bool scan(std::string_view text);

    std::size_t end() const { return at_; } // after scan() returned true
    // The text of the last member of that name, white space included; "" if there is none.
    std::string_view member(std::string_view text) const {
        return text.substr(value_begin_, value_end_ - value_begin_);
    }

  private:
    void scan_string(char c);

    std::string quoted_key_;
    std::size_t at_ = 0;
    int depth_ = 0;
    bool in_string_ = false, escaped_ = false, in_value_ = false;
    std::size_t string_begin_ = 0, string_end_ = 0; // the last string, with its quotes
    std::size_t value_begin_ = 0, value_end_ = 0;
};

} // namespace lr::text
