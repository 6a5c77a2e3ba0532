// SPDX-License-Identifier: Apache-2.0
// The kernel of wgmma_gather and its launch.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <type_traits>

#include "kernels/cuda/dense/gather_product.h"
#include "kernels/cuda/dense/tensor_map.h"
#include "kernels/cuda/dense/wgmma_gather_plan.h"
#include "kernels/cuda/sm90a/gather_store.cuh"

namespace retrograd::kernels::cuda::wgather {

template <class T, class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    gather_kernel(const __grid_constant__ Args p, const __grid_constant__ CUtensorMap source,
                  const __grid_constant__ CUtensorMap weights) {
  extern __shared__ unsigned char shared[];
  __shared__ uint64_t full[C::kStages], empty[C::kStages];
  unsigned char* const aligned = shared + (1024 - hopper::shared_address(shared) % 1024) % 1024;
  const uint32_t tiles = hopper::shared_address(aligned);
  const Barriers barriers{hopper::shared_address(full), hopper::shared_address(empty)};
  if (threadIdx.x == 0) {
    for (int i = 0; i < C::kStages; ++i) {
      hopper::init_barrier(barriers.full + i * 8, 1);
      hopper::init_barrier(barriers.empty + i * 8, C::kGroups);
    }
    hopper::publish_barriers();
  }
  __syncthreads();

  const int group = static_cast<int>(threadIdx.x) / 128;
  if (group == C::kGroups) {
    hopper::give_registers_back<C::kFewRegisters>();
    if (threadIdx.x % 128 == 0) copy_tiles<C>(p, &source, &weights, tiles, barriers);
  } else {
    hopper::take_registers<C::kManyRegisters>();
    unsigned char* const staged = aligned + C::kStages * C::kStageBytes + group * C::kStagedBytes;
    const int steps = p.taps[0] * p.taps[1] * (p.taps[2] / C::kShared) * p.chunks;
    Multiplier<T, C> product(tiles, group);
    for (uint32_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
      product.sum_up(p, steps, barriers);
      const Corner corner{first_place<C>(p, tile) + group * (C::kBands * 64), first_channel<C>(p, tile)};
      store(p, product, corner, staged, group + 1);
    }
  }
}

// The map of the places, and what the kernel is told about it.
inline PlacesMap describe(const GatherProduct& product, int64_t channels, bool shared, Args& p) {
  const PlacesMap map = places_of(product, channels, shared);
  p.axes = map.axes;
  int64_t places = product.conv.batch;
  for (int a = 0; a < 3; ++a) {
    const ProductAxis& axis = product.axes[a];
    const int64_t back = axis.tap_step < 0 ? (axis.taps - 1) * axis.tap_step : 0;
    p.first[a] = static_cast<int>(axis.first + back);
    p.offset[a] = static_cast<int>(-back);
    p.offset_step[a] = static_cast<int>(axis.tap_step);
    p.step[a] = static_cast<int>(axis.step);
    const int64_t results = axis.results + (shared && a == 2 ? reach_of(axis) : 0);
    p.results[a] = FastDiv(results);
    p.result_step[a] = static_cast<int>(axis.result_step);
    p.result_first[a] = static_cast<int>(axis.result_first);
    p.taps[a] = static_cast<int>(axis.taps);
    p.tap_first[a] = static_cast<int>(axis.tap_first);
    p.tap_stride[a] = static_cast<int>(axis.tap_stride);
    p.kernel[a] = static_cast<int>(axis.kernel);
    places *= results;
  }
  p.live = static_cast<int>(product.axes[2].results);
  p.places = static_cast<uint32_t>(places);
  return map;
}

// Results of a channel that lie side by side in whole aligned vectors.
inline int run_of(const GatherProduct& product, const Tensor& result) {
  int64_t plane = 1;
  for (const ProductAxis& axis : product.axes) {
    if (axis.result_step != 1 && axis.results != 1) return 1;
    plane *= axis.results;
  }
  const auto address = reinterpret_cast<uintptr_t>(result.data);
  int run = 8;
  while (run > 1 && (plane % run != 0 || address % (2 * run) != 0)) run /= 2;
  return run;
}

inline int multiprocessors() {
  static const int count = [] {
    int device = 0, number = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&number, cudaDevAttrMultiProcessorCount, device);
    return number;
  }();
  return count;
}

// False: the driver cannot describe the operands.
template <class T, class C>
bool launch(const GatherProduct& product, Stream stream) {
  const Conv& conv = product.conv;
  // Of patches, filled up.
  const int64_t channels = (row_channels(product) + 7) / 8 * 8;
  Args p{};
  p.conv = conv;
  p.forward = product.forward;
  p.repair = product.padded;
  p.columns = static_cast<int>(product.forward ? conv.y_channels : conv.x_channels);
  p.chunks = static_cast<int>((channels + C::kStepChannels - 1) / C::kStepChannels);
  p.result = product.forward ? conv.y : conv.x;
  PlacesMap places = describe(product, channels, C::kShared > 1, p);
  places.places = C::kBox;
  places.row_bytes = C::kRowBytes;
  p.run = run_of(product, p.result);
  p.across = static_cast<uint32_t>((p.columns + C::kChannels - 1) / C::kChannels);
  p.tiles = (p.places + C::kPlaces - 1) / C::kPlaces * p.across;

  constexpr MapType type = std::is_same_v<T, __half> ? MapType::kF16 : MapType::kBF16;
  const auto u = [](int64_t value) { return static_cast<uint64_t>(value); };
  const int64_t inner = product.patches ? channels : conv.x_channels;
  const int64_t taps = product.axes[0].kernel * product.axes[1].kernel * product.axes[2].kernel;
  const BoxMap boxes{3,
                     {u(inner), u(taps), u(conv.y_channels)},
                     {u(inner * 2), u(inner * taps * 2)},
                     {C::kStepChannels, 1, C::kWeights},
                     C::kRowBytes};
  CUtensorMap source, weights;
  if (!make_map(places, type, product.source_rows, &source) ||
      !make_map(boxes, type, product.weight_rows, &weights))
    return false;

  cudaFuncSetAttribute(gather_kernel<T, C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kBytes);
  const unsigned blocks = std::min(p.tiles, static_cast<unsigned>(multiprocessors()));
  gather_kernel<T, C><<<blocks, C::kThreads, C::kBytes, stream>>>(p, source, weights);
  return true;
}

}  // namespace retrograd::kernels::cuda::wgather
