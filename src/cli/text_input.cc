// SPDX-License-Identifier: Apache-2.0
#include "cli/text_input.h"

#include "core/log.h"
#include "core/text_file.h"

#include <algorithm>
#include <charconv>
#include <iostream>
#include <iterator>
#include <unistd.h>

namespace lr::cli {

Result<std::string> read_text_input(const TextInput& input, std::string_view what) {
    if (input.has_text)
        return input.text;
    if (!input.file.empty())
        return read_text_file(input.file);
    if (isatty(STDIN_FILENO))
        log_info("reading the {} from the terminal; end it with Ctrl-D", what);
    return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

Result<std::vector<std::int32_t>> parse_ids(std::string_view list, std::string_view flag) {
    std::vector<std::int32_t> ids;
    std::size_t begin = 0;
    while (begin <= list.size()) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        const std::string_view item = list.substr(begin, end - begin);
        std::int32_t value = -1;
        const char* last = item.data() + item.size();
        const auto [end_of_number, problem] = std::from_chars(item.data(), last, value);
        if (problem != std::errc() || end_of_number != last || value < 0)
            return fail(Code::kInvalidArgument,
                        "{}: expected numbers such as 1,2,3, got \"{}\" at item {}", flag, item,
                        ids.size() + 1);
        ids.push_back(value);
        begin = end + 1;
    }
    return ids;
}

} // namespace lr::cli
