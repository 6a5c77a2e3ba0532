// SPDX-License-Identifier: Apache-2.0
// Taps as rows, the longest that there are.
#include "engines/cpu/taps.h"

#include "engines/cpu/rows.h"

namespace retrograd::engines::cpu {
namespace {

// body(address, stride, first tap, taps) for each row.
template <class Body>
void for_each_row(const problem::ConvPass& p, const Bindings& bindings, int64_t y, int64_t x,
                  const Body& body) {
  const auto& s = p.w.strides;
  const auto& [d, h, w] = p.axes;
  auto* const base = static_cast<std::byte*>(bindings[p.w.operand]);
  const int64_t taps = taps_of(p), row = taps_are_one_run(p) ? taps : w.kernel;
  for (int64_t tap = 0; tap < taps; tap += row) {
    const int64_t line = tap / w.kernel;
    const int64_t at = y * s[0] + x * s[1] + line / h.kernel * s[2] + line % h.kernel * s[3];
    body(base + at * static_cast<int64_t>(size_of(p.w.dtype)), s[4], tap, row);
  }
}

}  // namespace

bool has_dead_taps(const problem::ConvPass& p) {
  for (const problem::Window& w : p.axes)
    for (int64_t tap = 0; tap < w.kernel; ++tap)
      if (live_outputs(w, tap).size() == 0) return true;
  return false;
}
bool taps_follow_each_other(const problem::ConvPass& p) {
  const auto& s = p.w.strides;
  const int64_t w = p.axes[2].kernel, h = p.axes[1].kernel;
  return (w == 1 || s[4] == 1) && (h == 1 || s[3] == w) && (p.axes[0].kernel == 1 || s[2] == h * w);
}
bool taps_are_one_run(const problem::ConvPass& p) {
  const auto& s = p.w.strides;
  const int64_t w = p.axes[2].kernel, h = p.axes[1].kernel;
  return (h == 1 || s[3] == w * s[4]) && (p.axes[0].kernel == 1 || s[2] == h * w * s[4]);
}

void load_taps(const problem::ConvPass& p, const Bindings& bindings, int64_t y, int64_t x, float* out) {
  for_each_row(p, bindings, y, x, [&](const std::byte* at, int64_t stride, int64_t tap, int64_t count) {
    load_row(p.w.dtype, p.rounding, at, stride, count, out + tap);
  });
}
void store_taps(const problem::ConvPass& p, const Bindings& bindings, int64_t y, int64_t x,
                const float* taps) {
  for_each_row(p, bindings, y, x, [&](std::byte* at, int64_t stride, int64_t tap, int64_t count) {
    store_row(p.w.dtype, at, stride, taps + tap, 1, count);
  });
}

}  // namespace retrograd::engines::cpu
