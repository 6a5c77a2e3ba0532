// SPDX-License-Identifier: Apache-2.0
// What a warpgroup of f32_gather.cu has written, looked at again where it lies.
#pragma once

#include "kernels/cuda/dense/gather_tiles.cuh"
#include "kernels/cuda/dense/tile_repair.cuh"

namespace retrograd::kernels::cuda::f32 {

// As repair_tile asks for it.
struct Written {
  const gather::Product& p;
  uint32_t m0;  // of the first row
  int n0, rows, columns;

  struct Row {
    Index5 at;  // of column 0
    float* data;
    int64_t stride;
    int there;  // columns

    __device__ Index5 index(int column) const { return {at.n, at.c + column, at.d, at.h, at.w}; }
    __device__ bool is_nan(int column) const { return column < there && isnan(data[column * stride]); }
    __device__ bool is_settled(int column) const { return column < there && !isnan(data[column * stride]); }
    __device__ void store(int column, float sum) const { data[column * stride] = sum; }
  };
  __device__ Row row(int number) const {
    const gather::Residue& r = p.residues[0];
    const Place place = place_of(r, m0 + number);
    const Index5 at{place.n, n0, int64_t{place.at[0]} * p.result_step[0] + r.result_first[0],
                    int64_t{place.at[1]} * p.result_step[1] + r.result_first[1],
                    int64_t{place.at[2]} * p.result_step[2] + r.result_first[2]};
    return {at, static_cast<float*>(p.result.data) + offset_of(p.result, at), p.result.strides[1],
            m0 + number < r.places ? p.columns - n0 : 0};
  }
};

// Kept out of the kernel's registers.
template <class C>
__device__ __noinline__ void repair(const gather::Product& p, uint32_t m0, int n0, int columns) {
  repair_tile(p.conv, p.forward ? Result::kForward : Result::kGradInput, 0,
              are_split(p.conv, p.forward ? p.conv.x : p.conv.y, p.conv.w), true,
              static_cast<int>(threadIdx.x) / 32 % 4, 4, Written{p, m0, n0, C::kDown * 64, columns});
}

}  // namespace retrograd::kernels::cuda::f32
