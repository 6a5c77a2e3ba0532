// SPDX-License-Identifier: Apache-2.0
// y[p] = Σ_{q in window p} x[q] / divisor(p), the pixels of a window shared by threads.
//
//   whole    row-major planes, each one window: 8 or 32 lanes or a block add a plane, 16 bytes at a time.
//            Lane i takes vectors i, i + lanes, …; lanes are added in a tree.
//   shared   channels last: a block makes one result of some vectors of channels. Its threads share the
//            places of the window; their sums are added in a tree.
// Long windows of few results are cut into parts, which are summed like windows, and their sums again.
// Bytes: x once, y once.
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pooling/pool_elements.cuh"
#include "kernels/cuda/pooling/pool_kernels.h"
#include "kernels/cuda/pooling/pool_shares.h"
#include "kernels/cuda/pooling/pool_windows.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// ---- whole

struct Whole {
  uint32_t planes, places, parts, part;  // parts of a plane, and their places
  bool aligned;                          // vectors are
  float scale;
};

template <class In, class Out, int kLanes>
__global__ void __launch_bounds__(kThreads)
    whole_kernel(Whole p, const In* __restrict__ x, Out* __restrict__ y) {
  const uint32_t run = blockIdx.x * (kThreads / kLanes) + threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const uint32_t plane = run / p.parts;
  float sum = 0;
  if (plane < p.planes) {
    const uint32_t begin = plane * p.places + (run - plane * p.parts) * p.part;
    const uint32_t end = min(begin + p.part, (plane + 1) * p.places);
    sum = p.aligned ? add_run<PoolElements<In>, true>(x, begin, end, lane, kLanes)
                    : add_run<PoolElements<In>, false>(x, begin, end, lane, kLanes);
  }
  if constexpr (kLanes == kThreads) {
    sum = block_sum<kThreads>(sum);
  } else {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  }
  if (lane == 0 && plane < p.planes) y[run] = from_float<Out>(fmaf(sum, p.scale, 0.0f));
}

template <int kLanes, class In, class Out>
void launch_lanes(const Whole& p, const In* x, Out* y, Stream stream) {
  constexpr uint32_t kRuns = kThreads / kLanes;
  start(whole_kernel<In, Out, kLanes>, (p.planes * p.parts + kRuns - 1) / kRuns, kThreads, 0, stream, p, x,
        y);
}

template <class T>
void launch_whole(const Pool& pool, float* sums, Stream stream) {
  const WholePlanes whole = whole_planes(pool);
  const auto* x = static_cast<const T*>(pool.x.data);
  auto* y = static_cast<T*>(pool.y.data);
  const auto planes = static_cast<uint32_t>(whole.planes), places = static_cast<uint32_t>(whole.places),
             parts = static_cast<uint32_t>(whole.parts.count);
  Whole p{planes, places, parts, static_cast<uint32_t>(whole.parts.places), is_aligned(x, 16), whole.scale};
  if (parts > 1) {
    p.scale = 1;
    launch_lanes<kThreads>(p, x, sums, stream);
    return launch_lanes<32>(Whole{planes, parts, 1, parts, is_aligned(sums, 16), whole.scale}, sums, y,
                            stream);
  }
  if (whole.lanes == 8) return launch_lanes<8>(p, x, y, stream);
  if (whole.lanes == 32) return launch_lanes<32>(p, x, y, stream);
  launch_lanes<kThreads>(p, x, y, stream);
}

// ---- shared

struct Shared {
  Windows windows;
  int64_t channels;
  uint32_t lanes, part;                          // channels of a block, in vectors; places of a part
  FastDiv blocks, parts, columns, rows, depths;  // blocks: of a part
};

// The sums of threads with the same lane, in the first of them, which it is told of: a tree.
template <int kV>
__device__ bool add_shares(uint32_t lanes, float (&sums)[kV]) {
  __shared__ float shares[kThreads][kV + 1];  // lanes begin in different banks
  for (uint32_t half = kThreads / 2; half >= lanes; half /= 2) {
    if (threadIdx.x >= half && threadIdx.x < 2 * half)
#pragma unroll
      for (int v = 0; v < kV; ++v) shares[threadIdx.x][v] = sums[v];
    __syncthreads();
    if (threadIdx.x < half)
#pragma unroll
      for (int v = 0; v < kV; ++v) sums[v] += shares[threadIdx.x + half][v];
  }
  return threadIdx.x < lanes;
}

