// SPDX-License-Identifier: Apache-2.0
#include "policy.h"

#include <atomic>

namespace retrograd_torch {
namespace {

std::atomic<Policy> current{Policy::kAuto};

}  // namespace

void set_policy(Policy policy) { current.store(policy, std::memory_order_relaxed); }
Policy policy() { return current.load(std::memory_order_relaxed); }

bool stock_is_faster(const Facts&) { return false; }

Outcome outcome_of(const Entry& entry) {
  if (entry.plan == nullptr) return Outcome::kRefused;
  switch (policy()) {
    case Policy::kAlways:
      return Outcome::kTaken;
    case Policy::kDepthwise:
      return entry.depthwise ? Outcome::kTaken : Outcome::kNotDepthwise;
    case Policy::kAuto:
      break;
  }
  return entry.stock_faster ? Outcome::kStockFaster : Outcome::kTaken;
}

}  // namespace retrograd_torch
