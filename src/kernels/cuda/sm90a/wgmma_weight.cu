// SPDX-License-Identifier: Apache-2.0
// w[o, tap, c] = Σ_p y[p, o] · x[place(p, tap), c]
//
// Rows of both operands run along channels, which warpgroup products take as they are. A block walks over a
// part of the pixels, 64 a step, several steps in flight; one thread asks the copy engine for them. Where the
// stride along w is one, the taps of a row are the same x begun some pixels later, so a pixel of x comes into
// shared memory once for all of them; zeros between lines keep neighbouring lines apart. Otherwise a block
// has one tap and walks only over pixels whose tap lies inside x. Sums of all pixels go where the weights
// lie; parts go to the workspace as FP32, add_weight_parts adds them in order.
#include <algorithm>

#include "kernels/cuda/dense/tensor_map.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/sm90a/weight_sums.cuh"

namespace retrograd::kernels::cuda {
namespace {

using wweight::Block;
using wweight::Cut;
using wweight::kRow;
using wweight::kTerms;
using wweight::kWidth;

struct Maps {
  CUtensorMap y[kMostWeightUnits], x[kMostWeightUnits];  // of a unit
};

// Where a box begins: places of three axes, and the image.
struct Start {
  int d, h, w, n;
};
__device__ void load(uint32_t target, const CUtensorMap* map, uint32_t barrier, int channel, const Start& at,
                     bool flat, uint16_t to_h = 0) {
  if (flat)
    hopper::load_places(target, map, barrier, channel, at.w, at.h, at.n, 0, to_h);
  else
    hopper::load_places(target, map, barrier, channel, at.w, at.h, at.d, at.n, 0, to_h, 0);
}

template <class C>
__device__ void copy_places(const WeightWalk& p, const Block& block, const Maps& maps, uint32_t base,
                            uint32_t full, uint32_t empty) {
  const WeightUnit& unit = p.units[block.unit];
  const uint32_t bytes = wweight::stage_bytes<C>(p);
  hopper::Ring<C::kStages> ring;
  for (int step = 0; step < block.steps; ++step, ring.next()) {
    uint32_t w = (block.first_step + static_cast<uint32_t>(step)) * kTerms;
    uint32_t h = unit.counts[2].split(w);
    uint32_t d = unit.counts[1].split(h);
    const int n = static_cast<int>(unit.counts[0].split(d));
    const int along[3] = {static_cast<int>(d), static_cast<int>(h), static_cast<int>(w)};
    Start y{unit.y_first[0] + along[0], unit.y_first[1] + along[1], unit.y_first[2] + along[2], n};
    Start x{unit.x_first[0] + along[0] * p.stride[0], unit.x_first[1] + along[1] * p.stride[1],
            unit.x_first[2] + along[2] * p.stride[2], n};
    const uint32_t stage = base + ring.stage * bytes, barrier = full + 8 * ring.stage;
    hopper::wait(empty + 8 * ring.stage, ring.parity ^ 1);
    hopper::arrive_expecting(barrier, bytes);
#pragma unroll
    for (int i = 0; i < C::kDown; ++i)
      load(stage + i * (kTerms * kRow), &maps.y[block.unit], barrier, block.m0 + i * kWidth, y, p.flat);
#pragma unroll
    for (int i = 0; i < C::kGroups; ++i) {
      const int group = block.first_group + i, row = group / p.x_groups;
      // A group that is not there lies beyond the last channel.
      const int channel = (row < unit.rows ? group % p.x_groups : p.x_groups) * kWidth;
      load(stage + C::kYBytes + i * p.x_rows * kRow, &maps.x[block.unit], barrier, channel, x, p.flat,
           static_cast<uint16_t>(C::kMany ? row * p.dilation[1] : 0));
    }
  }
}

template <class E, class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    product_kernel(const __grid_constant__ WeightWalk p, const __grid_constant__ Maps maps,
                   const __grid_constant__ ResultTarget target) {
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ __align__(8) uint64_t barriers[2 * C::kStages];
  const uint32_t base = (hopper::shared_address(shared) + 1023u) & ~1023u;
  const uint32_t full = hopper::shared_address(barriers), empty = full + 8 * C::kStages;
  const Block block = wweight::block_of<C>(p);
  const int thread = static_cast<int>(threadIdx.x) - 128;
  if (threadIdx.x == 0) {
    hopper::prefetch_map(&maps.y[block.unit]);
    hopper::prefetch_map(&maps.x[block.unit]);
    hopper::init_ring<C::kStages>(full, empty, 1, 4 * C::kWarpgroups);
  }
  __syncthreads();
  if (thread < 0) {
    hopper::give_registers_back<C::kFewRegisters>();
    if (threadIdx.x == 0) copy_places<C>(p, block, maps, base, full, empty);
  } else {
    hopper::take_registers<C::kManyRegisters>();
    const uint32_t bytes = wweight::stage_bytes<C>(p);
    wweight::Sums<E, C> sums(p, thread / 128, base);
    hopper::Ring<C::kStages> ring;
    uint32_t last = 0;
    for (int step = 0; step < block.steps; ++step, ring.next()) {
      hopper::wait(full + 8 * ring.stage, ring.parity);
      sums.add(ring.stage * bytes);
      hopper::wait_for_products<1>();
      if (step > 0 && thread % 32 == 0) hopper::arrive(empty + 8 * last);
      last = ring.stage;
    }
    hopper::wait_for_products<0>();
    sums.store(p, block, thread % 128, target);
  }
}

template <class E, class C>
void launch(const WeightPlan& plan, const Maps& maps, const ResultTarget& target, Stream stream) {
  // Taps that are shifts overlap: compute-sanitizer counts them side by side, up to 3 KiB beyond the last
  // stage, and has them where there is room.
  constexpr int kShifts = C::kTaps > 1 ? 3072 : 0, kMost = 227 * 1024 - 256;
  const int needed = static_cast<int>(C::kStages * wweight::stage_bytes<C>(plan.walk)) + 1024;
  const int bytes = std::max(needed, std::min(needed + kShifts, kMost));
  start(product_kernel<E, C>, plan.blocks, C::kThreads, bytes, stream, plan.walk, maps, target);
}

template <WeightCut kCut, int kWarpgroups, int kDown, int kSub, int kTaps, bool kMany>
using CutOf = Cut<kWarpgroups, kDown, kSub, kTaps, kWeightStages[static_cast<int>(kCut)], kMany>;

template <class E>
void launch_in(const WeightPlan& plan, const Maps& maps, const ResultTarget& target, Stream stream) {
  switch (plan.cut) {
    case WeightCut::k128x64:
      return launch<E, CutOf<WeightCut::k128x64, 2, 2, 1, 1, false>>(plan, maps, target, stream);
    case WeightCut::k128x128:
      return launch<E, CutOf<WeightCut::k128x128, 2, 2, 2, 1, false>>(plan, maps, target, stream);
    case WeightCut::k128x192:
      return launch<E, CutOf<WeightCut::k128x192, 2, 2, 3, 1, false>>(plan, maps, target, stream);
    case WeightCut::k128x256:
      return launch<E, CutOf<WeightCut::k128x256, 2, 2, 4, 1, false>>(plan, maps, target, stream);
    case WeightCut::k128x64Taps:
      return launch<E, CutOf<WeightCut::k128x64Taps, 2, 2, 1, 3, false>>(plan, maps, target, stream);
    case WeightCut::k128x128Taps:
      return launch<E, CutOf<WeightCut::k128x128Taps, 2, 2, 2, 3, false>>(plan, maps, target, stream);
    case WeightCut::k64x192Taps:
      return launch<E, CutOf<WeightCut::k64x192Taps, 3, 1, 1, 3, true>>(plan, maps, target, stream);
    case WeightCut::k64x256Taps:
      return launch<E, CutOf<WeightCut::k64x256Taps, 2, 1, 2, 3, true>>(plan, maps, target, stream);
    case WeightCut::kPairs:
      break;
  }
}

}  // namespace

bool wgmma_weight(const WeightPlan& plan, RowType type, const void* x_rows, const void* y_rows, void* results,
                  float* parts, Stream stream) {
  if (plan.cut == WeightCut::kPairs) return wgmma_weight_pairs(plan, type, x_rows, y_rows, parts, stream);
  const MapType map_type = type == RowType::kBF16 ? MapType::kBF16 : MapType::kF16;
  Maps maps;
  for (int i = 0; i < plan.walk.unit_count; ++i)
    if (!make_map(weight_y_map(plan.walk, i), map_type, y_rows, &maps.y[i]) ||
        !make_map(weight_x_map(plan.walk, i), map_type, x_rows, &maps.x[i]))
      return false;
  const ResultTarget target(results, plan.strides, parts);
  with_half(dtype_of(type), [&](auto e) { launch_in<decltype(e)>(plan, maps, target, stream); });
  return true;
}

}  // namespace retrograd::kernels::cuda
