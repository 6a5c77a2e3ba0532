// SPDX-License-Identifier: Apache-2.0
// Entering, leaving and waiting.
#include "base/in_flight.h"

#include "base/per_process.h"

namespace retrograd {

unsigned InFlight::enter() {
  for (;;) {
    const uint32_t epoch = epoch_.load();
    const unsigned side = epoch & 1;
    inside_[side].fetch_add(1);
    // A drain that began in between may have seen this side empty, and be over.
    if (epoch_.load() == epoch) return side;
    leave(side);
  }
}

void InFlight::leave(unsigned side) {
  if (inside_[side].fetch_sub(1) == 1) inside_[side].notify_all();
}

void InFlight::drain() {
  std::lock_guard lock(draining_);
  std::atomic<uint32_t>& before = inside_[epoch_.fetch_add(1) & 1];
  for (uint32_t left = before.load(); left != 0; left = before.load()) before.wait(left);
}

InFlight& calls_in_flight() {
  static constinit PerProcess<InFlight> calls;
  return calls.get();
}

}  // namespace retrograd
