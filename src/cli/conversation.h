// SPDX-License-Identifier: Apache-2.0
//
// cli/conversation.h: what has been said, as the messages that a chat template takes.
#pragma once

#include "core/json.h"

#include <string>
#include <vector>

namespace lr::cli {

class Conversation {
  public:
    // "" for none.
    void set_system(std::string text) { system_ = std::move(text); }
    const std::string& system() const { return system_; }

    void ask(std::string text);                          // the user's turn
    void reply(std::string reasoning, std::string text); // the model's
    // Takes back the last question and what came of it; the question, "" where there is none.
    std::string undo();
    // Takes back the last reply alone. False where the last turn is no reply.
    bool undo_reply();
    void clear() { turns_.clear(); }

    bool empty() const { return turns_.empty(); }

    // [{"role": "system", ...}, {"role": "user", ...}, {"role": "assistant", ...}, ...]
    Json messages() const;

  private:
    struct Turn {
        bool reply = false;
        std::string text, reasoning;
    };
    std::string system_;
    std::vector<Turn> turns_;
};

} // namespace lr::cli
