// SPDX-License-Identifier: Apache-2.0
// How narrow_stem_weight.cu cuts its work, and for which windows it has kernels.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/few_channels/narrow.h"
#include "kernels/cuda/one_of.h"

namespace retrograd::kernels::cuda::stem_weight {

inline constexpr int kThreads = 128;
inline constexpr int kWarps = kThreads / 32;

struct Cut {
  int groups, x_channels, y_channels;  // channels of a group
  int xh, xw, yh, yw;
  int kw, stride_h, stride_w, pad_h, pad_w;
  int o_blocks, o_chunks,
      shares;  // 16 y channels each in a block; blocks along them; warps that share places
  int rows, width, row_tiles, column_tiles;
  int box_rows, pitch;  // of x, pixels; the pitch is even
  int filled;           // places of y, a multiple of 16
  int tiles, in_part;
  FastDiv by_width, by_pitch;
  bool last, whole;
  int64_t weights;
};

Cut cut_of(const Conv& conv, bool last, int kh, int pairs);
int64_t bytes_of(const Cut& p, int pairs);

// Calls function(rows of taps, pairs of taps) where there is a kernel.
template <class Function>
bool with_window(const Conv& conv, Function&& function) {
  const int64_t kh = conv.axes[1].kernel, kw = conv.axes[2].kernel;
  if (kh == 1 && kw * conv.x_channels <= 16 && conv.axes[1].dilation * conv.axes[2].dilation == 1)
    return function(Count<1>{}, Count<2>{}), true;
  if (conv.x_channels > 4 || conv.axes[2].stride % 2 != 0 ||
      conv.axes[1].dilation * conv.axes[2].dilation != 1)
    return false;
  if (kh == 7 && kw > 4 && kw <= 8) return function(Count<7>{}, Count<4>{}), true;
  if (kh == 3 && kw <= 4) return function(Count<3>{}, Count<2>{}), true;
  if (kh == 4 && kw <= 4) return function(Count<4>{}, Count<2>{}), true;
  return false;
}

}  // namespace retrograd::kernels::cuda::stem_weight
