// SPDX-License-Identifier: Apache-2.0
// forward     y[n,o,p] = Σ_{i,t} x[n,i,position(p,t)] · w[o,i,t]
// grad_input  x[n,i,q] = Σ_{o,t} y[n,o,output_reading(q,t)] · w[o,i,t]
//
// staged_plan.h says how it is cut. Bytes: each row of the source is copied once a block, and blocks share
// only the rows of a window. Reads of shared memory for 3x3: 13 for 24 products of eight results, 9 for 48
// with four channels a group; neighbouring threads read neighbouring elements, whatever the dilation.
//
// Taps beyond the edge along D and W are left out. Rows beyond the edge are zeros, which products may meet
// as long as the block's weights are finite; otherwise the rows of every product are looked at.
#include "kernels/cuda/depthwise_windows/staged.cuh"
#include "kernels/cuda/depthwise_windows/staged_plan.h"
#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/launch.cuh"

namespace retrograd::kernels::cuda {
namespace {

// Whether all are finite.
template <class T>
__device__ bool stage_weights(const Staged& p, const StagedBlock& b, const T* weights, float* shared) {
  bool finite = true;
  const int count = b.planes * p.sources * p.taps * p.results_at_once;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kStagedThreads) {
    const StagedWeight weight = staged_weight(p, b, i);
    const float value = weight.live ? to_float(weights[weight.from]) : 0.0f;
    finite = finite && isfinite(value);
    shared[i] = value;
  }
  return finite;
}

template <int kV, int kM, bool kGuard, class T>
__device__ void make_results(const Conv& conv, const Staged& p, const StagedBlock& b, const float* weights,
                             const T* tile, int phase, T* result) {
  constexpr int kMask = 16 / static_cast<int>(sizeof(T)) - 1;
  const auto load = [](const T* address) { return to_float(*address); };
  for (uint32_t i = threadIdx.x; i < p.items; i += kStagedThreads) {
    const StagedItem item = staged_item<kV>(p, b, i);
    if (!item.there) continue;
    float sums[kV][kM] = {};
    gather_staged<kV, kM, kGuard>(p, b, item, tile, weights, phase, kMask, load, sums);
    auto group = static_cast<uint32_t>(b.plane + item.plane);
    p.by.groups.split(group);
#pragma unroll
    for (int k = 0; k < kM; ++k) {
      if (k >= p.results) break;
      const float bias = bias_of(conv, static_cast<int64_t>(group) * p.results + k);
      T* const to = result + staged_result(p, b, item, 0, k);
      const int pitch = p.spacing * p.classes * p.w.results;
#pragma unroll
      for (int v = 0; v < kV; ++v)
        if (item.row + v * p.spacing < b.rows)
          to[static_cast<int64_t>(v) * pitch] = from_float<T>(sums[v][k] + bias);
    }
  }
}

template <class T, int kV, int kM>
__global__ void __launch_bounds__(kStagedThreads, kM == 4 ? 3 : 4)
    gather_kernel(const __grid_constant__ Conv conv, const __grid_constant__ Staged p, const T* source,
                  int phase, T* result) {
  extern __shared__ __align__(16) float shared[];
  const StagedBlock b = staged_block(p, blockIdx.x);
  if (b.rows <= 0) return;
  T* const tile = reinterpret_cast<T*>(shared + staged_weights(p));
  stage_rows(p, b, phase, source, tile);
  const bool finite = stage_weights(p, b, static_cast<const T*>(conv.w.data), shared);
  copy_async_wait();
  if (__syncthreads_and(finite ? 1 : 0) != 0)
    make_results<kV, kM, false>(conv, p, b, shared, tile, phase, result);
  else
    make_results<kV, kM, true>(conv, p, b, shared, tile, phase, result);
}

template <class T, int kV, int kM>
void launch(const Conv& conv, bool forward, const StagedPlan& plan, Stream stream) {
  const Tensor &source = forward ? conv.x : conv.y, &result = forward ? conv.y : conv.x;
  const auto bytes = static_cast<int>(plan.shared);
  const auto phase = static_cast<int>(reinterpret_cast<uintptr_t>(source.data) % 16 / sizeof(T));
  start(gather_kernel<T, kV, kM>, plan.blocks, kStagedThreads, bytes, stream, conv, plan.staged, source.data,
        phase, result.data);
}

}  // namespace

void staged_gather(const Conv& conv, bool forward, const StagedPlan& plan, Stream stream) {
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    const Staged& p = plan.staged;
    if (p.results_at_once == 4) return launch<T, 4, 4>(conv, forward, plan, stream);
    if (p.results_at_once == 2) return launch<T, 4, 2>(conv, forward, plan, stream);
    if (p.slide == 8) return launch<T, 8, 1>(conv, forward, plan, stream);
    launch<T, 4, 1>(conv, forward, plan, stream);
  });
}

}  // namespace retrograd::kernels::cuda
