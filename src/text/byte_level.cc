// SPDX-License-Identifier: Apache-2.0
#include "text/byte_level.h"

#include "text/unicode.h"

#include <array>

namespace lr::text {

namespace {

constexpr bool stands_for_itself(int byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr int kFirstStandIn = 0x100;
constexpr int kStandIns = 68;

struct Alphabet {
    std::array<char32_t, 256> character{};
    std::array<int, kFirstStandIn + kStandIns> byte{}; // by code point; -1 outside the alphabet
};

constexpr Alphabet make_alphabet() {
    Alphabet alphabet;
    for (int& byte : alphabet.byte)
        byte = -1;
    int stand_in = kFirstStandIn;
    for (int byte = 0; byte < 256; ++byte) {
        const int character = stands_for_itself(byte) ? byte : stand_in++;
        alphabet.character[static_cast<std::size_t>(byte)] = static_cast<char32_t>(character);
        alphabet.byte[static_cast<std::size_t>(character)] = byte;
    }
    return alphabet;
}
constexpr Alphabet kAlphabet = make_alphabet();

} // namespace

bool append_bytes_of_token(std::string& out, std::string_view token) {
    const std::size_t before = out.size();
    for (std::size_t at = 0; at < token.size(); ++at) {
        char32_t character = static_cast<unsigned char>(token[at]);
        // The alphabet's characters have one byte or two: C2 to C5 lead U+0080 to U+017F.
        if (character >= 0xC2 && character <= 0xC5)
            character = (character & 0x1F) << 6 | (static_cast<unsigned char>(token[++at]) & 0x3Fu);
        else if (character >= 0x80)
            character = kFirstStandIn + kStandIns;
        if (character >= kAlphabet.byte.size() || kAlphabet.byte[character] < 0) {
            out.resize(before);
            return false;
        }
        out += static_cast<char>(kAlphabet.byte[character]);
    }
    return true;
}

std::string token_of_bytes(std::string_view bytes) {
    std::string token;
    for (char c : bytes)
        append_utf8(token, kAlphabet.character[static_cast<unsigned char>(c)]);
    return token;
}

} // namespace lr::text
