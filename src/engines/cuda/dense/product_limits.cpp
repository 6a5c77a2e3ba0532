// SPDX-License-Identifier: Apache-2.0
// Checks that sizes fit the 32-bit indices of the product kernels.
#include "engines/cuda/dense/product_limits.h"

#include <algorithm>

#include "base/checked.h"

namespace retrograd::engines::cuda {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 31;

// What the kernels count with 32 bits, filled up rows included.
bool is_too_large(const ConvPass& p) {
  Checked x = Checked(p.batch) * p.groups * (p.x_channels_per_group() + 7),
          y = Checked(p.batch) * p.groups * (p.y_channels_per_group() + 7);
  Checked weights = Checked(p.groups) * (p.x_channels_per_group() + 7) * (p.y_channels_per_group() + 7);
  for (const Window& w : p.axes) {
    if (is_far(w)) return true;
    x = x * w.x;
    y = y * w.y;
    weights = weights * w.kernel;
  }
  // Elements may be more than 2^31, places may not; a bound on elements of 2^40 keeps byte counts harmless.
  for (const Checked& count : {x, y, weights})
    if (!count.get() || *count.get() >= int64_t{1} << 40) return true;
  const int64_t x_places = p.batch * p.axes[0].x * p.axes[1].x * p.axes[2].x;
  const int64_t y_places = p.batch * p.axes[0].y * p.axes[1].y * p.axes[2].y;
  int64_t taps = p.axes[0].kernel * p.axes[1].kernel * p.axes[2].kernel;
  const int64_t chunks = (std::max(p.x_channels_per_group(), p.y_channels_per_group()) + 3) / 4;
  return x_places >= kMostElements || y_places >= kMostElements || taps * chunks >= kMostElements / 4 ||
         p.x_channels > 1 << 24 || p.y_channels > 1 << 24 || p.groups > 65535;
}

}  // namespace

bool is_far(const Window& w, int64_t end) {
  for (const int64_t size : {w.x, w.y, w.kernel, w.stride, w.dilation, w.pad_lo, -w.pad_lo})
    if (size >= end) return true;
  return (w.y - 1) * w.stride + (w.kernel - 1) * w.dilation + w.x >= end;
}

int64_t terms_of(const ConvPass& p) {
  int64_t places = p.batch, taps = 1;
  for (const Window& w : p.axes) {
    places *= w.y;
    taps *= w.kernel;
  }
  if (p.kind == ConvPassKind::kGradWeight) return places;
  return taps * (p.kind == ConvPassKind::kForward ? p.x_channels_per_group() : p.y_channels_per_group());
}

Support takes_split_products(int64_t terms) {
  constexpr int64_t kFewestTerms = 8;
  if (terms >= kFewestTerms) return Support::yes();
  return Support::no("sums of {} products in f32 would not be exact enough", terms);
}

Support takes_products(const ConvPass& pass) {
  if (pass.batch == 0 || pass.x_channels == 0 || pass.y_channels == 0)
    return Support::no("nothing to add up");
  for (const Window& w : pass.axes)
    if (w.x == 0 || w.y == 0 || w.kernel == 0) return Support::no("nothing to add up");
  if (pass.groups > 1 && pass.x_channels == pass.groups && pass.y_channels == pass.groups)
    return Support::no("one channel a group on both sides: tiles would be almost empty");
  if (is_too_large(pass)) return Support::no("sizes beyond 32-bit counts of places, taps or channels");
  return Support::yes();
}

}  // namespace retrograd::engines::cuda
