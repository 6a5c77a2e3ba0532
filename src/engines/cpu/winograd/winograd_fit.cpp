// SPDX-License-Identifier: Apache-2.0
// The rules of winograd_fit.h.
#include "engines/cpu/winograd/winograd_fit.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "base/settings.h"
#include "engines/cpu/taps.h"

namespace retrograd::engines::cpu {
namespace {

using problem::Window;

// Transforms cost by the sum of the channels of both sides, products by their product: the quotient of the
// two must be as with 24 and 24.
constexpr int64_t kFewestChannels = 24;
// A tile is 4 × 4 results whatever is used of it: 36 products for 9 a result.
constexpr double kLeastSaving = 2;

bool is_3_wide(const Window& w) { return w.kernel == 3 && w.stride == 1 && w.dilation == 1; }

// Products of the direct form for one of ours, on planes of `height` × `width` results.
double saving(int64_t height, int64_t width) {
  const auto tiles = static_cast<double>(ceil_div(height, 4)) * static_cast<double>(ceil_div(width, 4));
  return 9 * static_cast<double>(height) * static_cast<double>(width) / (36 * tiles);
}

}  // namespace

std::optional<Reason> winograd_unfit(const problem::ConvPass& p) {
  if (settings().bits == Bits::kPortable) return "bits are to be the same on every machine";
  if (p.x.dtype != DType::kF32 || p.y.dtype != DType::kF32 || p.w.dtype != DType::kF32)
    return "an operand is not f32";
  if (p.bias) return "adds no bias";
  if (!p.winograd_allowed) return "exact products are asked for";
  const Window &h = p.axes[1], &w = p.axes[2];
  if (!is_3_wide(h) || !is_3_wide(w)) return "the kernel is not 3x3 with stride and dilation 1";
  const int64_t x = p.x_channels_per_group(), y = p.y_channels_per_group();
  if (static_cast<double>(x) * static_cast<double>(y) * 2 < static_cast<double>(x + y) * kFewestChannels)
    return fmt::format("groups of {} and {} channels are too few", x, y);
  const bool x_is_result = p.kind == problem::ConvPassKind::kGradInput;
  if (saving(x_is_result ? h.x : h.y, x_is_result ? w.x : w.y) < kLeastSaving)
    return "planes so small leave too much of a tile unused";
  if (has_dead_taps(p)) return "a tap reads padding only";
  return std::nullopt;
}

}  // namespace retrograd::engines::cpu
