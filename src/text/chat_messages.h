// SPDX-License-Identifier: Apache-2.0
//
// text/chat_messages.h: a conversation as the OpenAI API writes it, checked and put into the form
// that chat templates expect.
//
//   role               "developer" becomes "system"; other roles are the template's business
//   content            a string; text parts become one string, one behind the other; null or absent
//                      becomes "". Other parts (images) are refused: kUnsupported
//   reasoning_content  a string; null is dropped; `reasoning` is another name for it
//   tool_calls         null is dropped; function.arguments given as a string of JSON becomes the
//                      object it says; a string that is no JSON object stays as it is
//   name, tool_call_id strings; null is dropped
// Other members are handed on.
#pragma once

#include "core/json.h"

namespace lr::text {

// What becomes of a system message that is not the first message.
enum class LateSystem {
    kKeep,  // nothing: the template decides, and most refuse it
    kMerge, // all system messages become one at the front, a blank line between two
};

// The messages; each is an object with a role. An error (kInvalidArgument) names the message, the
// member, what was expected and what is there: "messages[2].content: expected ..., got ...". Texts
// are UTF-8.
Result<Json> prepare_messages(const Json& messages, LateSystem late_system = LateSystem::kKeep);

} // namespace lr::text
