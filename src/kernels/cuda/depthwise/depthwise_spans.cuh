// SPDX-License-Identifier: Apache-2.0
// Lines cut into groups of eight places, 16 bytes each. A tile is sixteen groups: the rows of a matrix whose
// columns are a window around each group.
#pragma once

#include "kernels/cuda/dense/tile_mma.cuh"

namespace retrograd::kernels::cuda {

constexpr int kSpanGroups = 16;

// Groups before a group where its window starts, so that `offset` places before it are in the window.
__host__ __device__ constexpr int span_reach(int offset) {
  return (offset >= 0 ? offset + 7 : offset) / 8;  // rounded up
}
// Fragments of sixteen places that a window takes.
__host__ __device__ constexpr int span_steps(int taps, int offset) {
  return (span_reach(offset) * 8 - offset + 7 + taps + 15) / 16;
}
// Groups that the windows of a piece's tiles reach.
__host__ __device__ constexpr int span_reached(int tiles, int steps) {
  return tiles * kSpanGroups + 2 * steps - 1;
}

// Groups begin, begin + 1, … of a line of so many, zeros where there are none.
template <class T>
__device__ void start_groups(uint32_t target, int count, const T* line, int begin, int groups, int lane) {
  for (int i = lane; i < count; i += 32) {
    const bool there = static_cast<unsigned>(begin + i) < static_cast<unsigned>(groups);
    copy_chunk(target + i * 16, there ? line + (begin + i) * 8 : line, there);
  }
}

}  // namespace retrograd::kernels::cuda
