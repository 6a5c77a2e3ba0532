// SPDX-License-Identifier: Apache-2.0
// w[o, tap, c] = Σ_p y[p, o] · x[place(p, tap), c]
//
// A block makes up to 192 y channels by up to 256 x channels of one tap over a share of the pixels that the
// tap reaches, 32 a step, several steps in flight. All warpgroups copy and multiply: products of a step run
// while later steps are asked for. Few results are shared out among a cluster of blocks, which add their
// sums, and beyond that cut into parts, which go to the workspace as FP32 for add_weight_parts. Otherwise
// results are written as they are wanted.
#include "kernels/cuda/dense/wgmma.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/sm90a/tap_store.cuh"

namespace retrograd::kernels::cuda {
namespace {

using tap::Block;
using tap::Cut;
using tap::Loads;

template <class E, class C, int kColumns>
__device__ void make_tile(const TapWalk& p, const Block& block, const ResultTarget& target, Loads<C>& loads,
                          uint32_t base) {
  const int thread = static_cast<int>(threadIdx.x) % 128, warpgroup = static_cast<int>(threadIdx.x) / 128;
  float sums[kColumns / 2];
#pragma unroll
  for (int i = 0; i < kColumns / 2; ++i) sums[i] = 0;
  const uint32_t a_at = base + warpgroup * tap::kGroup, b_at = base + C::kYBytes;
  const int steps = loads.steps();
  const bool busy = block.m0 + warpgroup * 64 < p.rows;
  uint32_t stage = 0;
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<C::kAhead - 1>();
    hopper::publish_shared();
    __syncthreads();
    if (busy) {
      hopper::fence_sums();
#pragma unroll
      for (int k = 0; k < kTapTerms; k += 16)
        hopper::multiply<E, kColumns, true, true>(sums, hopper::factor(a_at + stage + k * tap::kRow, 1024),
                                                  hopper::factor(b_at + stage + k * tap::kRow, tap::kGroup),
                                                  true);
      hopper::close_products();
    }
    // Into the stage of the step before last, whose products all threads have waited for.
    if (step + C::kAhead < steps) loads.load(step + C::kAhead);
    close_copies();
    loads.tabulate(step + C::kAhead + 1);
    hopper::wait_for_products<1>();
    stage = stage == (C::kStages - 1) * C::kStageBytes ? 0u : stage + C::kStageBytes;
  }
  hopper::wait_for_products<0>();
  hopper::hold(sums);
  const int row = block.m0 + warpgroup * 64 + thread / 32 * 16 + thread % 32 / 4;
  using Vectors = tap::ResultLine<E, true>;
  using Elements = tap::ResultLine<E, false>;
  using Parts = tap::PartLine;
  const bool in_parts = target.results == nullptr;
  if (p.cluster.divisor == 1) {
    if (in_parts) return tap::store_own<Parts, kColumns>(p, block, target, row, sums);
    if (target.vectors) return tap::store_own<Vectors, kColumns>(p, block, target, row, sums);
  }
  __syncthreads();
  if (in_parts) return tap::store_shared<Parts, C, kColumns>(p, block, target, row, sums, base);
  if (target.vectors) return tap::store_shared<Vectors, C, kColumns>(p, block, target, row, sums, base);
  tap::store_shared<Elements, C, kColumns>(p, block, target, row, sums, base);
}

template <class E, class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    product_kernel(const __grid_constant__ TapWalk p, const char* __restrict__ x_rows,
                   const char* __restrict__ y_rows, const __grid_constant__ ResultTarget target) {
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ int2 table[C::kStages][kTapTerms];
  const uint32_t base = (hopper::shared_address(shared) + 1023u) & ~1023u;
  const Block block = tap::block_of<C>(p);
  Loads<C> loads(p, block, x_rows, y_rows, base, table);
#pragma unroll 1
  for (int i = 0; i <= C::kAhead; ++i) loads.tabulate(i);
  __syncthreads();
#pragma unroll 1
  for (int i = 0; i < C::kAhead; ++i) {
    if (i < loads.steps()) loads.load(i);
    close_copies();
  }
  // Tiles of the last channels multiply no more than they have.
  const int columns = p.x_channels - block.n0;
  if constexpr (C::kN > 128) {
    if (columns > 192) return make_tile<E, C, 256>(p, block, target, loads, base);
    if (columns > 128) return make_tile<E, C, 192>(p, block, target, loads, base);
  }
  if (columns > 64) return make_tile<E, C, 128>(p, block, target, loads, base);
  make_tile<E, C, 64>(p, block, target, loads, base);
}

template <class E, class C>
void launch(const TapPlan& plan, const void* x_rows, const void* y_rows, const ResultTarget& target,
            Stream stream) {
  constexpr int kBytes = C::kStages * C::kStageBytes + 1024;
  const TapWalk& p = plan.walk;
  hopper::start_clusters(product_kernel<E, C>, p.cluster.divisor,
                         static_cast<unsigned>(p.shares() * p.tiles()), C::kThreads, kBytes, stream, p,
                         static_cast<const char*>(x_rows), static_cast<const char*>(y_rows), target);
}

template <class E>
void launch_in(const TapPlan& plan, const void* x_rows, const void* y_rows, const ResultTarget& target,
               Stream stream) {
  switch (plan.cut) {
    case TapCut::k128x128:
      return launch<E, Cut<2, 128, 6, 2>>(plan, x_rows, y_rows, target, stream);
    case TapCut::k128x256:
      return launch<E, Cut<2, 256, 8, 1>>(plan, x_rows, y_rows, target, stream);
    case TapCut::k192x256:
      return launch<E, Cut<3, 256, 7, 1>>(plan, x_rows, y_rows, target, stream);
  }
}

}  // namespace

void tap_weight(const TapPlan& plan, RowType type, const void* x_rows, const void* y_rows, void* results,
                float* parts, Stream stream) {
  const ResultTarget target(results, plan.strides, parts);
  with_half(dtype_of(type), [&](auto e) { launch_in<decltype(e)>(plan, x_rows, y_rows, target, stream); });
}

}  // namespace retrograd::kernels::cuda
