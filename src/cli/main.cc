// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/mapped_file.h"
#include "cli/program.h"

int main(int argc, char** argv) {
    lr::checkpoint::install_truncated_file_handler();
    return lr::cli::run_program(argc, argv);
}
