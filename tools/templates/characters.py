#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write src/text/values/character_tables.h: what Python's str methods know beyond categories.

    tools/templates/characters.py src/text/values/character_tables.h     (Python 3.11, Unicode 14)
"""

import subprocess
import sys
import unicodedata

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
HEAD = """// SPDX-License-Identifier: Apache-2.0
//
// text/values/character_tables.h: what utf8proc's categories and simple mappings leave open, for
// Unicode 14 as in Python 3.11. Written by tools/templates/characters.py.
#pragma once

namespace lr::text::jinja {

struct CodeRange {
    char32_t first, last;
};
// Digits that are not decimal; lower and upper case that the categories Ll and Lu do not know.
"""
MAPPING = """
struct FullMapping {
    char32_t c;
    char32_t upper[3];
    char32_t title[3]; // none: the simple mapping
};
"""


def ranges(name, holds):
    runs = []
    for code in (ord(c) for c in CHARACTERS if holds(c)):
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    rows = ", ".join("{0x%X, 0x%X}" % tuple(run) for run in runs)
    return f"inline constexpr CodeRange {name}[] = {{\n{rows},\n}};\n"


def codes(text):
    return "{" + ", ".join("0x%X" % ord(c) for c in text) + "}" if len(text) > 1 else "{}"


def main():
    category = unicodedata.category
    text = HEAD
    text += ranges("kOtherDigit", lambda c: c.isdigit() and category(c) != "Nd")
    text += ranges("kOtherLower", lambda c: c.islower() and category(c) != "Ll")
    text += ranges("kOtherUpper", lambda c: c.isupper() and category(c) != "Lu")
    text += MAPPING + "inline constexpr FullMapping kFullMappings[] = {\n"
    for c in CHARACTERS:
        if len(c.upper()) > 1 or len(c.title()) > 1:
            text += "{0x%X, %s, %s},\n" % (ord(c), codes(c.upper()), codes(c.title()))
    text += "};\n\n} // namespace lr::text::jinja\n"
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write(text)
    subprocess.run(["clang-format-14", "-i", sys.argv[1]], check=True)


if __name__ == "__main__":
    main()
