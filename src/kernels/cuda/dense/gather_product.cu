// SPDX-License-Identifier: Apache-2.0
// result[m, n] = Σ_{tap, c} source[place(m, tap), c] · weight[tap, n, c]
//
// A block makes kM places by kN channels. Sums run over (tap, channel) in steps of 128 bytes: each 16-byte
// chunk of a row has one tap, so eight taps of a stem with three channels share a step. Several steps are in
// flight (cp.async), and the fragments of the next 32 bytes while those of these are multiplied; chunks
// beyond the edge arrive as zeros. Operations a byte of shared memory: 2·kM·kN/(kM + kN) of a term.
//
// Zero times a weight that is not finite is NaN where the mathematics skips the product, and FP32 made of
// three products has no Inf: a result that is not finite is taken from the formula instead.
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/dense/f32_gather.h"
#include "kernels/cuda/dense/gather_product.h"
#include "kernels/cuda/dense/gather_product_plan.h"
#include "kernels/cuda/dense/gather_tiles.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/formulas.cuh"

namespace retrograd::kernels::cuda {
namespace {

using gather::Cut;
using gather::Fragments;
using gather::Loader;
using gather::Product;

// Kept out of the kernel's registers.
__device__ __noinline__ float by_formula(const Product& p, uint32_t m, int64_t channel) {
  const Place place = place_of(p, m);
  const Index5 index{place.n, channel, int64_t{place.at[0]} * p.result_step[0] + p.result_first[0],
                     int64_t{place.at[1]} * p.result_step[1] + p.result_first[1],
                     int64_t{place.at[2]} * p.result_step[2] + p.result_first[2]};
  return p.forward ? forward_sum(p.conv, index) : grad_input_sum(p.conv, index);
}

template <class Math, class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    product_kernel(const __grid_constant__ Product p, const char* source, const char* weights) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ int4 rows[C::kM];
  __shared__ int64_t row_offsets[C::kM];
  const uint32_t base = shared_address(shared);
  // Blocks that read the same places are neighbours.
  const uint32_t across = static_cast<uint32_t>((p.columns + C::kN - 1) / C::kN);
  const uint32_t m0 = blockIdx.x / across * C::kM;
  const int n0 = static_cast<int>(blockIdx.x % across) * C::kN, group = static_cast<int>(blockIdx.y);
  for (int i = static_cast<int>(threadIdx.x); i < C::kM; i += C::kThreads) {
    const uint32_t m = m0 + i;
    const Place place = place_of(p, min(m, p.places - 1));
    int at[3];
    int64_t offset = place.n * p.result.strides[0];
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      at[a] = place.at[a] * p.axes[a].step + p.axes[a].first;
      offset += (int64_t{place.at[a]} * p.result_step[a] + p.result_first[a]) * p.result.strides[2 + a];
    }
    if (m >= p.places) at[2] = -(1 << 30);  // beyond every edge
    rows[i] = int4{place.n * p.axes[0].source, at[0], at[1], at[2]};
    row_offsets[i] = offset;
  }
  __syncthreads();

  Loader<C> loader(p, rows, source + int64_t{group} * p.filled, weights + group * p.weight_group, n0, base);
#pragma unroll
  for (int i = 0; i < C::kStages - 1; ++i) {
    if (i < p.steps) loader.load(i * C::kStageBytes);
    close_copies();
  }
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int first_row = warp / (C::kN / C::kWarpN) * C::kWarpM,
            first_column = warp % (C::kN / C::kWarpN) * C::kWarpN;
  WarpSums<Math, C::kWarpM, C::kWarpN> sums;
  Fragments<C> fragments[2];
  wait_for_copies<C::kStages - 2>();
  __syncthreads();
  fragments[0].load(base, first_row, first_column, 0);
  uint32_t reading = 0, writing = (C::kStages - 1) * C::kStageBytes;
  const auto next = [](uint32_t stage) {
    return stage == (C::kStages - 1) * C::kStageBytes ? 0u : stage + C::kStageBytes;
  };
  for (int step = 0; step < p.steps; ++step) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k == 3) {
        wait_for_copies<C::kStages - 2>();
        __syncthreads();
        reading = next(reading);
      }
      fragments[(k + 1) % 2].load(base + reading, first_row, first_column, (k + 1) % 4);
      if (k == 0) {
        if (step + C::kStages - 1 < p.steps) loader.load(writing);
        close_copies();
        writing = next(writing);
      }
      sums.add(fragments[k % 2].a, fragments[k % 2].b);
    }
    sums.settle();
  }
  wait_for_copies<0>();
  __syncthreads();

  // Through shared memory, so that neighbouring lanes write neighbouring places or channels.
  auto* staged = reinterpret_cast<float*>(shared);
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < C::kWarpM / 16; ++i)
#pragma unroll
    for (int j = 0; j < C::kWarpN / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        staged[(first_column + j * 8 + lane % 4 * 2 + e % 2) * C::kPitch + first_row + i * 16 + lane / 4 +
               e / 2 * 8] = sums.sums[i][j][e];
  __syncthreads();
  const int64_t channel0 = static_cast<int64_t>(group) * p.columns + n0;
  const auto store = [&](int row, int column) {
    float sum = staged[column * C::kPitch + row];
    const int64_t channel = channel0 + column;
    if (p.repair && !isfinite(sum))
      sum = by_formula(p, m0 + row, channel);
    else if (p.conv.bias.data != nullptr)
      sum += bias_of(p.conv, channel);
    const int64_t offset = row_offsets[row] + channel * p.result.strides[1];
    if (p.result.dtype == DType::kF32)
      static_cast<float*>(p.result.data)[offset] = sum;
    else
      store_any(p.result.dtype, p.result.data, offset, sum);
  };
  const int live_rows = static_cast<int>(min(p.places - m0, static_cast<uint32_t>(C::kM))),
            live_columns = min(p.columns - n0, C::kN);
  if (p.result.strides[1] != 1) {
    for (int column = warp; column < live_columns; column += C::kThreads / 32)
#pragma unroll
      for (int row = lane; row < C::kM; row += 32)
        if (row < live_rows) store(row, column);
  } else {
    for (int row = warp; row < live_rows; row += C::kThreads / 32)
#pragma unroll
      for (int column = lane; column < C::kN; column += 32)
        if (column < live_columns) store(row, column);
  }
}

