// SPDX-License-Identifier: Apache-2.0
// Dense operands at addresses that vectors and copy engines cannot read, copied to where they can. Addresses
// come when a step runs and are nearly always aligned, so the workspace has no room for this: the memory is
// the stream's. Without memory the step gets the addresses as they are.
#pragma once

#include <memory>
#include <utility>

#include "engines/cuda/layouts.h"
#include "engines/engine.h"

namespace retrograd::engines::cuda {

// Which operands a step wants at multiples of 16 bytes.
struct WantsAligned {
  bool x = true, y = true, w = true;
};

std::unique_ptr<const Step> with_aligned_copies(const ConvPass& pass, WantsAligned wants,
                                                std::unique_ptr<const Step> step);

// For steps that say what they want.
template <class AskedStep>
std::unique_ptr<const Step> with_aligned_copies(const ConvPass& pass, std::unique_ptr<AskedStep> step) {
  const WantsAligned wants = step->wants_aligned();
  return with_aligned_copies(pass, wants, std::move(step));
}
template <class AskedStep>
std::unique_ptr<const Step> make_aligned_step(const ConvPass& pass, const Machine& /*machine*/) {
  return with_aligned_copies(pass, std::make_unique<AskedStep>(pass));
}

}  // namespace retrograd::engines::cuda
