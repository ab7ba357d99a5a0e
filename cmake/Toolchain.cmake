# SPDX-License-Identifier: Apache-2.0
#
# Compiler flags, ccache and the optional CUDA compiler.

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")

# ccache finds the same object again from another checkout: paths inside the tree are hashed
# relative to it, and the working directory is not hashed at all.
find_program(LR_CCACHE ccache)
if(LR_CCACHE)
    set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
                 ${LR_CCACHE})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()

# Sums keep their written order and rounding (-ffp-contract=off), and one binary runs on every
# x86-64-v2 machine; faster instruction sets are chosen at run time, function by function.
# A designated initialiser leaves out what keeps its default: that is its point, not a mistake.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-march=x86-64-v2;-ffp-contract=off>"
                    "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic>"
                    "$<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>")
find_package(Threads REQUIRED)

if(LR_WERROR)
    add_compile_options($<IF:$<COMPILE_LANGUAGE:CUDA>,-Werror=all-warnings,-Werror>)
endif()
if(LR_SANITIZE)
    set(sanitize -fsanitize=${LR_SANITIZE} -fno-omit-frame-pointer)
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${sanitize};-fno-sanitize-recover=all>")
    add_link_options(${sanitize})
else()
    add_link_options(-static-libstdc++ -static-libgcc) # the program needs glibc and nothing else
endif()

# CUDA is optional. Without a compiler nothing is asked for: src/cuda becomes a stub that says so.
set(LR_HAVE_CUDA OFF)
set(LR_CUDA_BUILT_FOR "")
if(NOT LR_CUDA STREQUAL "OFF")
    find_program(LR_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
    if(LR_NVCC)
        set(CMAKE_CUDA_COMPILER ${LR_NVCC})
        set(CMAKE_CUDA_ARCHITECTURES ${LR_CUDA_ARCHITECTURES})
        set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
        # -fmad=false: what -ffp-contract=off is to the host. 554: nvcc sees View's conversion to itself, which is never used.
        set(CMAKE_CUDA_FLAGS "-fmad=false --diag-suppress=554 -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-march=x86-64-v2,-ffp-contract=off")
        set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -DNDEBUG -lineinfo")
        set(CMAKE_CUDA_FLAGS_DEBUG "-O1 -g -lineinfo")
        set(CMAKE_CUDA_STANDARD 17) # for the compiler test alone: CMake 3.25 knows no C++20 of nvcc
        enable_language(CUDA)
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
        set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
        set(CMAKE_CUDA_STANDARD 20)
        add_compile_definitions($<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>) # fmt 9 denies it nvcc
        set(LR_HAVE_CUDA ON)
        set(LR_CUDA_BUILT_FOR ${LR_CUDA_ARCHITECTURES})
        message(STATUS "CUDA: ${LR_NVCC} ${CMAKE_CUDA_COMPILER_VERSION} for ${LR_CUDA_ARCHITECTURES}")
    elseif(LR_CUDA STREQUAL "ON")
        message(FATAL_ERROR "LR_CUDA=ON, but nvcc was found neither in PATH nor in /usr/local/cuda/bin")
    else()
        message(STATUS "CUDA: no nvcc, so this build runs on the CPU only (nothing else is missing)")
    endif()
else()
    message(STATUS "CUDA: switched off (LR_CUDA=OFF), this build runs on the CPU only")
endif()
