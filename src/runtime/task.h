// SPDX-License-Identifier: Apache-2.0
// Task: a move-only callable held in place, so that putting work on a stream never allocates.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace retrograd::runtime {

class ThreadPool;

// What a running task may use.
struct ExecutionContext {
  ThreadPool* pool = nullptr;     // CPU devices
  void* native_stream = nullptr;  // CUDA devices: the cudaStream_t
};

class Task {
 public:
  static constexpr size_t kCapacity = 176;

  Task() = default;
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, Task>>>
  Task(F&& function) {
    using Function = std::decay_t<F>;
    static_assert(sizeof(Function) <= kCapacity, "a task is held in place: capture less");
    static_assert(alignof(Function) <= alignof(std::max_align_t));
    static_assert(std::is_nothrow_move_constructible_v<Function>);
    new (storage_) Function(std::forward<F>(function));
    call_ = [](void* self, ExecutionContext& context) { (*static_cast<Function*>(self))(context); };
    relocate_ = [](void* from, void* to) {
      auto* held = static_cast<Function*>(from);
      if (to != nullptr) new (to) Function(std::move(*held));
      held->~Function();
    };
  }
  Task(Task&& other) noexcept { take(other); }
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~Task() { reset(); }

  explicit operator bool() const { return call_ != nullptr; }
  void operator()(ExecutionContext& context) { call_(storage_, context); }
  void reset() {
    if (call_ != nullptr) relocate_(storage_, nullptr);
    call_ = nullptr;
  }

 private:
  void take(Task& other) {
    call_ = std::exchange(other.call_, nullptr);
    relocate_ = other.relocate_;
    if (call_ != nullptr) relocate_(other.storage_, storage_);
  }
  alignas(std::max_align_t) std::byte storage_[kCapacity];
  void (*call_)(void*, ExecutionContext&) = nullptr;
  void (*relocate_)(void* from, void* to) = nullptr;
};

}  // namespace retrograd::runtime
