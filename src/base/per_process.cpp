// SPDX-License-Identifier: Apache-2.0
// Counting forks.
#include "base/per_process.h"

#include <pthread.h>

namespace retrograd {
namespace {

constinit std::atomic<uint32_t> depth{0};

// When the library is loaded, before anything of ours can be forked.
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { depth.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

uint32_t fork_depth() noexcept { return depth.load(std::memory_order_relaxed); }

const char* fork_note() noexcept {
  return fork_depth() == 0 ? "" : " (this process is a forked child, where nothing made before fork() lives)";
}

}  // namespace retrograd
