// SPDX-License-Identifier: Apache-2.0
// PerProcess<T>: one T a process, made at first use and never destroyed. A forked child begins with its own.
//
// In a child only the thread that forked exists: streams have lost their workers, and a mutex that another
// thread held stays locked for ever. So nothing that was made before a fork is touched after it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace retrograd {

// How many forks lie between this process and the one that loaded the library.
uint32_t fork_depth() noexcept;
// For the end of a message about what is not alive: "" unless this process is a forked child.
const char* fork_note() noexcept;

// Constant-initialised: a static one has no guard that another thread could hold at a fork.
template <class T>
class PerProcess {
 public:
  // When two threads come first, both make one and one of them is dropped.
  template <class... Arguments>
  T& get(const Arguments&... arguments) {
    const uint32_t depth = fork_depth();
    Node* newest = newest_.load(std::memory_order_acquire);
    if (newest != nullptr && newest->depth == depth) return newest->value;
    auto made = std::make_unique<Node>(depth, newest, arguments...);
    if (newest_.compare_exchange_strong(newest, made.get(), std::memory_order_acq_rel))
      newest = made.release();
    return newest->value;
  }
  // The one of this process if it has been made, null otherwise. Needs no memory.
  T* find() noexcept {
    Node* const newest = newest_.load(std::memory_order_acquire);
    return newest != nullptr && newest->depth == fork_depth() ? &newest->value : nullptr;
  }

 private:
  struct Node {
    template <class... Arguments>
    Node(uint32_t made_at, Node* parents, const Arguments&... arguments)
        : depth(made_at), before(parents), value(arguments...) {}
    const uint32_t depth;
    Node* const before;  // the parent's, kept so that a leak checker still sees it
    T value;
  };
  std::atomic<Node*> newest_{nullptr};
};

}  // namespace retrograd
