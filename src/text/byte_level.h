// SPDX-License-Identifier: Apache-2.0
//
// text/byte_level.h: the alphabet that byte-level vocabularies are written in. Every byte is one
// printable character: 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF stand for themselves (as code points),
// the other 68 bytes, in order, for U+0100, U+0101, ... (a space is U+0120).
#pragma once

#include <string>
#include <string_view>

namespace lr::text {

// Appends the bytes that a token of a vocabulary stands for; false, and nothing appended, when it
// has a character that is not in the alphabet. `token` is valid UTF-8.
bool append_bytes_of_token(std::string& out, std::string_view token);

// The inverse, for messages and for writing vocabularies.
std::string token_of_bytes(std::string_view bytes);

} // namespace lr::text
