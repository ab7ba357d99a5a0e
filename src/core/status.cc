// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

namespace lr {

const char* code_name(Code code) {
    switch (code) {
    case Code::kOk:
        return "ok";
    case Code::kInvalidArgument:
        return "invalid_argument";
    case Code::kInvalidFile:
        return "invalid_file";
    case Code::kNotFound:
        return "not_found";
    case Code::kUnsupported:
        return "unsupported";
    case Code::kResourceExhausted:
        return "resource_exhausted";
    case Code::kInternal:
        return "internal";
    }
    return "unknown";
}

Status Status::with_context(std::string_view prefix) const {
    if (ok())
        return *this;
    return Status(code_, fmt::format("{}: {}", prefix, message_));
}

} // namespace lr
