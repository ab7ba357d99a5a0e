// SPDX-License-Identifier: Apache-2.0
//
// text/jinja/scopes.h: which variable a name means, decided before anything runs, by jinja2's
// rules.
//
// A template, the body of a for, macro, call, filter, with or set block is a frame; an if is not.
// A name that a frame assigns to is its own there, and begins as what the frame around holds; a
// name that no frame around knows is looked up among the render's variables when the frame begins.
#pragma once

#include "text/jinja/ast.h"
#include "text/values/arena.h"

namespace lr::text::jinja {

// Gives every name its variable and every frame its layout. Throws the syntax error of what only
// shows here: an unknown filter or test, a break outside of a loop, an assignment to `loop`.
Program resolve_scopes(Body body, Arena& arena);

} // namespace lr::text::jinja
