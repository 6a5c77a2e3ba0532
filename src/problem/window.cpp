// SPDX-License-Identifier: Apache-2.0
// The window arithmetic of window.h.
#include "problem/window.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"

namespace retrograd::problem {
namespace {

Range clamp_range(int64_t begin, int64_t end, int64_t lowest, int64_t highest) {
  begin = std::clamp(begin, lowest, highest);
  return {begin, std::clamp(end, begin, highest)};
}

}  // namespace

std::optional<int64_t> output_size(const WindowSizes& s) {
  const auto span =
      (Checked(s.x) + s.pad_lo + s.pad_hi - Checked(s.dilation) * (Checked(s.kernel) - 1) - 1).get();
  if (!span) return std::nullopt;
  return checked_add(floor_div(*span, s.stride), 1);
}

std::optional<int64_t> transposed_output_size(const WindowSizes& s, int64_t y, int64_t extra_lo,
                                              int64_t extra_hi) {
  return ((Checked(y) - 1) * s.stride - s.pad_lo - s.pad_hi + Checked(s.dilation) * (Checked(s.kernel) - 1) +
          1 + extra_lo + extra_hi)
      .get();
}

bool positions_fit(const Window& w) {
  // Twice the largest magnitude any of the functions below forms.
  const Checked reach = Checked(w.x) + Checked(w.y) * w.stride + Checked(w.kernel) * w.dilation +
                        (w.pad_lo < 0 ? Checked(0) - w.pad_lo : Checked(w.pad_lo)) + w.stride + w.dilation;
  return (reach * 2).get().has_value();
}

Range live_taps(const Window& w, int64_t output) {
  const int64_t start = output * w.stride - w.pad_lo;
  return clamp_range(ceil_div(-start, w.dilation), ceil_div(w.x - start, w.dilation), 0, w.kernel);
}

Range live_outputs(const Window& w, int64_t tap) {
  const int64_t shift = tap * w.dilation - w.pad_lo;
  return clamp_range(ceil_div(-shift, w.stride), ceil_div(w.x - shift, w.stride), 0, w.y);
}

std::optional<int64_t> output_reading(const Window& w, int64_t index, int64_t tap) {
  const int64_t scaled = index + w.pad_lo - tap * w.dilation;
  if (scaled < 0 || scaled % w.stride != 0) return std::nullopt;
  const int64_t output = scaled / w.stride;
  if (output >= w.y) return std::nullopt;
  return output;
}

ResidueTaps residue_taps(const Window& w, int64_t residue) {
  ResidueTaps taps{.spacing = w.stride / std::gcd(w.stride, w.dilation)};
  // output·stride = residue + pad − tap·dilation + i·stride has a solution for the taps of one class modulo
  // `spacing`.
  for (int64_t tap = 0; tap < std::min(w.kernel, taps.spacing); ++tap) {
    const int64_t numerator = residue + w.pad_lo - tap * w.dilation;
    if (numerator % w.stride != 0) continue;
    taps.first = tap;
    taps.count = ceil_div(w.kernel - tap, taps.spacing);
    taps.offset = numerator / w.stride;
    taps.step = taps.spacing * w.dilation / w.stride;
    break;
  }
  return taps;
}

std::optional<int64_t> pool_output_size(const PoolWindow& w, bool ceil_mode, bool corrected) {
  const auto span =
      (Checked(w.x) + Checked(2) * w.pad - w.kernel + (ceil_mode ? Checked(w.stride) - 1 : Checked(0))).get();
  if (!span) return std::nullopt;
  const auto size = checked_add(floor_div(*span, w.stride), 1);
  if (!size || !ceil_mode || !corrected) return size;
  const auto overhang = ((Checked(*size) - 1) * w.stride - w.x - w.pad).get();
  if (!overhang) return std::nullopt;
  return *overhang >= 0 ? *size - 1 : *size;
}

Range pooled_positions(const PoolWindow& w, int64_t output) {
  const int64_t start = output * w.stride - w.pad;
  return clamp_range(start, start + w.kernel, 0, w.x);
}

int64_t pooled_count(const PoolWindow& w, int64_t output, bool count_include_pad) {
  if (!count_include_pad) return pooled_positions(w, output).size();
  const int64_t start = output * w.stride - w.pad;
  return std::max<int64_t>(0, std::min(start + w.kernel, w.x + w.pad) - start);
}

Range outputs_pooling(const PoolWindow& w, int64_t index) {
  // output·stride − pad ≤ index < output·stride − pad + kernel
  return clamp_range(ceil_div(index + w.pad - w.kernel + 1, w.stride), floor_div(index + w.pad, w.stride) + 1,
                     0, w.y);
}

}  // namespace retrograd::problem
