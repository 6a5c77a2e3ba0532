// SPDX-License-Identifier: Apache-2.0
// InFlight: counts the calls that are running, so that aclFinalize can wait for them before it frees what
// they use.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace retrograd {

class InFlight {
 public:
  // A call that is going on while this lives.
  class Call {
   public:
    explicit Call(InFlight& calls) : calls_(calls), side_(calls.enter()) {}
    ~Call() { calls_.leave(side_); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    InFlight& calls_;
    const unsigned side_;
  };

  // Waits for the calls that have begun, and not for those that begin meanwhile, so it comes to an end
  // however many threads call. Clear a flag before: calls that have found it set are over afterwards. Not
  // from within a call.
  void drain();

 private:
  unsigned enter();
  void leave(unsigned side);

  std::mutex draining_;
  // Calls are counted on the side of the epoch they begin in. A drain begins a new epoch and waits until the
  // other side is empty.
  std::atomic<uint32_t> epoch_{0};
  std::array<std::atomic<uint32_t>, 2> inside_{};
};

// The calls of both C interfaces that use memory, streams or events.
InFlight& calls_in_flight();

}  // namespace retrograd
