// SPDX-License-Identifier: Apache-2.0
//
// cli/program.h: the whole program but its main().
#pragma once

namespace lr::cli {

// Runs one command line. Exit status: 0 done, 1 it failed, 2 the command line or its values are
// wrong; with 1 and 2 one line on stderr says what, where, expected and got.
int run_program(int argc, const char* const* argv);

} // namespace lr::cli
