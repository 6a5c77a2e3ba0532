// SPDX-License-Identifier: Apache-2.0
// Stores the loop that was set. Loops read it without a lock while another thread may set the next one.
#include "runtime/foreign_threads.h"

#include <atomic>
#include <list>
#include <mutex>

#include "base/per_process.h"

namespace retrograd::runtime {
namespace {

class Setting {
 public:
  void set(const ForeignThreads& threads) {
    if (threads.parallel_for == nullptr) return current_.store(nullptr, std::memory_order_release);
    std::lock_guard lock(mutex_);
    current_.store(&kept(threads), std::memory_order_release);
  }
  const ForeignThreads* get() const { return current_.load(std::memory_order_acquire); }

 private:
  // Loops may still be reading an older one: none is ever freed, and one that comes back is used again.
  const ForeignThreads& kept(const ForeignThreads& threads) {
    for (const ForeignThreads& each : all_)
      if (each == threads) return each;
    return all_.emplace_back(threads);
  }

  std::mutex mutex_;
  std::list<ForeignThreads> all_;
  std::atomic<const ForeignThreads*> current_{nullptr};
};

constinit PerProcess<Setting> setting;

}  // namespace

void set_foreign_threads(const ForeignThreads& threads) { setting.get().set(threads); }

const ForeignThreads* foreign_threads() noexcept {
  const Setting* const made = setting.find();
  return made == nullptr ? nullptr : made->get();
}

}  // namespace retrograd::runtime
