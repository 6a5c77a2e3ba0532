// SPDX-License-Identifier: Apache-2.0
// The kernel of wgmma_gather and its launch.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <span>
#include <type_traits>

#include "kernels/cuda/dense/gather_product.h"
#include "kernels/cuda/dense/tensor_map.h"
#include "kernels/cuda/dense/wgmma_gather.h"
#include "kernels/cuda/sm90a/gather_store.cuh"

namespace retrograd::kernels::cuda::wgather {

template <class T, class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    gather_kernel(const __grid_constant__ Args p, const __grid_constant__ Maps maps) {
  extern __shared__ unsigned char shared[];
  __shared__ uint64_t full[C::kStages], empty[C::kStages];
  unsigned char* const aligned = shared + (1024 - hopper::shared_address(shared) % 1024) % 1024;
  const uint32_t stages = hopper::shared_address(aligned);
  const Barriers barriers{hopper::shared_address(full), hopper::shared_address(empty)};
  if (threadIdx.x == 0) hopper::init_ring<C::kStages>(barriers.full, barriers.empty, 1, C::kGroups);
  __syncthreads();

  const int group = static_cast<int>(threadIdx.x) / 128;
  const bool shares = p.shares > 1;
  if (group == C::kGroups) {
    if constexpr (C::kBlocks == 1) hopper::give_registers_back<C::kFewRegisters>();
    if (threadIdx.x % 128 == 0) {
      hopper::Ring<C::kStages> ring;
      for (Tiles tiles(p); tiles.is_left(); tiles.next())
        copy_tile<C>(p, maps, tiles.get<C>(), stages, barriers, ring);
    }
    if (shares) {  // as add_shares
      __syncwarp();
      hopper::sync_cluster();
      hopper::sync_cluster();
    }
  } else {
    if constexpr (C::kBlocks == 1) hopper::take_registers<C::kManyRegisters>();
    unsigned char* const staged = aligned + C::kStages * C::kStageBytes + group * C::kStagedBytes;
    Multiplier<T, C> product(stages, group);
    // Which tiles have results that are not finite, from the 32nd on together. They are repaired in the end:
    // a call in this loop would leave its registers to the callee.
    uint32_t suspects = 0, turn = 1;
    for (Tiles tiles(p); tiles.is_left(); tiles.next()) {
      const Tile tile = tiles.get<C>();
      product.sum_up(tile, barriers);
      const Corner corner = corner_of<C>(p, tile, group);
      if (shares) add_shares(p, product, corner, stages);
      if (store(p, product, corner, staged, group + 1)) suspects |= turn;
      turn = turn << 1 | (turn & 1u << 31);
    }
    if (suspects == 0) return;
    hopper::sync_group(group + 1);
    turn = 1;
    for (Tiles tiles(p); tiles.is_left(); tiles.next()) {
      if ((suspects & turn) != 0) repair<T, C>(p, corner_of<C>(p, tiles.get<C>(), group));
      turn = turn << 1 | (turn & 1u << 31);
    }
  }
}

// The map of the places, and what the kernel is told about it.
template <class C>
PlacesMap describe(const GatherProduct& product, const ProductAxes& axes, int64_t channels, Walk& walk) {
  constexpr bool kShared = C::kShared > 1;
  PlacesMap map = places_of(product, axes, channels * product.conv.groups, kShared);
  map.places = C::kBox;
  map.row_bytes = C::kRowBytes;
  walk.axes = map.axes;
  int64_t places = product.conv.batch, taps = 1;
  for (int a = 0; a < 3; ++a) {
    const ProductAxis& axis = axes[a];
    const int64_t back = axis.tap_step < 0 ? (axis.taps - 1) * axis.tap_step : 0;
    walk.first[a] = static_cast<int>(axis.first + back);
    walk.offset[a] = static_cast<int>(-back);
    walk.offset_step[a] = static_cast<int>(axis.tap_step);
    const int64_t results = axis.results + (kShared && a == 2 ? reach_of(axis) : 0);
    walk.results[a] = FastDiv(results);
    walk.result_first[a] = static_cast<int>(axis.result_first);
    walk.taps[a] = static_cast<int>(axis.taps);
    walk.tap_first[a] = static_cast<int>(axis.tap_first);
    walk.tap_stride[a] = static_cast<int>(axis.tap_stride);
    places *= results;
    taps *= axis.taps;
  }
  walk.live = static_cast<int>(axes[2].results);
  walk.places = static_cast<uint32_t>(places);
  walk.loads = static_cast<int>(taps / C::kShared * ((channels + C::kStepChannels - 1) / C::kStepChannels));
  walk.steps = (walk.loads + C::kPacked - 1) / C::kPacked;
  return map;
}

// Results of a channel that lie side by side in whole aligned vectors.
inline int run_of(std::span<const ProductAxes> residues, const Tensor& result) {
  if (residues.size() != 1) return 1;
  int64_t plane = 1;
  for (const ProductAxis& axis : residues[0]) {
    if (axis.result_step != 1 && axis.results != 1) return 1;
    plane *= axis.results;
  }
  const auto address = reinterpret_cast<uintptr_t>(result.data);
  int run = 8;
  while (run > 1 && (plane % run != 0 || address % (2 * run) != 0)) run /= 2;
  return run;
}

// False: the driver cannot describe the operands.
template <class T, class C>
bool launch(const GatherProduct& product, const GatherLaunch& as, Stream stream) {
  const Conv& conv = product.conv;
  // Of patches, filled up.
  const int64_t channels = (row_channels(product) + 7) / 8 * 8;
  Args p{};
  Maps maps;
  p.conv = conv;
  p.forward = product.forward;
  p.mixes = conv.groups > 1 && channels % C::kStepChannels != 0;
  p.repair = product.padded || p.mixes;
  p.columns = static_cast<int>(product.forward ? conv.y_channels : conv.x_channels);
  p.terms = static_cast<int>(channels);
  p.groups = static_cast<int>(conv.groups);
  p.chunks = static_cast<int>((channels + C::kStepChannels - 1) / C::kStepChannels);
  p.result = product.forward ? conv.y : conv.x;
  p.run = run_of(as.residues, p.result);
  p.across = static_cast<uint32_t>((p.columns + C::kChannels - 1) / C::kChannels);
  p.shares = as.shares;
  for (int a = 0; a < 3; ++a) {
    const ProductAxis& axis = as.residues[0][a];
    p.step[a] = static_cast<int>(axis.step);
    p.kernel[a] = static_cast<int>(axis.kernel);
    p.result_step[a] = static_cast<int>(axis.result_step);
  }
  constexpr MapType type = std::is_same_v<T, __half> ? MapType::kF16 : MapType::kBF16;
  for (size_t i = 0; i < as.residues.size(); ++i) {
    const PlacesMap map = describe<C>(product, as.residues[i], channels, p.walks[i]);
    p.tiles += (p.walks[i].places + C::kPlaces - 1) / C::kPlaces * p.across * static_cast<uint32_t>(p.groups);
    p.walks[i].tiles = p.tiles;
    if (!make_map(map, type, product.source_rows, maps.sources + i)) return false;
  }
  const auto u = [](int64_t value) { return static_cast<uint64_t>(value); };
  const int64_t inner = product.patches ? channels : conv.x_channels;
  const int64_t taps = int64_t{p.kernel[0]} * p.kernel[1] * p.kernel[2];
  const BoxMap boxes{4,
                     {u(inner), u(taps), u(conv.y_channels), u(conv.groups)},
                     {u(inner * 2), u(inner * taps * 2), u(inner * taps * 2 * conv.y_channels)},
                     {C::kTurned ? unsigned{C::kWeightRow} : unsigned{C::kStepChannels}, 1, C::kWeights, 1},
                     C::kWeightRowBytes};
  if (!make_map(boxes, type, product.weight_rows, &maps.weights)) return false;

  const auto shares = static_cast<unsigned>(as.shares),
             at_once = static_cast<unsigned>(multiprocessors() * C::kBlocks);
  hopper::start_clusters(gather_kernel<T, C>, shares,
                         shares > 1 ? p.tiles * shares : std::min(p.tiles, at_once), C::kThreads, C::kBytes,
                         stream, p, maps);
  return true;
}

}  // namespace retrograd::kernels::cuda::wgather
