// SPDX-License-Identifier: Apache-2.0
//
// core/text_file.h: small files read whole.
#pragma once

#include "core/status.h"

#include <string>

namespace lr {

// The bytes of a regular file. kNotFound: nothing is there. kInvalidArgument: a folder or a special
// file (a pipe or a device is never waited for). kInternal: the system's own words.
Result<std::string> read_text_file(const std::string& path);

} // namespace lr
