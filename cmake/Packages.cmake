# SPDX-License-Identifier: Apache-2.0
#
# Third-party libraries, all from Debian 12. Libraries with an object part are linked as archives,
# so that the program depends on glibc alone.

function(lr_require_header header package)
    string(MAKE_C_IDENTIFIER "LR_HEADER_${header}" variable)
    find_path(${variable} ${header})
    if(NOT ${variable})
        message(FATAL_ERROR "missing header <${header}>: apt-get install ${package}"
                            " (scripts/install installs everything)")
    endif()
endfunction()

function(lr_require_archive variable name package)
    find_library(${variable} NAMES lib${name}.a)
    if(NOT ${variable})
        message(FATAL_ERROR "missing lib${name}.a: apt-get install ${package}"
                            " (scripts/install installs everything)")
    endif()
endfunction()

lr_require_header(tl/expected.hpp libexpected-dev)
lr_require_header(fmt/format.h libfmt-dev)
lr_require_header(boost/json.hpp libboost1.81-dev)
lr_require_header(CLI/CLI.hpp libcli11-dev)
lr_require_header(utf8proc.h libutf8proc-dev)
lr_require_archive(LR_BOOST_JSON boost_json libboost-json1.81-dev)
lr_require_archive(LR_BOOST_CONTAINER boost_container libboost-json1.81-dev)
lr_require_archive(LR_UTF8PROC utf8proc libutf8proc-dev)
if(LR_TESTS)
    lr_require_header(gtest/gtest.h libgtest-dev)
    lr_require_header(pcre2.h libpcre2-dev)
    lr_require_archive(LR_GTEST gtest libgtest-dev)
    lr_require_archive(LR_GTEST_MAIN gtest_main libgtest-dev)
    lr_require_archive(LR_PCRE2 pcre2-8 libpcre2-dev)
endif()

add_library(lr_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cc)

# Which folder links what.
macro(lr_packages)
    lr_link(core lr_fmt ${LR_BOOST_JSON} ${LR_BOOST_CONTAINER} Threads::Threads ${CMAKE_DL_LIBS})
    lr_link(text ${LR_UTF8PROC})
endmacro()
