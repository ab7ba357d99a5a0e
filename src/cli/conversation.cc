// SPDX-License-Identifier: Apache-2.0
#include "cli/conversation.h"

namespace lr::cli {
namespace {

Json message(const char* role, const std::string& content) {
    return Json::object({{"role", Json(role)}, {"content", Json(content)}});
}

} // namespace

void Conversation::ask(std::string text) {
    turns_.push_back({.text = std::move(text)});
}

void Conversation::reply(std::string reasoning, std::string text) {
    turns_.push_back({.reply = true, .text = std::move(text), .reasoning = std::move(reasoning)});
}

std::string Conversation::undo() {
    undo_reply();
    if (turns_.empty())
        return "";
    std::string question = std::move(turns_.back().text);
    turns_.pop_back();
    return question;
}

bool Conversation::undo_reply() {
    if (turns_.empty() || !turns_.back().reply)
        return false;
    turns_.pop_back();
    return true;
}

Json Conversation::messages() const {
    JsonArray messages;
    if (!system_.empty())
        messages.push_back(message("system", system_));
    for (const Turn& turn : turns_) {
        if (turn.reply && !turn.reasoning.empty())
            messages.push_back(Json::object({{"role", Json("assistant")},
                                             {"content", Json(turn.text)},
                                             {"reasoning_content", Json(turn.reasoning)}}));
        else
            messages.push_back(message(turn.reply ? "assistant" : "user", turn.text));
    }
    return Json(std::move(messages));
}

} // namespace lr::cli
