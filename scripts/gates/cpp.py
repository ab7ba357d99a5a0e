# SPDX-License-Identifier: Apache-2.0
"""As much understanding of C++ text as the gates need."""
import re

_LEXEME = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\s\\]{0,16})\((?:.*?)\)\1"'
    r"|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.S)


def blank_comments_and_strings(text):
    """The same text with comments and literals turned to blanks; line numbers stay."""
    return _LEXEME.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def without_directives(text):
    """Blanks preprocessor lines, with their continuations."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
                  lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.M)


def without_templates(header):
    """Cuts "template <...>" with nested brackets off the front of a declaration."""
    match = re.match(r"\s*template\s*<", header)
    while match:
        depth, at = 1, match.end()
        while at < len(header) and depth:
            depth += {"<": 1, ">": -1}.get(header[at], 0)
            at += 1
        header = header[at:]
        match = re.match(r"\s*template\s*<", header)
    return header


def scope_kind(header):
    header = without_templates(header).strip()
    if re.search(r"\bnamespace\b|^extern\b", header):
        return "namespace"
    if re.match(r"(?:typedef\s+)?(?:class|struct|union|enum)\b", header) and \
            not re.search(r"\)\s*(?:const|noexcept|override|final|->.*)*$", header):
        return "type"
    if header.endswith("=") or header.endswith("= ") or re.search(r"=\s*[\w:<>, ]*$", header):
        return "value"
    return "function"


def functions(text):
    """(first line, last line, declaration) of every function body."""
    code = without_directives(blank_comments_and_strings(text))
    found, stack = [], []
    header_start = 0
    for match in re.finditer(r"[{};]", code):
        at, sign = match.start(), match.group(0)
        inside = any(kind in ("function", "value") for kind, *_ in stack)
        if sign == "{":
            header = code[header_start:at]
            kind = "inner" if inside else scope_kind(header)
            first = header_start + len(header) - len(header.lstrip())
            stack.append((kind, first, header.strip()))
        elif sign == "}" and stack:
            kind, first, header = stack.pop()
            if kind == "function":
                found.append((code.count("\n", 0, first) + 1, code.count("\n", 0, at) + 1, header))
        if not inside or not stack:
            header_start = at + 1
        elif sign == "}" and not any(k in ("function", "value") for k, *_ in stack):
            header_start = at + 1
    return found


def template_parameters(text):
    """(line, count) of every template parameter list."""
    code = blank_comments_and_strings(text)
    for match in re.finditer(r"\btemplate\s*<", code):
        depth, commas, at, empty = 1, 0, match.end(), True
        while at < len(code) and depth:
            c = code[at]
            depth += {"<": 1, ">": -1, "(": 1, ")": -1}.get(c, 0)
            commas += c == "," and depth == 1
            empty = empty and (c.isspace() or c == ">")
            at += 1
        yield code.count("\n", 0, match.start()) + 1, 0 if empty else commas + 1


def includes(text):
    """(line, name, quoted) of every include."""
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', line)
        if match:
            yield number, match.group(1) or match.group(2), match.group(1) is not None
