// SPDX-License-Identifier: Apache-2.0
#include "policy.h"

#include <atomic>

namespace retrograd_torch {
namespace {

std::atomic<Policy> current{Policy::kAuto};

}  // namespace

void set_policy(Policy policy) { current.store(policy, std::memory_order_relaxed); }
Policy policy() { return current.load(std::memory_order_relaxed); }

// Measured operator by operator with bench/torch/torch_models.py --layers --policy always (torch 2.15,
// oneDNN 3.13, two threads of a Zen 5): of 145 calls of five networks, three took us longer than stock /
// 0.95: 1 x 1 of 24 channels in NHWC, FP32 (0.78 and 0.91), and 3 x 3 x 3 of 16 channels in NHWC, BF16
// (0.86). Where our plan widens BF16 to FP32 and the processor has instructions for pairs, which oneDNN uses,
// windows that overlap took us 1.1 to 1.9 times as long on an older Zen; by now plans do that for operands
// with strides of 0 only.
//
// GPUs: no rule. Over 408 drawn figures on an H200 (bench/gpu) PyTorch took 2.27 times as long in the mean,
// and less than 0.95 of our time in 4 % of them, too few to say what they have in common.
bool stock_is_faster(const Facts& facts) {
  // To call the other kernel takes 14 us by itself.
  constexpr double kLeastMicroseconds = 150;
  return facts.widened && facts.groups == 1 && facts.windows_overlap &&
         facts.our_microseconds >= kLeastMicroseconds;
}

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
