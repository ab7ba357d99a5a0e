# SPDX-License-Identifier: Apache-2.0
#
# Folders of src/ and tests/ as targets.

set(LR_FOLDERS "")
set(LR_GENERATED ${CMAKE_BINARY_DIR}/generated)
configure_file(${CMAKE_SOURCE_DIR}/src/core/version.h.in ${LR_GENERATED}/core/version.h @ONLY)
file(READ ${CMAKE_SOURCE_DIR}/LICENSES-third-party.txt LR_NOTICES)
configure_file(${CMAKE_SOURCE_DIR}/cmake/notices.h.in ${LR_GENERATED}/core/notices.h @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${CMAKE_SOURCE_DIR}/LICENSES-third-party.txt)

# lr_folder(name uses...): library lr_<name> from src/<name>/**; INTERFACE when it has no sources.
function(lr_folder name)
    set(dir ${CMAKE_SOURCE_DIR}/src/${name})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc)
    list(REMOVE_ITEM sources ${dir}/main.cc)
    if(name STREQUAL "cuda")
        lr_cuda_sources(${dir} sources)
    endif()
    if(sources)
        add_library(lr_${name} STATIC ${sources})
        set(scope PUBLIC)
    else()
        add_library(lr_${name} INTERFACE)
        set(scope INTERFACE)
    endif()
    target_include_directories(lr_${name} ${scope} ${CMAKE_SOURCE_DIR}/src ${LR_GENERATED})
    if(name STREQUAL "cuda" AND LR_HAVE_CUDA)
        target_include_directories(lr_cuda SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
    endif()
    list(TRANSFORM ARGN PREPEND lr_)
    target_link_libraries(lr_${name} ${scope} ${ARGN})
    set(LR_FOLDERS ${LR_FOLDERS} ${name} PARENT_SCOPE)
endfunction()

# src/cuda is its .cu and .cc files with CUDA, and the one file stub.cc without.
function(lr_cuda_sources dir out)
    file(GLOB_RECURSE device CONFIGURE_DEPENDS ${dir}/*.cu)
    set(sources ${${out}})
    if(LR_HAVE_CUDA)
        list(REMOVE_ITEM sources ${dir}/stub.cc)
        list(APPEND sources ${device})
        lr_refuse_spills(${device})
    elseif(sources)
        set(sources ${dir}/stub.cc)
    endif()
    set(${out} ${sources} PARENT_SCOPE)
endfunction()

# A kernel that spills registers to memory does not compile, unless its file says why:
# "// Spills: reason".
function(lr_refuse_spills)
    foreach(file IN LISTS ARGN)
        file(STRINGS ${file} declared REGEX "^// Spills: ..*")
        if(NOT declared AND LR_WERROR)
            set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS
                         -Xptxas=--warn-on-spills,--warning-as-error)
        endif()
    endforeach()
endfunction()

# lr_link(folder libraries...): third-party libraries of one folder.
function(lr_link name)
    get_target_property(type lr_${name} TYPE)
    if(type STREQUAL "INTERFACE_LIBRARY")
        target_link_libraries(lr_${name} INTERFACE ${ARGN})
    else()
        target_link_libraries(lr_${name} PRIVATE ${ARGN})
    endif()
endfunction()

# The program: src/cli/main.cc over lr_cli.
function(lr_program)
    file(GLOB main CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cli/main.cc)
    if(NOT main)
        return()
    endif()
    add_executable(liverow ${main})
    target_link_libraries(liverow PRIVATE lr_cli)
    install(TARGETS liverow DESTINATION bin)
    install(FILES LICENSE LICENSES-third-party.txt DESTINATION share/liverow)
    install(DIRECTORY models/tiny DESTINATION share/liverow/models)
endfunction()

# One binary and one ctest entry test_<folder> per folder of tests/. It links its own folder and
# everything below; the last list names what some of them use besides.
function(lr_tests)
    set(extra_checkpoint model)
    set(extra_model text)
    set(extra_ops cpu cuda)
    set(extra_cpu model)
    set(extra_cuda cpu)
    set(extra_graph cpu)
    set(extra_engine text)
    set(extra_sched text)
    configure_file(${CMAKE_SOURCE_DIR}/cmake/test_source_dir.cc.in ${LR_GENERATED}/test_source_dir.cc @ONLY)
    add_library(lr_test_source_dir OBJECT ${LR_GENERATED}/test_source_dir.cc)
    foreach(name IN LISTS LR_FOLDERS)
        file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*.cc)
        if(NOT sources)
            continue()
        endif()
        add_executable(test_${name} ${sources} $<TARGET_OBJECTS:lr_test_source_dir>)
        target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR})
        # gtest's macros hold an "else", which gcc suspects in "if (x) EXPECT_EQ(a, b);".
        target_compile_options(test_${name} PRIVATE -Wno-dangling-else)
        target_compile_definitions(test_${name} PRIVATE LR_SOURCE_DIR=".")
        set(links ${name} ${extra_${name}})
        list(TRANSFORM links PREPEND lr_)
        target_link_libraries(test_${name} PRIVATE ${links} ${LR_PCRE2} ${LR_GTEST_MAIN} ${LR_GTEST}
                                                   Threads::Threads)
        add_test(NAME test_${name} COMMAND test_${name} --gtest_brief=1)
        if(name STREQUAL "ops")
            # Once more in the order of sums that all instruction sets share (cpu/kernels/kernels.h).
            add_test(NAME test_ops_common COMMAND test_ops --gtest_brief=1)
            set_tests_properties(test_ops_common PROPERTIES ENVIRONMENT LIVEROW_ISA=avx2)
        endif()
        if(name STREQUAL "cuda")
            set_tests_properties(test_cuda PROPERTIES LABELS gpu)
        endif()
    endforeach()
endfunction()

# One program fuzz_<name> per tests/fuzz/<name>_fuzz.cc (clang's libFuzzer; scripts/fuzz runs them).
# The folders that read what others wrote are instrumented for coverage.
function(lr_fuzz)
    foreach(folder core numerics checkpoint text model)
        target_compile_options(lr_${folder} PRIVATE -fsanitize=fuzzer-no-link)
    endforeach()
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cc)
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        string(REGEX REPLACE "^(.*)_fuzz$" "fuzz_\\1" target ${name})
        add_executable(${target} ${source})
        target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
        target_compile_options(${target} PRIVATE -fsanitize=fuzzer)
        target_link_options(${target} PRIVATE -fsanitize=fuzzer)
        target_link_libraries(${target} PRIVATE lr_graph lr_text)
        list(APPEND targets ${target})
    endforeach()
    add_custom_target(fuzz_targets DEPENDS ${targets})
endfunction()

# lr_gpu_bench(name): program bench_<name> from bench/cuda/<name>/*.cu. Built when asked for by name.
function(lr_gpu_bench name)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/cuda/${name}/*.cu)
    add_executable(bench_${name} EXCLUDE_FROM_ALL ${sources})
    target_include_directories(bench_${name} PRIVATE ${CMAKE_SOURCE_DIR})
    target_link_libraries(bench_${name} PRIVATE ${CMAKE_DL_LIBS})
endfunction()

# What the op headers promise, as data (src/ops/contract.h).
function(lr_contracts)
    file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/*.h)
    list(JOIN headers "," joined)
    set(out ${LR_GENERATED}/ops/contract_texts.cc)
    add_custom_command(OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DHEADERS=${joined} -DOUT=${out} -P ${CMAKE_SOURCE_DIR}/cmake/contracts.cmake
        DEPENDS ${headers} ${CMAKE_SOURCE_DIR}/cmake/contracts.cmake VERBATIM)
    target_sources(lr_ops PRIVATE ${out})
endfunction()
