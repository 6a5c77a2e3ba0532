// SPDX-License-Identifier: Apache-2.0
// Which taps meet x, axis by axis.
#include "engines/short_kernel.h"

namespace retrograd::engines {
namespace {

using problem::ConvPass;
using problem::Range;
using problem::Window;

bool is_live(const Window& w, int64_t tap) { return live_outputs(w, tap).size() > 0; }

Range live_span(const Window& w) {
  int64_t begin = 0, end = w.kernel;
  while (begin < end && !is_live(w, begin)) ++begin;
  while (begin < end && !is_live(w, end - 1)) --end;
  return {begin, end};
}

}  // namespace

ShortKernel shorten(const ConvPass& pass) {
  ShortKernel s{pass, 0};
  for (size_t axis = 0; axis < 3; ++axis) {
    Window& w = s.pass.axes[axis];
    const Range live = live_span(w);
    s.offset += live.begin * pass.w.strides[axis + 2];
    w.pad_lo -= live.begin * w.dilation;
    w.kernel = live.size();
  }
  return s;
}

Support has_dead_ends(const problem::Pass& pass) {
  const auto* p = std::get_if<ConvPass>(&pass);
  if (p == nullptr) return Support::no("computes convolutions only");
  constexpr int64_t kMostTaps = 1 << 16;
  bool dead = false;
  for (const Window& w : p->axes) {
    if (w.kernel < 1 || w.kernel > kMostTaps) return Support::no("the kernel has no tap, or more than 2^16");
    dead |= !is_live(w, 0) || !is_live(w, w.kernel - 1);
  }
  if (!dead) return Support::no("the first and the last tap meet x");
  for (const Window& w : p->axes)
    if (live_span(w).size() == 0) return Support::no("no tap meets x");
  return Support::yes();
}

}  // namespace retrograd::engines
