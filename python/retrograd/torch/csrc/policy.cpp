// SPDX-License-Identifier: Apache-2.0
#include "policy.h"

#include <algorithm>
#include <atomic>

namespace retrograd_torch {
namespace {

std::atomic<Policy> current{Policy::kAuto};

}  // namespace

void set_policy(Policy policy) { current.store(policy, std::memory_order_relaxed); }
Policy policy() { return current.load(std::memory_order_relaxed); }

// Measured operator by operator with bench/torch/torch_models.py --layers (torch 2.15, oneDNN 3.13, two
// threads of a Zen host with pairs of BF16). oneDNN reads channels-last tensors where they lie, and we copy
// boxes of them into another order. Products pay for the copy:
// - FP32: 1 x 1 of up to 1000 products an element went 0.82 to 1.17 times as fast with us, everything with
//   more taps or a stride 0.98 to 6.
// - 16 bits: 0.52 to 0.85 with fewer than 32 products for an element of the side that has fewer, 0.92 and
// more
//   otherwise; 1 x 1 with a stride 1.5 to 1.9.
// Where our plan widens BF16 to FP32 and the processor has instructions for pairs, which oneDNN uses, windows
// that overlap took us 1.1 to 1.9 times as long, in both layouts.
// Other planes, depthwise convolutions, 1-D tensors, pooling and (T, B, C) are ours: stock took 0.75 to 40
// times as long.
//
// GPUs: no rule. Over 408 drawn figures on an H200 (bench/gpu) PyTorch took 2.27 times as long in the mean,
// and less than 0.95 of our time in 4 % of them, too few to say what they have in common.
bool stock_is_faster(const Facts& facts) {
  if (facts.device == RETROGRAD_CUDA) return false;
  if (facts.op != Op::kConvolutionBackward) return false;
  // To call the other kernel takes 14 us by itself.
  constexpr double kLeastMicroseconds = 150;
  if (facts.our_microseconds < kLeastMicroseconds) return false;

  const double taps_of_wide = static_cast<double>(facts.taps) * static_cast<double>(facts.narrow_places) /
                              static_cast<double>(facts.wide_places);
  const double channels_in = static_cast<double>(facts.c_in) / static_cast<double>(facts.groups);
  const double channels_out = static_cast<double>(facts.c_out) / static_cast<double>(facts.groups);
  const double products =  // of one element of either side
      std::min(taps_of_wide * channels_out, static_cast<double>(facts.taps) * channels_in);
  if (facts.widened && facts.groups == 1 && taps_of_wide > 1) return true;
  if (!facts.channels_last) return false;
  if (facts.dtype == RETROGRAD_F32) {
    constexpr double kFewChannels = 16;  // we have engines for those, and oneDNN fills vectors up
    const bool pointwise = facts.taps == 1 && facts.narrow_places == facts.wide_places;
    return pointwise && std::min(channels_in, channels_out) >= kFewChannels && products < 1000;
  }
  return facts.groups == 1 && products < 32;
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
