// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/mapped_file.h"
#include "cli/program.h"

#include <fcntl.h>
#include <unistd.h>

namespace {

// A program started with standard streams closed would get its first files under their numbers, and
// then read a checkpoint as its input or print into it.
void open_missing_standard_streams() {
    for (int fd = 0; fd <= 2; ++fd)
        if (::fcntl(fd, F_GETFD) == -1 && ::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
            ::_exit(1);
}

} // namespace

int main(int argc, char** argv) {
    open_missing_standard_streams();
    lr::checkpoint::install_truncated_file_handler();
    return lr::cli::run_program(argc, argv);
}
