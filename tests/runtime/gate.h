// SPDX-License-Identifier: Apache-2.0
// Gate: a point that tasks of a test wait at. Waiting is limited, so that a broken stream fails and never
// hangs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace retrograd::runtime {

class Gate {
 public:
  void open() {
    {
      std::lock_guard lock(mutex_);
      open_ = true;
    }
    opened_.notify_all();
  }

  // False when nobody opened it: the test has failed. Generous: the machines of CI are slow and shared.
  bool wait() {
    std::unique_lock lock(mutex_);
    return opened_.wait_for(lock, std::chrono::seconds(30), [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

}  // namespace retrograd::runtime