template <class Math, class C>
void launch(const Product& p, const GatherProduct& product, Stream stream) {
  cudaFuncSetAttribute(product_kernel<Math, C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kBytes);
  const dim3 grid(static_cast<unsigned>((p.columns + C::kN - 1) / C::kN) * ((p.places + C::kM - 1) / C::kM),
                  static_cast<unsigned>(product.conv.groups));
  product_kernel<Math, C><<<grid, C::kThreads, C::kBytes, stream>>>(
      p, static_cast<const char*>(product.source_rows), static_cast<const char*>(product.weight_rows));
}

Product prepare(const GatherProduct& product, int64_t chunk) {
  const Conv& conv = product.conv;
  const int64_t channels = product.forward ? conv.x_channels : conv.y_channels;
  Product p;
  p.conv = conv;
  p.forward = product.forward;
  p.repair = product.padded || product.math == ProductMath::kF32;
  p.columns = static_cast<int>(product.forward ? conv.y_channels : conv.x_channels);
  p.chunks = static_cast<int>((channels + chunk - 1) / chunk);
  p.filled = static_cast<uint32_t>(p.chunks) * 16;
  p.pitch = p.filled * static_cast<uint32_t>(conv.groups);
  int64_t places = conv.batch, taps = 1, kernel = 1;
  for (int a = 0; a < 3; ++a) {
    const ProductAxis& axis = product.axes[a];
    p.axes[a] = {static_cast<int>(axis.step), static_cast<int>(axis.first), static_cast<int>(axis.tap_step),
                 static_cast<int>(axis.source)};
    p.results[a] = FastDiv(axis.results > 0 ? axis.results : 1);
    p.result_step[a] = static_cast<int>(axis.result_step);
    p.result_first[a] = static_cast<int>(axis.result_first);
    p.taps[a] = FastDiv(axis.taps > 0 ? axis.taps : 1);
    p.tap_first[a] = static_cast<int>(axis.tap_first);
    p.tap_stride[a] = static_cast<int>(axis.tap_stride);
    p.kernel[a] = static_cast<int>(axis.kernel);
    places *= axis.results;
    taps *= axis.taps;
    kernel *= axis.kernel;
  }
  p.places = static_cast<uint32_t>(places);
  p.steps = static_cast<int>((taps * p.chunks + 7) / 8);
  p.weight_group = kernel * p.columns * p.filled;
  p.result = product.forward ? conv.y : conv.x;
  return p;
}

template <class Math>
void launch_in(const GatherProduct& product, Stream stream) {
  const Product p = prepare(product, 16 / sizeof(typename Math::Element));
  if (p.places == 0 || p.columns == 0) return;
  if constexpr (std::is_same_v<Math, InF32> || std::is_same_v<Math, InTF32>)
    if (product.warpgroups && f32_gather(p, product, stream)) return;
  const GatherTiles tiles =
      gather_tiles(p.places, p.columns, product.conv.groups, product.math, product.multiprocessors);
  if (tiles.n == 32) return launch<Math, Cut<128, 32, 64, 32, 2, 4>>(p, product, stream);
  if constexpr (!std::is_same_v<Math, InF32>)
    if (tiles.n == 128) return launch<Math, Cut<128, 128, 64, 64, 3, 2>>(p, product, stream);
  if (tiles.m == 128) return launch<Math, Cut<128, 64, 64, 32, 4, 2>>(p, product, stream);
  launch<Math, Cut<64, 64, 32, 32, 4, 3>>(p, product, stream);
}

}  // namespace

void gather_product(const GatherProduct& product, Stream stream) {
  switch (product.math) {
    case ProductMath::kF16:
      return launch_in<InF16>(product, stream);
    case ProductMath::kBF16:
      return launch_in<InBF16>(product, stream);
    case ProductMath::kTF32:
      return launch_in<InTF32>(product, stream);
    case ProductMath::kF32:
      return launch_in<InF32>(product, stream);
  }
}

void clear(void* data, size_t bytes, Stream stream) { cudaMemsetAsync(data, 0, bytes, stream); }

}  // namespace retrograd::kernels::cuda