// kPart: y is the sums of parts.
template <class T, int kV, bool kPart>
__global__ void __launch_bounds__(kThreads)
    shared_kernel(const __grid_constant__ Shared p, const T* __restrict__ x,
                  std::conditional_t<kPart, float, T>* __restrict__ y) {
  const uint32_t lane = threadIdx.x & (p.lanes - 1), share = threadIdx.x / p.lanes;
  uint32_t block = blockIdx.x;
  const uint32_t run = p.blocks.split(block);
  uint32_t part = run;
  uint32_t ow = kPart ? p.parts.split(part) : run;
  uint32_t oh = p.columns.split(ow);
  uint32_t od = p.rows.split(oh);
  const int64_t image = p.depths.split(od);
  const auto& [ad, ah, aw] = p.windows.axes;
  const int64_t channel = (static_cast<int64_t>(block) * p.lanes + lane) * kV;
  const bool live = channel < p.channels;
  const WindowPlaces places =
      places_in(p.windows, static_cast<int>(od), static_cast<int>(oh), static_cast<int>(ow));
  const uint32_t begin = kPart ? part * p.part : 0;
  const uint32_t end = kPart ? min(begin + p.part, places.count) : places.count;
  const T* const source = x + image * ad.x * ah.x * aw.x * p.channels + channel;
  float sums[kV] = {};
  if (live)
    add_window<PoolElements<T>, kV>(source, p.channels, begin + share, kThreads / p.lanes, end, places, sums);
  if (!add_shares(p.lanes, sums) || !live) return;
  if constexpr (!kPart)
    average(p.windows, static_cast<int>(od), static_cast<int>(oh), static_cast<int>(ow), sums);
  store_pack<std::conditional_t<kPart, float, T>, kV>(y + static_cast<int64_t>(run) * p.channels + channel,
                                                      sums);
}

// A channel a lane.
template <class T>
__global__ void __launch_bounds__(kThreads)
    shared_parts_kernel(const __grid_constant__ Shared p, const float* __restrict__ parts,
                        T* __restrict__ y) {
  const uint32_t lane = threadIdx.x & (p.lanes - 1), share = threadIdx.x / p.lanes;
  uint32_t block = blockIdx.x;
  const int64_t place = p.blocks.split(block);
  const int64_t channel = static_cast<int64_t>(block) * p.lanes + lane;
  const bool live = channel < p.channels;
  const auto at = [](uint32_t part) { return part; };
  float sums[1] = {};
  if (live)
    add_places<PoolElements<float>, 1>(parts + place * p.parts.divisor * p.channels + channel, p.channels,
                                       share, kThreads / p.lanes, p.parts.divisor, at, sums);
  if (!add_shares(p.lanes, sums) || !live) return;
  uint32_t ow = static_cast<uint32_t>(place);
  uint32_t oh = p.columns.split(ow);
  uint32_t od = p.rows.split(oh);
  p.depths.split(od);
  average(p.windows, static_cast<int>(od), static_cast<int>(oh), static_cast<int>(ow), sums);
  y[place * p.channels + channel] = from_float<T>(sums[0]);
}

template <class T, int kV>
void launch_shared(const Pool& pool, float* sums, Stream stream) {
  const auto& [d, h, w] = pool.axes;
  const SharedCut cut = shared_cut(pool);
  const int64_t places = pool.batch * d.y * h.y * w.y;
  const auto grid = [&](int64_t vectors, int64_t lanes, Shared& p) {
    const int64_t blocks = (vectors + lanes - 1) / lanes;
    p.lanes = static_cast<uint32_t>(lanes);
    p.blocks = FastDiv(blocks);
    return static_cast<unsigned>(blocks * places);
  };
  Shared p;
  p.windows = windows_of(pool);
  p.channels = pool.channels;
  p.part = static_cast<uint32_t>(cut.parts.places);
  p.parts = FastDiv(cut.parts.count);
  p.columns = FastDiv(w.y);
  p.rows = FastDiv(h.y);
  p.depths = FastDiv(d.y);
  const auto* x = static_cast<const T*>(pool.x.data);
  auto* y = static_cast<T*>(pool.y.data);
  const unsigned blocks = grid(pool.channels / kV, cut.lanes, p);
  if (cut.parts.count == 1) return start(shared_kernel<T, kV, false>, blocks, kThreads, 0, stream, p, x, y);
  start(shared_kernel<T, kV, true>, blocks * static_cast<unsigned>(cut.parts.count), kThreads, 0, stream, p,
        x, sums);
  constexpr int64_t kFewLanes = 8;  // there may be many parts, and there are few channels
  const unsigned few = grid(pool.channels, kFewLanes, p);
  start(shared_parts_kernel<T>, few, kThreads, 0, stream, p, sums, y);
}

}  // namespace

void pool_whole(const Pool& pool, float* sums, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) { launch_whole<decltype(type)>(pool, sums, stream); });
}

void pool_shared(const Pool& pool, int vector, float* sums, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int kWide = 16 / sizeof(T);
    vector == kWide ? launch_shared<T, kWide>(pool, sums, stream) : launch_shared<T, 1>(pool, sums, stream);
  });
}

}  // namespace retrograd::kernels::cuda
