// SPDX-License-Identifier: Apache-2.0
// The sliding window along one axis: the output-size formula and all its inverses, written here and nowhere
// else.
//
//   position(o, t) = o·stride − pad_lo + t·dilation        the place in x that tap t of output o reads
//   outputs        = ⌊(x + pad_lo + pad_hi − dilation·(kernel − 1) − 1) / stride⌋ + 1
//
// x is the wide side (a plain convolution's input), y the strided side (its output).
#pragma once

#include <cstdint>
#include <optional>

namespace retrograd::problem {

struct Range {  // [begin, end), never end < begin
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

struct Window {
  int64_t x = 1;
  int64_t y = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_lo = 0;  // negative: the window starts inside x (output padding in front of a transposed one)
};

struct WindowSizes {
  int64_t x, kernel, stride, dilation, pad_lo, pad_hi;
};
// Exactly the formula above, rounded towards minus infinity: 0 or less when the kernel does not fit.
// nullopt when 64 bits do not hold it.
std::optional<int64_t> output_size(const WindowSizes& sizes);
// The x that a transposed convolution of y steps produces: (y − 1)·stride − pads + dilation·(kernel − 1) + 1
// + extras.
std::optional<int64_t> transposed_output_size(const WindowSizes& sizes, int64_t y, int64_t extra_lo,
                                              int64_t extra_hi);
// Every position(o, t) of the window fits in 64 bits with room to spare. Problems are refused otherwise, so
// that the functions below need no checks.
bool positions_fit(const Window& window);

inline int64_t position(const Window& w, int64_t output, int64_t tap) {
  return output * w.stride - w.pad_lo + tap * w.dilation;
}
// Taps of one output that read inside x.
Range live_taps(const Window& window, int64_t output);
// Outputs whose tap `tap` reads inside x.
Range live_outputs(const Window& window, int64_t tap);
// The output whose tap `tap` reads x[index], if there is one.
std::optional<int64_t> output_reading(const Window& window, int64_t index, int64_t tap);
// The taps that read the places residue + stride·i of x, for 0 ≤ residue < stride. They are evenly spaced:
// the k-th of `count` is tap first + k·spacing, and output i + offset − k·step reads through it.
struct ResidueTaps {
  int64_t count = 0, first = 0, spacing = 1, offset = 0, step = 0;
};
ResidueTaps residue_taps(const Window& window, int64_t residue);

// Average pooling: no dilation, ceil mode, and a divisor that depends on the place.
struct PoolWindow {
  int64_t x = 1;
  int64_t y = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t pad = 0;
};
// ⌊(x + 2·pad − kernel + (ceil ? stride − 1 : 0)) / stride⌋ + 1; `corrected` drops a last window that would
// start at or beyond x + pad. nullopt when 64 bits do not hold it.
std::optional<int64_t> pool_output_size(const PoolWindow& window, bool ceil_mode, bool corrected);
// The places of x that window `output` averages.
Range pooled_positions(const PoolWindow& window, int64_t output);
// How many places it counts: those up to x + pad (padding counted), or those inside x only.
int64_t pooled_count(const PoolWindow& window, int64_t output, bool count_include_pad);
// Outputs whose window holds x[index].
Range outputs_pooling(const PoolWindow& window, int64_t index);

}  // namespace retrograd::problem
