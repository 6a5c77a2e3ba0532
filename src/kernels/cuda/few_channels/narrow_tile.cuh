// SPDX-License-Identifier: Apache-2.0
// Boxes of a few FP32 channels copied into shared memory as planes, with zeros beyond the tensor's edge.
// Copies go past the registers (cp.async), all of a box at once; other blocks compute meanwhile.
//
// Rows of both layouts look the same there: [channel][row][column], whole 16-byte chunks a row and an odd
// number of them, so that neighbouring rows begin in different banks.
#pragma once

#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/few_channels/narrow_shapes.h"

namespace retrograd::kernels::cuda {

// A tensor's image, from its first channel on: height x width, `all` channels in the tensor.
struct Image {
  const float* data;
  int all, height, width;
};

__device__ inline void copy_float(float* target, const Image& image, int64_t offset, int row, int column) {
  const bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(image.height) &&
                      static_cast<unsigned>(column) < static_cast<unsigned>(image.width);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(target)),
               "l"(image.data + (inside ? offset : 0)), "r"(inside ? 4 : 0));
}

// Row-major planes: neighbouring threads take neighbouring columns, kEach of a row.
template <int kLines, int kEach>
__device__ void stage_planes(float* tile, const Box& box, const Image& image, int row0, int column0) {
  const int lane = static_cast<int>(threadIdx.x) % box.lanes, step = static_cast<int>(blockDim.x) / box.lanes;
  int row = static_cast<int>(threadIdx.x) / box.lanes, channel = 0;
  while (row >= box.rows) row -= box.rows, ++channel;
  while (channel < box.channels) {
#pragma unroll
    for (int j = 0; j < kLines; ++j) {
      const int64_t line = (int64_t{channel} * image.height + row0 + row) * image.width + column0;
      float* const target = tile + channel * box.plane + row * box.pitch;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int column = lane + i * box.lanes;
        if (channel < box.channels && column < box.columns)
          copy_float(target + column, image, line + column, row0 + row, column0 + column);
      }
      row += step;
      while (row >= box.rows) row -= box.rows, ++channel;
    }
  }
}

// Channels last: neighbouring threads take neighbouring channels, then columns.
__device__ inline void stage_channels_last(float* tile, const Box& box, const Image& image, int row0,
                                           int column0) {
  const int warp = static_cast<int>(threadIdx.x) / 32, warps = static_cast<int>(blockDim.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int column_step = 32 / box.channels, channel_step = 32 % box.channels;
  const int first_channel = lane % box.channels, first_column = lane / box.channels;
  for (int row = warp; row < box.rows; row += warps) {
    const int64_t line = (int64_t{row0} + row) * image.width + column0;
    float* const target = tile + row * box.pitch;
    int column = first_column, channel = first_channel;
#pragma unroll 8
    while (column < box.columns) {
      const int gap = box.group_gap != 0 ? channel / box.in_group * box.group_gap : 0;
      copy_float(target + channel * box.plane + gap + column, image, (line + column) * image.all + channel,
                 row0 + row, column0 + column);
      column += column_step;
      channel += channel_step;
      if (channel >= box.channels) channel -= box.channels, ++column;
    }
  }
}

template <bool kLast>
__device__ void stage(float* tile, const Box& box, const Image& image, int row0, int column0) {
  if constexpr (kLast) return stage_channels_last(tile, box, image, row0, column0);
  const int trips = (box.columns + box.lanes - 1) / box.lanes;
  if (trips == 1) return stage_planes<4, 1>(tile, box, image, row0, column0);
  if (trips == 2) return stage_planes<4, 2>(tile, box, image, row0, column0);
  if (trips <= 4) return stage_planes<2, 4>(tile, box, image, row0, column0);
  for (int first = 0; first < box.columns; first += 8 * box.lanes) {
    Box now = box;
    now.columns = min(box.columns - first, 8 * box.lanes);
    stage_planes<1, 8>(tile + first, now, image, row0, column0 + first);
  }
}

template <int kChunks>
__device__ void load_chunks(const float* address, float* values) {
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const float4 v = reinterpret_cast<const float4*>(address)[i];
    values[4 * i] = v.x, values[4 * i + 1] = v.y, values[4 * i + 2] = v.z, values[4 * i + 3] = v.w;
  }
}

}  // namespace retrograd::kernels::cuda
