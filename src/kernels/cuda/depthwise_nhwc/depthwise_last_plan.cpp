// SPDX-License-Identifier: Apache-2.0
// Which kernel, and how many parts.
#include "kernels/cuda/depthwise_nhwc/depthwise_last_plan.h"

#include <algorithm>

#include "kernels/cuda/depthwise_nhwc/depthwise_boxes.h"
#include "kernels/cuda/depthwise_nhwc/depthwise_last.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kBandRows = 16, kStridedBandRows = 14, kLongBandRows = 56;
constexpr int kMostLanes = 64;

int rows_of(const Conv& conv) {
  return conv.axes[2].stride == 2 ? kStridedBandRows : conv.axes[2].kernel == 7 ? kLongBandRows : kBandRows;
}

bool is_boxes(const Conv& conv) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  const auto filled = [](int64_t size) {
    return size * 10 >= (size + kBoxWidth - 1) / kBoxWidth * kBoxWidth * 8;
  };
  return (conv.x.dtype == DType::kF16 || conv.x.dtype == DType::kBF16) && w.kernel >= 5 && h.stride == 1 &&
         w.stride == 1 && h.x == h.y && w.x == w.y && conv.groups % 8 == 0 && filled(h.x) && filled(w.x);
}

}  // namespace

const char* name_of(LastKernel kernel) {
  switch (kernel) {
    case LastKernel::kBoxes:
      return "boxes";
    case LastKernel::kPairs:
      return "pairs";
    case LastKernel::kDirect:
      break;
  }
  return "direct";
}

LastKernel last_kernel(const Conv& conv, int alignment) {
  if (alignment < 2 * static_cast<int>(size_of(conv.x.dtype))) return LastKernel::kDirect;
  return is_boxes(conv) && alignment >= 16 ? LastKernel::kBoxes : LastKernel::kPairs;
}

Boxes boxes_of(const Conv& conv) {
  Boxes p;
  p.channels = static_cast<int>(conv.groups);
  p.height = static_cast<int>(conv.axes[1].x);
  p.width = static_cast<int>(conv.axes[2].x);
  const int64_t across = (p.width + kBoxWidth - 1) / kBoxWidth, down = (p.height + kBoxWidth - 1) / kBoxWidth;
  p.boxes = static_cast<uint32_t>(conv.batch * across * down);
  p.columns = FastDiv(across);
  p.bands = FastDiv(down);
  return p;
}

int64_t box_blocks(const Boxes& p, int64_t at_once) {
  const int64_t channel_blocks = (p.channels + kBoxChannels - 1) / kBoxChannels;
  const int64_t wanted = at_once / channel_blocks > 0 ? at_once / channel_blocks : 1;
  const int64_t rounds = (p.boxes + wanted - 1) / wanted;
  return (p.boxes + rounds - 1) / rounds;
}

LastBlocks last_blocks(const Conv& conv, int threads, int vector, int64_t columns, int64_t bands) {
  LastBlocks p;
  const int lanes = static_cast<int>(conv.groups / vector);
  p.channels = static_cast<int>(conv.groups);
  p.channel_blocks = (lanes + kMostLanes - 1) / kMostLanes;
  p.lanes = (lanes + p.channel_blocks - 1) / p.channel_blocks;
  p.strips = threads / p.lanes;
  p.tiles = static_cast<uint32_t>(conv.batch * columns * bands);
  p.columns = FastDiv(columns);
  p.bands = FastDiv(bands);
  p.xh = static_cast<int>(conv.axes[1].x);
  p.xw = static_cast<int>(conv.axes[2].x);
  p.yh = static_cast<int>(conv.axes[1].y);
  p.yw = static_cast<int>(conv.axes[2].y);
  return p;
}

// So that there are enough threads, and each walks far enough to make up for the rows above its first.
LastCut last_cut(const Conv& conv, int columns, int vector) {
  constexpr int64_t kWantedBlocks = 1056;
  const int rows = rows_of(conv);
  const int64_t height = conv.axes[1].y, bands = (height + rows - 1) / rows;
  LastCut c;
  c.band_rows = static_cast<int>((height + bands - 1) / bands);
  c.blocks = last_blocks(conv, kLastWeightThreads, vector, (conv.axes[2].y + columns - 1) / columns,
                         (height + c.band_rows - 1) / c.band_rows);
  const auto strips = static_cast<uint32_t>(c.blocks.strips);
  const int64_t most = (c.blocks.tiles + strips - 1) / strips;
  c.parts = (kWantedBlocks + c.blocks.channel_blocks - 1) / c.blocks.channel_blocks;
  if (c.parts > most) c.parts = most;
  return c;
}

int64_t depthwise_boxes_parts(const Conv& conv) { return box_blocks(boxes_of(conv), boxes_at_once(conv)); }

int64_t depthwise_last_parts(const Conv& conv, LastKernel kernel) {
  if (kernel == LastKernel::kDirect) return 0;
  if (kernel == LastKernel::kBoxes) return depthwise_boxes_parts(conv);
  const int kernel_size = static_cast<int>(conv.axes[2].kernel),
            stride = static_cast<int>(conv.axes[2].stride);
  const auto parts = [&](int vector) {
    return last_cut(conv, columns_of(kernel_size, stride, vector), vector).parts;
  };
  const int64_t narrow = parts(narrow_vector(kernel_size, stride));
  // Addresses, which are not known yet, may forbid wide vectors.
  const int64_t wide = may_be_wide(kernel_size, stride) && conv.groups % 4 == 0 ? parts(4) : 0;
  return std::max(narrow, wide);
}

}  // namespace retrograd::kernels::cuda
