# SPDX-License-Identifier: Apache-2.0
"""jinja2 set up as transformers sets it up for chat templates."""

import json
import re
import traceback

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = "1999-12-31"


class Generation(jinja2.ext.Extension):
    """{% generation %}: its block is written as it is."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        call = self.call_method("write")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def write(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: NOW
    return made


def error_line(error):
    """The line of the template that the error belongs to; 0 where jinja2 does not say."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == "<template>"]
    return lines[-1] if lines else 0


def run(env, source, variables):
    """("text", output), ("raised", what raise_exception said) or ("line", number)."""
    try:
        text = env.from_string(source).render(**variables)
        # Output that differs from run to run is none that a template could want.
        if re.search(r"(object|function|method|class|property|generator).* at 0x[0-9a-f]+", text):
            return "line", 0
        text.encode()
        return "text", text
    except jinja2.TemplateError as error:
        if type(error) is jinja2.TemplateError:
            return "raised", str(error)
        return "line", error_line(error)
    except Exception as error:
        return "line", error_line(error)
