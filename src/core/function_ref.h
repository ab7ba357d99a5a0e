// SPDX-License-Identifier: Apache-2.0
//
// core/function_ref.h: a callable passed down, not kept. Two pointers: never allocates, never owns;
// valid only while the callable it was made from lives (a lambda in the argument list does).
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace lr {

template <typename Signature> class FunctionRef;

template <typename R, typename... Args> class FunctionRef<R(Args...)> {
  public:
    template <typename F>
    requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef> && std::invocable<F&, Args...>)
        FunctionRef(F&& callable)
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
          call_([](void* object, Args... args) -> R {
              return (*static_cast<std::remove_reference_t<F>*>(object))(
                  std::forward<Args>(args)...);
          }) {}

    R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

  private:
    void* object_;
    R (*call_)(void*, Args...);
};

} // namespace lr
