// SPDX-License-Identifier: Apache-2.0
#include "engine/observer.h"

#include "core/check.h"

namespace lr::engine {
namespace {

// Bound tensors come in the order of the node's uses, which were listed by the same visit.
struct WrittenVisitor {
    const std::vector<graph::Use>& uses;
    std::vector<Launched::Written>& written;
    std::size_t next = 0;

    const graph::Use& take() {
        LR_CHECK_LT(next, uses.size());
        return uses[next++];
    }
    void add(View view) {
        if (view.empty())
            return;
        const graph::Use& use = take();
        written.push_back({use.slot, use.tensor, view});
    }
    void in(const char*, const ConstView& view) {
        if (!view.empty())
            take();
    }
    void weight(const char*, const ops::Weight& w) {
        if (w.id >= 0)
            take();
    }
    void state(const char*, const View& view) { add(view); }
    void out(const char*, const View& view) { add(view); }
};

} // namespace

std::vector<Launched::Written> Launched::written() const {
    std::vector<Written> found;
    WrittenVisitor visitor{node.uses, found};
    ops::AnyArgs copy = args; // visit hands out references that could be written to
    std::visit([&](auto& typed) { typed.visit(visitor); }, copy);
    LR_CHECK_EQ(visitor.next, node.uses.size());
    return found;
}

} // namespace lr::engine
