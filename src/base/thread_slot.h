// SPDX-License-Identifier: Apache-2.0
// ThreadSlot<T>: a pointer of each thread's own, null at first.
//
// Not a thread_local: for a library loaded with dlopen, the C library allocates those at a thread's first use
// and aborts when memory is exhausted. The static TLS block (initial-exec) is too small for ours next to the
// CUDA runtime's. The first 32 pthread keys of a process need no allocation; beyond them, set() may fail.
#pragma once

#include <pthread.h>

namespace retrograd {

// For objects that live as long as the process.
template <class T>
class ThreadSlot {
 public:
  // `at_end` is called with what a thread has in it when the thread ends, unless that is null.
  explicit ThreadSlot(void (*at_end)(void*) = nullptr) : exists_(pthread_key_create(&key_, at_end) == 0) {}
  ThreadSlot(const ThreadSlot&) = delete;
  ThreadSlot& operator=(const ThreadSlot&) = delete;

  T* get() const noexcept { return exists_ ? static_cast<T*>(pthread_getspecific(key_)) : nullptr; }
  // False when the process has no key left, or no memory for this thread's; then nothing changes.
  [[nodiscard]] bool set(T* pointer) const noexcept {
    return exists_ && pthread_setspecific(key_, pointer) == 0;
  }

 private:
  pthread_key_t key_ = 0;
  bool exists_;
};

}  // namespace retrograd
