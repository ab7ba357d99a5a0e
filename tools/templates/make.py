#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write what jinja2 makes of our templates and snippets, for tests/text/jinja.

    tools/templates/make.py            writes tests/text/data/jinja/*.json
    tools/templates/make.py --check    says whether they are as jinja2 has it now (exit status 1: no)

Needs jinja2 (Debian's python3-jinja2; 3.1.2 and 3.1.6 give the same).
"""

import collections
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import conversations
import oracle
import snippets

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(ROOT, "tests", "text", "data", "jinja")
TEMPLATES = os.path.join(ROOT, "tests", "text", "data", "templates")
KEPT = 4  # conversations of each template whose prompt is stored in full


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def outcome(env, source, variables):
    """A string: the output. A number: the line of an error. [words]: of raise_exception."""
    kind, value = oracle.run(env, source, variables)
    return [value] if kind == "raised" else value


def snippet_file(env):
    singles = ["{{ %s }}" % text for text in snippets.EXPRESSIONS] + snippets.STATEMENTS
    run = lambda source: outcome(env, source, snippets.VARIABLES)
    return {
        "variables": snippets.VARIABLES,
        "singles": [[source, run(source)] for source in singles],
        "operands": snippets.OPERANDS,
        "unary": [[pattern, [run(pattern.replace("A", a)) for a in snippets.OPERANDS]]
                  for pattern in snippets.UNARY],
        "binary": [[pattern, [run(pattern.replace("A", a).replace("B", b))
                              for a in snippets.OPERANDS for b in snippets.OPERANDS]]
                   for pattern in snippets.BINARY],
    }


def shared(entries):
    """Outcomes repeat: each once, and its number where it is the outcome."""
    known = {}
    numbers = [known.setdefault(json.dumps(entry), len(known)) for entry in entries]
    return {"values": [json.loads(key) for key in known], "of": numbers}


def compact(made):
    for key in ("unary", "binary"):
        patterns, results = zip(*made[key])
        made[key] = {"patterns": list(patterns), **shared([r for row in results for r in row])}
    return made


def conversation_file(env):
    made = conversations.conversations()
    names = sorted(name for name in os.listdir(TEMPLATES) if name.endswith(".jinja"))
    sources = {name: open(os.path.join(TEMPLATES, name), encoding="utf-8").read() for name in names}
    tiny = os.path.join(ROOT, "models", "tiny", "chat_template.jinja")
    sources["tiny"] = open(tiny, encoding="utf-8").read()
    results, full = {}, {}
    for name, source in sources.items():
        outcomes = [outcome(env, source, conversations.variables(each)) for each in made]
        results[name] = [fnv1a(value) if isinstance(value, str) else value for value in outcomes]
        texts = [i for i, value in enumerate(outcomes) if isinstance(value, str)]
        full[name] = {str(i): outcomes[i] for i in texts[:: max(1, len(texts) // KEPT)][:KEPT]}
        kinds = collections.Counter(type(value).__name__ for value in outcomes)
        print(f"{name}: {kinds['str']} prompts, {kinds['list']} refused, {kinds['int']} errors",
              file=sys.stderr)
    return {
        "messages": conversations.MESSAGES, "tools": conversations.TOOLS,
        "kwargs": conversations.KWARGS, "documents": conversations.DOCUMENTS,
        "tokens": conversations.TOKENS, "conversations": made, "results": results, "full": full,
    }


def text_of(made):
    return json.dumps(made, ensure_ascii=False, separators=(",", ":"), sort_keys=False) + "\n"


def main():
    env = oracle.environment()
    files = {"snippets.json": text_of(compact(snippet_file(env))),
             "conversations.json": text_of(conversation_file(env))}
    stale = []
    for name, text in files.items():
        path = os.path.join(OUT, name)
        if "--check" not in sys.argv:
            os.makedirs(OUT, exist_ok=True)
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
        elif not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
            stale.append(name)
        print(f"{name}: {len(text.encode())} bytes", file=sys.stderr)
    if stale:
        sys.exit("not as jinja2 has it: " + ", ".join(stale))


if __name__ == "__main__":
    main()
