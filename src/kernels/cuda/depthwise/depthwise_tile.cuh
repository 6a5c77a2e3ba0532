// SPDX-License-Identifier: Apache-2.0
// A box of a plane in shared memory as FP32, with zeros around the plane.
#pragma once

#include "kernels/cuda/elements.cuh"

namespace retrograd::kernels::cuda {

// From a row to the next: a whole number of 16-byte chunks that is 1 modulo 8, so that the same columns of
// eight rows lie in different banks.
__host__ __device__ constexpr int tile_pitch(int width) {
  const int chunks = (width + 3) / 4;
  return (chunks + (9 - chunks % 8) % 8) * 4;
}

template <class T>
__device__ void load_tile(float* tile, int pitch, int rows, int columns, const T* plane, int height,
                          int width, int row0, int column0) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += static_cast<int>(blockDim.x)) {
    const int r = i / columns, c = i - r * columns;
    const int h = row0 + r, w = column0 + c;
    const bool inside = static_cast<unsigned>(h) < static_cast<unsigned>(height) &&
                        static_cast<unsigned>(w) < static_cast<unsigned>(width);
    tile[r * pitch + c] = inside ? to_float(plane[static_cast<int64_t>(h) * width + w]) : 0.0f;
  }
}

__device__ inline void load_four(const float* address, float* values) {
  const float4 v = *reinterpret_cast<const float4*>(address);
  values[0] = v.x, values[1] = v.y, values[2] = v.z, values[3] = v.w;
}

}  // namespace retrograd::kernels::cuda
