// SPDX-License-Identifier: Apache-2.0
// The planes of a tensor, (n, c) with n outermost, as the lanes of vectors: blocks of lanes, and runs of
// their pixels read into strips [pixel][lane] of FP32 and written back, whatever the type and strides.
#pragma once

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
  std::byte* base = nullptr;
  std::array<int64_t, kernels::cpu::kMostPlaneLanes> offsets{};  // elements; of each lane
  int64_t step = 0;  // from each offset to the next, where that is the same for all lanes; else 0
};
LanePlanes lane_planes(const problem::PassTensor& tensor, OperandRounding rounding, void* address,
                       int64_t lanes);

// i / n, for a loop in which n is 1 nearly always.
inline int64_t one_of(int64_t i, int64_t n) { return n == 1 ? i : i / n; }
// Lane l is channel `channel_of(c)` of image n for plane (n, c) of the block.
template <class ChannelOf>
void place_lanes(LanePlanes& planes, const PlaneBlocks& blocks, int64_t block,
                 const problem::Strides5& strides, const ChannelOf& channel_of) {
  int64_t image = block * blocks.lanes / blocks.channels, channel = block * blocks.lanes % blocks.channels;
  const int64_t used = blocks.used(block);
  for (int64_t lane = 0; lane < blocks.lanes; ++lane) {
    planes.offsets[static_cast<size_t>(lane)] = image * strides[0] + channel_of(channel) * strides[1];
    if (lane + 1 >= used) continue;
    if (++channel == blocks.channels) {
      channel = 0;
      ++image;
    }
  }
  const auto& at = planes.offsets;
  planes.step = blocks.lanes > 1 ? at[1] - at[0] : 0;
  for (size_t lane = 2; lane < static_cast<size_t>(blocks.lanes); ++lane)
    if (at[lane] - at[lane - 1] != planes.step) planes.step = 0;
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
