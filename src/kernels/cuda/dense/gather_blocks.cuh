// SPDX-License-Identifier: Apache-2.0
// What every block of a gather product does around its sum: which tile it makes, where that tile's rows and
// columns lie, what becomes of its sums; and the kernel that adds parts (split-K), first to last.
#pragma once

#include "kernels/cuda/dense/gather_results.cuh"
#include "kernels/cuda/dense/gather_tiles.cuh"

namespace retrograd::kernels::cuda::gather {

// A tile of places by columns, in shared memory: where its rows begin in the source and in the result.
template <class C>
struct Tile {
  int4 rows[C::kM];
  int64_t row_offsets[C::kM], column_offsets[C::kN];
  int3 beyond[C::kN];
  float bias[C::kN];

  __device__ void describe(const Product& p, const Residue& r, uint32_t m0, int n0, int group) {
    for (int i = static_cast<int>(threadIdx.x); i < C::kM; i += C::kThreads) {
      const uint32_t m = m0 + i;
      const Place place = place_of(r, min(m, r.places - 1));
      int at[3];
      int64_t offset = place.n * p.result.strides[0];
#pragma unroll
      for (int a = 0; a < 3; ++a) {
        at[a] = place.at[a] * p.step[a] + r.first[a];
        offset += (int64_t{place.at[a]} * p.result_step[a] + r.result_first[a]) * p.result.strides[2 + a];
      }
      if (m >= r.places) at[2] = -(1 << 30);  // beyond every edge
      rows[i] = int4{place.n * p.source[0], at[0], at[1], at[2]};
      row_offsets[i] = offset;
    }
    const int64_t channel0 = int64_t{group} * (p.forward ? p.conv.y_channels : p.conv.x_channels);
    for (int i = static_cast<int>(threadIdx.x); i < C::kN; i += C::kThreads) {
      const ColumnPlace c = column_place(p, min(n0 + i, p.columns - 1));
      column_offsets[i] = (channel0 + c.channel) * p.result.strides[1] + c.beyond[0] * p.result.strides[2] +
                          c.beyond[1] * p.result.strides[3] + c.beyond[2] * p.result.strides[4];
      beyond[i] = {c.beyond[0], c.beyond[1], c.beyond[2]};
      bias[i] = bias_of(p.conv, channel0 + c.channel);
    }
  }
};

// Which tile a block makes. Blocks that read the same places are neighbours.
template <class C>
struct Corner {
  int residue, part, n0, group;
  uint32_t m0;
  __device__ Corner(const Product& p, int parts) {
    const uint32_t across = static_cast<uint32_t>((p.columns + C::kN - 1) / C::kN);
    residue = static_cast<int>(blockIdx.z) / parts;
    part = static_cast<int>(blockIdx.z) % parts;
    m0 = blockIdx.x / across * C::kM;
    n0 = static_cast<int>(blockIdx.x % across) * C::kN;
    group = static_cast<int>(blockIdx.y);
  }
};

template <class C>
using TileSums = float[C::kWarpM / 16][C::kWarpN / 8][4];

// From a tile's sums to the result, bias and repair included.
template <class C, class T = void>
__device__ void finish(const Product& p, const Residue& r, const Corner<C>& corner, const Tile<C>& tile,
                       const TileSums<C>& sums, unsigned char* shared) {
  const bool suspect = p.repair && __syncthreads_or(is_suspect(sums));
  auto* staged = reinterpret_cast<float*>(shared);
  const WarpCorner<C> warp;
  stage_sums<C>(p.by_columns, sums, p.conv.bias.data == nullptr ? nullptr : tile.bias, warp.row, warp.column,
                staged);
  __syncthreads();
  const TileResults<C> results{p,           r,      tile.rows, tile.row_offsets, tile.column_offsets,
                               tile.beyond, staged, corner.m0, corner.n0,        corner.group};
  results.template store<T>();
  if (suspect) {
    __syncthreads();
    results.repair();
  }
}

// The sums of this thread in a block's room, so that neighbouring threads have neighbouring words.
template <class C>
__device__ float* partial_sums(const Product& p, uint32_t z) {
  constexpr int64_t kFloats = int64_t{C::kM} * C::kN;
  return p.partial + ((int64_t{z} * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * kFloats + threadIdx.x;
}

template <class C>
__device__ void keep_part(const Product& p, const TileSums<C>& sums) {
  float* to = partial_sums<C>(p, blockIdx.z);
#pragma unroll
  for (int i = 0; i < C::kWarpM / 16; ++i)
#pragma unroll
    for (int j = 0; j < C::kWarpN / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e, to += C::kThreads) *to = sums[i][j][e];
}

// Adds up the parts of a tile, first to last.
template <class C>
static __global__ void __launch_bounds__(C::kThreads) parts_kernel(const __grid_constant__ Product p) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ Tile<C> tile;
  const Corner<C> corner(p, 1);
  const Residue& r = p.residues[corner.residue];
  if (corner.m0 >= r.places) return;
  tile.describe(p, r, corner.m0, corner.n0, corner.group);
  // Four parts are under way at once.
  constexpr int kSums = C::kWarpM / 16 * (C::kWarpN / 8) * 4, kTogether = 4;
  TileSums<C> sums = {};
  float* const all = &sums[0][0][0];
  for (int part = 0; part < p.parts; part += kTogether)
#pragma unroll
    for (int i = 0; i < kSums; i += 8) {
      float values[kTogether][8];
#pragma unroll
      for (int j = 0; j < kTogether; ++j)
#pragma unroll
        for (int e = 0; e < 8; ++e)
          values[j][e] = part + j < p.parts
                             ? partial_sums<C>(p, blockIdx.z * p.parts + part + j)[(i + e) * C::kThreads]
                             : 0.0f;
#pragma unroll
      for (int j = 0; j < kTogether; ++j)
#pragma unroll
        for (int e = 0; e < 8; ++e) all[i + e] += values[j][e];
    }
  __syncthreads();
  finish<C>(p, r, corner, tile, sums, shared);
}

// grid: of the products, a tile and a part a block.
template <class C>
static void add_parts(const Product& p, Extent grid, unsigned residues, Stream stream) {
  grid.size.z = residues;
  start(parts_kernel<C>, grid, C::kThreads, C::kFinishBytes, stream, p);
}

}  // namespace retrograd::kernels::cuda::gather
