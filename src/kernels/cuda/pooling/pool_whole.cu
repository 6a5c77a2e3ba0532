// SPDX-License-Identifier: Apache-2.0
// y[p] = Σ_{q in window p} x[q] / divisor(p), the places of a window shared by threads.
//
//   whole    row-major planes, each one window: 8 or 32 lanes or a block add a plane, 16 bytes at a time
//   where
//            planes are whole vectors. Lane i takes vectors i, i + lanes, …; lanes are added in a tree.
//   shared   channels last: a block makes one result of 32 vectors of channels. Warp i takes the places i,
//            i + 8, … of the window; the eight sums are added in order.
// Bytes: x once, y once.
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pooling/pool_whole.h"
#include "kernels/cuda/pooling/pool_windows.cuh"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// ---- whole

struct Whole {
  uint32_t planes, places;
  bool aligned;  // vectors are
  float scale;
};

template <class T, int kWide, bool kPacked>
__device__ float sum_run(const T* run, uint32_t places, uint32_t first, uint32_t step) {
  float sum = 0;
#pragma unroll 4
  for (uint32_t i = first * kWide; i < places; i += step * kWide) {
    float values[kWide];
    if constexpr (kPacked) {
      load_pack<T, kWide>(run + i, values);
    } else {
#pragma unroll
      for (int j = 0; j < kWide; ++j) values[j] = to_float(run[i + j]);
    }
#pragma unroll
    for (int j = 1; j < kWide; ++j) values[0] += values[j];
    sum += values[0];
  }
  return sum;
}

template <class T, int kWide, int kLanes>
__global__ void __launch_bounds__(kThreads)
    whole_kernel(Whole p, const T* __restrict__ x, T* __restrict__ y) {
  const uint32_t plane = blockIdx.x * (kThreads / kLanes) + threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  float sum = 0;
  if (plane < p.planes) {
    const T* const run = x + static_cast<int64_t>(plane) * p.places;
    sum = p.aligned ? sum_run<T, kWide, true>(run, p.places, lane, kLanes)
                    : sum_run<T, kWide, false>(run, p.places, lane, kLanes);
  }
  if constexpr (kLanes == kThreads) {
    sum = block_sum<kThreads>(sum);
  } else {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  }
  if (lane == 0 && plane < p.planes) y[plane] = from_float<T>(fmaf(sum, p.scale, 0.0f));
}

template <class T, int kWide, int kLanes>
void launch_lanes(const Whole& p, const T* x, T* y, Stream stream) {
  constexpr uint32_t kPlanes = kThreads / kLanes;
  whole_kernel<T, kWide, kLanes><<<(p.planes + kPlanes - 1) / kPlanes, kThreads, 0, stream>>>(p, x, y);
}

template <class T, int kWide>
void launch_whole(const Pool& pool, Stream stream) {
  const WholePlanes whole = whole_planes(pool);
  const auto* x = static_cast<const T*>(pool.x.data);
  auto* y = static_cast<T*>(pool.y.data);
  const Whole p{static_cast<uint32_t>(whole.planes), static_cast<uint32_t>(whole.places),
                is_aligned(x, kWide * sizeof(T)), whole.scale};
  if (whole.lanes == 8) return launch_lanes<T, kWide, 8>(p, x, y, stream);
  if (whole.lanes == 32) return launch_lanes<T, kWide, 32>(p, x, y, stream);
  launch_lanes<T, kWide, 256>(p, x, y, stream);
}

// ---- shared

constexpr int kShares = kThreads / 32;

struct Shared {
  Windows windows;
  int64_t channels;
  FastDiv blocks, columns, rows, depths;  // blocks: of 32 vectors, of a place
};

template <class T, int kV>
__global__ void __launch_bounds__(kThreads)
    shared_kernel(const __grid_constant__ Shared p, const T* __restrict__ x, T* __restrict__ y) {
  __shared__ float parts[kShares][32][kV + 1];  // lanes begin in different banks
  const uint32_t lane = threadIdx.x % 32, share = threadIdx.x / 32;
  uint32_t block = blockIdx.x;
  const int64_t place = p.blocks.split(block);
  uint32_t ow = static_cast<uint32_t>(place);
  uint32_t oh = p.columns.split(ow);
  uint32_t od = p.rows.split(oh);
  const int64_t image = p.depths.split(od);
  const auto& [ad, ah, aw] = p.windows.axes;
  const int64_t channel = (static_cast<int64_t>(block) * 32 + lane) * kV;
  const bool live = channel < p.channels;
  const Places depths = places_of(ad, static_cast<int>(od)), rows = places_of(ah, static_cast<int>(oh)),
               columns = places_of(aw, static_cast<int>(ow));
  const int deep = max(depths.end - depths.begin, 0);
  const auto high = static_cast<uint32_t>(max(rows.end - rows.begin, 1)),
             wide = static_cast<uint32_t>(max(columns.end - columns.begin, 1));
  const bool empty = rows.end <= rows.begin || columns.end <= columns.begin;
  const uint32_t count = empty || !live ? 0 : static_cast<uint32_t>(deep) * high * wide;
  const T* const source = x + image * ad.x * ah.x * aw.x * p.channels + channel;
  float sums[kV] = {};
#pragma unroll 4
  for (uint32_t i = share; i < count; i += kShares) {
    const uint32_t row = i / wide, z = row / high;
    const int64_t at = (static_cast<int64_t>(depths.begin + static_cast<int>(z)) * ah.x + rows.begin +
                        static_cast<int>(row - z * high)) *
                           aw.x +
                       columns.begin + static_cast<int>(i - row * wide);
    float values[kV];
    load_pack<T, kV>(source + at * p.channels, values);
#pragma unroll
    for (int v = 0; v < kV; ++v) sums[v] += values[v];
  }
#pragma unroll
  for (int v = 0; v < kV; ++v) parts[share][lane][v] = sums[v];
  __syncthreads();
  if (share != 0 || !live) return;
#pragma unroll
  for (int s = 1; s < kShares; ++s)
#pragma unroll
    for (int v = 0; v < kV; ++v) sums[v] += parts[s][lane][v];
  average(p.windows, static_cast<int>(od), static_cast<int>(oh), static_cast<int>(ow), sums);
  store_pack<T, kV>(y + place * p.channels + channel, sums);
}

template <class T, int kV>
void launch_shared(const Pool& pool, Stream stream) {
  const auto& [d, h, w] = pool.axes;
  const int64_t blocks = (pool.channels / kV + 31) / 32;
  Shared p;
  p.windows = windows_of(pool);
  p.channels = pool.channels;
  p.blocks = FastDiv(blocks);
  p.columns = FastDiv(w.y);
  p.rows = FastDiv(h.y);
  p.depths = FastDiv(d.y);
  shared_kernel<T, kV><<<static_cast<unsigned>(blocks * pool.batch * d.y * h.y * w.y), kThreads, 0, stream>>>(
      p, static_cast<const T*>(pool.x.data), static_cast<T*>(pool.y.data));
}

}  // namespace

void pool_whole(const Pool& pool, Stream stream) {
  const int64_t places = whole_planes(pool).places;
  with_type(pool.x.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int kWide = 16 / sizeof(T);
    places % kWide == 0 ? launch_whole<T, kWide>(pool, stream) : launch_whole<T, 1>(pool, stream);
  });
}

void pool_shared(const Pool& pool, int vector, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int kWide = 16 / sizeof(T);
    vector == kWide ? launch_shared<T, kWide>(pool, stream) : launch_shared<T, 1>(pool, stream);
  });
}

}  // namespace retrograd::kernels::cuda
