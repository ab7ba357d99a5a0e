# SPDX-License-Identifier: Apache-2.0
#
# cmake -DHEADERS=a.h,b.h -DOUT=file.cc -P contracts.cmake: the opening comment of each op header,
# as data for ops/contract.h. So the contract that a tool shows is the one that the header states.
string(REPLACE "," ";" headers "${HEADERS}")
set(rows "")
foreach(header IN LISTS headers)
    get_filename_component(op ${header} NAME_WE)
    file(READ ${header} text)
    string(FIND "${text}" "#pragma once" end)
    string(SUBSTRING "${text}" 0 ${end} comment)
    string(APPEND rows "    ContractText{\"${op}\", R\"contract(${comment})contract\"},\n")
endforeach()
file(WRITE ${OUT} "// SPDX-License-Identifier: Apache-2.0
//
// Written by cmake/contracts.cmake from the op headers.
#include \"ops/contract.h\"

namespace lr::ops {

std::span<const ContractText> contract_texts() {
    static constexpr ContractText kTexts[] = {
${rows}    };
    return kTexts;
}

} // namespace lr::ops
")
