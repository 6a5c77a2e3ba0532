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

// Measured operator by operator with bench/torch/torch_models.py --layers (torch 2.15, oneDNN 3.13, one
// thread of a Sapphire Rapids host, oneDNN without AMX, other programs running: ratios, no more). oneDNN
// reads channels-last tensors where they lie, and we copy boxes of them into another order. Products pay for
// the copy: with fewer than about 1000 for an element of the side that has fewer, stock took 0.43 to 0.97 of
// our time in FP32, with more 1.02 to 1.34. In 16 bits, where its products take longer, the limit is near 8.
// Planes, depthwise convolutions, stems, 1-D and 3-D tensors, pooling and (T, B, C) are ours: stock took 0.95
// to 40 times as long, for single 1 x 1 layers on planes 0.9.
//
// GPUs: no rule. Over 408 drawn figures on an H200 (bench/gpu) PyTorch took 2.27 times as long in the mean,
// and less than 0.95 of our time in 4 % of them, too few to say what they have in common.
bool stock_is_faster(const Facts& facts) {
  if (facts.device == RETROGRAD_CUDA) return false;
  if (facts.op != Op::kConvolutionBackward || !facts.channels_last) return false;
  // To call the other kernel takes 14 us by itself.
  constexpr double kLeastMicroseconds = 150;
  if (facts.our_microseconds < kLeastMicroseconds) return false;

  const double taps_of_wide = static_cast<double>(facts.taps) * static_cast<double>(facts.narrow_places) /
                              static_cast<double>(facts.wide_places);
  const double channels_in = static_cast<double>(facts.c_in) / static_cast<double>(facts.groups);
  const double channels_out = static_cast<double>(facts.c_out) / static_cast<double>(facts.groups);
  const double products =  // of one element of either side
      std::min(taps_of_wide * channels_out, static_cast<double>(facts.taps) * channels_in);
  if (facts.dtype == RETROGRAD_F32) {
    constexpr double kFewChannels = 16;  // we have engines for those, and oneDNN fills vectors up
    return facts.spatial_rank == 2 && std::min(channels_in, channels_out) >= kFewChannels && products < 1000;
  }
  const bool skips = taps_of_wide < 1;  // most of the input has no gradient: 1 x 1 with a stride
  return facts.groups == 1 && (skips || products < 8);
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
