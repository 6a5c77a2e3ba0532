// SPDX-License-Identifier: Apache-2.0
// The planes of a tensor, (n, c) with n outermost, as the lanes of vectors: blocks of lanes, and runs of
// their pixels read into strips [pixel][lane] of FP32 and written back, whatever the type and strides.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/cpu/depthwise/depthwise_lanes.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// How planes are cut into blocks of lanes. Blocks mix images, so that few channels fill vectors too; the
// channels of the lanes repeat every `period` blocks.
struct PlaneBlocks {
  int64_t lanes = 1;
  int64_t channels = 1;
  int64_t planes = 0;
  int64_t blocks = 0;
  int64_t period = 1;

  // Blocks with the same channels as block `first` < period.
  int64_t repeats(int64_t first) const { return (blocks - first + period - 1) / period; }
  // Lanes of a block that are planes; the others repeat the last one, so they compute the same and may be
  // written to the same place.
  int64_t used(int64_t block) const {
    return lanes < planes - block * lanes ? lanes : planes - block * lanes;
  }
};
PlaneBlocks cut_into_plane_blocks(int64_t batch, int64_t channels, int64_t lanes);

// What a task does for a block of lanes.
struct BlockWork {
  int64_t floats = 1;   // read and written
  int64_t kept = 1;     // floats that stay from one image to the next: packed weights, or sums
  int64_t vectors = 1;  // multiply-adds of a vector
};
int64_t plane_floats(const problem::ConvPass& pass);  // of a plane of x and one of y
// Neighbouring blocks of an image, and images, that make a task.
struct BlockTasks {
  int64_t neighbours = 1;
  int64_t columns = 1;  // pieces of `neighbours` blocks that an image has
  int64_t repeats = 1;
};
BlockTasks cut_into_block_tasks(const PlaneBlocks& blocks, const BlockWork& work);

// The planes of one block in memory.
struct LanePlanes {
  DType dtype = DType::kF32;
  OperandRounding rounding = OperandRounding::kNone;
  int64_t lanes = 0;
  int64_t element_bytes = 0;
  std::byte* base = nullptr;
  std::array<int64_t, kernels::cpu::kMostPlaneLanes> offsets{};  // elements; of each lane
  int64_t step = 0;  // from each offset to the next, where that is the same for all lanes; else 0
};
LanePlanes lane_planes(const problem::PassTensor& tensor, OperandRounding rounding, void* address,
                       int64_t lanes);

// Lane l is channel `channel_of(c)` of image n for plane (n, c) of the block.
template <class ChannelOf>
void place_lanes(LanePlanes& planes, const PlaneBlocks& blocks, int64_t block,
                 const problem::Strides5& strides, const ChannelOf& channel_of) {
  int64_t image = block * blocks.lanes / blocks.channels, channel = block * blocks.lanes % blocks.channels;
  const int64_t used = blocks.used(block);
  auto& at = planes.offsets;
  for (int64_t lane = 0; lane < used; channel = 0, ++image) {
    const int64_t end = std::min(used, lane + blocks.channels - channel);
    for (; lane < end; ++lane, ++channel)
      at[static_cast<size_t>(lane)] = image * strides[0] + channel_of(channel) * strides[1];
  }
  for (int64_t lane = used; lane < blocks.lanes; ++lane)
    at[static_cast<size_t>(lane)] = at[static_cast<size_t>(used) - 1];
  planes.step = blocks.lanes > 1 ? at[1] - at[0] : 0;
  bool equal = true;
  for (size_t lane = 2; lane < static_cast<size_t>(blocks.lanes); ++lane)
    equal &= at[lane] - at[lane - 1] == planes.step;
  if (!equal) planes.step = 0;
}

// Lane l is channel c / share.
inline void place_shared_lanes(LanePlanes& planes, const PlaneBlocks& blocks, int64_t block,
                               const problem::Strides5& strides, int64_t share) {
  if (share == 1) return place_lanes(planes, blocks, block, strides, [](int64_t channel) { return channel; });
  place_lanes(planes, blocks, block, strides, [&](int64_t channel) { return channel / share; });
}

// Floats that the functions below need to convert in.
int64_t lane_buffer_floats(int64_t lanes);
// out[i][l] = place `at` + i·stride of lane l, i < count; elements.
void load_lanes(const LanePlanes& planes, int64_t at, int64_t stride, int64_t count, float* buffer,
                float* out);
void store_lanes(const LanePlanes& planes, int64_t at, int64_t stride, int64_t count, float* buffer,
                 const float* in);

// Rows (d, h) × w of places, `rows` of them from `at` on and `width` wide: one run where they follow each
// other.
struct LaneRows {
  int64_t at = 0;
  int64_t row_stride = 0;
  int64_t stride = 1;
  int64_t rows = 0;
  int64_t width = 0;
};
void load_lane_rows(const LanePlanes& planes, const LaneRows& rows, float* buffer, float* out);
void store_lane_rows(const LanePlanes& planes, const LaneRows& rows, float* buffer, const float* in);

}  // namespace retrograd::engines::cpu
