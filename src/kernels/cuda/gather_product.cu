// SPDX-License-Identifier: Apache-2.0
// result[m, n] = Σ_{tap, c} source[place(m, tap), c] · weight[tap, n, c]
//
// A block makes 128 places by kN channels. Sums run over (tap, channel) in steps of 64 bytes: each 16-byte
// chunk of a row has one tap, so four taps of a stem with three channels share a step. Four steps are in
// flight (cp.async); chunks beyond the edge arrive as zeros. Flops a byte of shared memory: 2·128·kN/(128 +
// kN).
//
// Zero times a weight that is not finite is NaN where the mathematics skips the product: a result that is not
// finite is taken from the formula instead.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/gather_product.h"
#include "kernels/cuda/tile_mma.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kM = 128;
constexpr int kStages = 4;

struct DeviceAxis {
  int step, first, tap_step, source;
};

struct Product {
  Conv conv;
  bool forward, padded;
  DeviceAxis axes[3];
  FastDiv results[3];  // of an axis
  int result_step[3], result_first[3];
  FastDiv taps[3];  // of an axis
  int tap_first[3], tap_stride[3], kernel[3];
  uint32_t places;
  int columns, chunks, steps;  // chunks: of a tap
  int64_t pitch;               // elements from place to place
  int64_t filled;              // channels of a group
  int64_t weight_group;        // elements of a group's weights
  Tensor result;
};

struct Place {
  int n, at[3];
};
__device__ Place place_of(const Product& p, uint32_t m) {
  Place place;
  uint32_t w = m;
  uint32_t h = p.results[2].split(w);
  uint32_t d = p.results[1].split(h);
  place.n = static_cast<int>(p.results[0].split(d));
  place.at[0] = static_cast<int>(d);
  place.at[1] = static_cast<int>(h);
  place.at[2] = static_cast<int>(w);
  return place;
}

// Kept out of the kernel's registers.
__device__ __noinline__ float by_formula(const Product& p, uint32_t m, int64_t channel) {
  const Place place = place_of(p, m);
  const Index5 index{place.n, channel, int64_t{place.at[0]} * p.result_step[0] + p.result_first[0],
                     int64_t{place.at[1]} * p.result_step[1] + p.result_first[1],
                     int64_t{place.at[2]} * p.result_step[2] + p.result_first[2]};
  return p.forward ? forward_sum(p.conv, index) : grad_input_sum(p.conv, index);
}

template <class E, int kN>
__global__ void __launch_bounds__(kThreads, sizeof(E) == 2 ? 2 : 1)
    product_kernel(const __grid_constant__ Product p, const E* source, const E* weights) {
  constexpr int kChunk = 16 / sizeof(E);
  constexpr int kStageBytes = (kM + kN) * 64;
  constexpr int kRowsA = kM / 64, kRowsB = (kN + 63) / 64;
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ int64_t row_offsets[kM];
  const uint32_t base = shared_address(shared);
  const uint32_t m0 = blockIdx.x * kM;
  const int n0 = static_cast<int>(blockIdx.y) * kN, group = static_cast<int>(blockIdx.z);
  source += group * p.filled;
  weights += group * p.weight_group;

  const int chunk = static_cast<int>(threadIdx.x) % 4, row0 = static_cast<int>(threadIdx.x) / 4;
  int64_t image[kRowsA];
  int at[kRowsA][3];
#pragma unroll
  for (int i = 0; i < kRowsA; ++i) {
    const uint32_t m = m0 + row0 + 64 * i;
    const Place place = place_of(p, min(m, p.places - 1));
    image[i] = static_cast<int64_t>(place.n) * p.axes[0].source;
#pragma unroll
    for (int a = 0; a < 3; ++a) at[i][a] = place.at[a] * p.axes[a].step + p.axes[a].first;
    if (m >= p.places) at[i][2] = -(1 << 30);  // beyond every edge
  }
  if (threadIdx.x < kM) {
    const Place place = place_of(p, min(m0 + threadIdx.x, p.places - 1));
    int64_t offset = place.n * p.result.strides[0];
#pragma unroll
    for (int a = 0; a < 3; ++a)
      offset += (int64_t{place.at[a]} * p.result_step[a] + p.result_first[a]) * p.result.strides[2 + a];
    row_offsets[threadIdx.x] = offset;
  }

  // The chunk of the sum that this thread copies next, and where its rows are for the tap it belongs to.
  int c = chunk, tap[3] = {0, 0, 0};
  const E *from[kRowsA], *of_weights[kRowsB];
  bool inside[kRowsA], live = false;
  const auto find_rows = [&] {
    live = tap[0] < static_cast<int>(p.taps[0].divisor);
#pragma unroll
    for (int i = 0; i < kRowsA; ++i) {
      const int sd = at[i][0] + tap[0] * p.axes[0].tap_step, sh = at[i][1] + tap[1] * p.axes[1].tap_step,
                sw = at[i][2] + tap[2] * p.axes[2].tap_step;
      inside[i] = live && static_cast<unsigned>(sd) < static_cast<unsigned>(p.axes[0].source) &&
                  static_cast<unsigned>(sh) < static_cast<unsigned>(p.axes[1].source) &&
                  static_cast<unsigned>(sw) < static_cast<unsigned>(p.axes[2].source);
      const int64_t place = ((image[i] + sd) * p.axes[1].source + sh) * p.axes[2].source + sw;
      from[i] = inside[i] ? source + place * p.pitch : source;
    }
    const int number = ((p.tap_first[0] + tap[0] * p.tap_stride[0]) * p.kernel[1] + p.tap_first[1] +
                        tap[1] * p.tap_stride[1]) *
                           p.kernel[2] +
                       p.tap_first[2] + tap[2] * p.tap_stride[2];
#pragma unroll
    for (int i = 0; i < kRowsB; ++i) {
      const int row = n0 + row0 + 64 * i;
      of_weights[i] = live && row < p.columns
                          ? weights + (static_cast<int64_t>(number) * p.columns + row) * p.filled
                          : nullptr;
    }
  };
  const auto settle = [&] {
    while (c >= p.chunks) {
      c -= p.chunks;
      if (++tap[2] == static_cast<int>(p.taps[2].divisor)) {
        tap[2] = 0;
        if (++tap[1] == static_cast<int>(p.taps[1].divisor)) {
          tap[1] = 0;
          ++tap[0];
        }
      }
    }
  };
  settle();
  find_rows();
  const auto load = [&](int step) {
    const uint32_t stage = base + static_cast<uint32_t>(step % kStages) * kStageBytes;
#pragma unroll
    for (int i = 0; i < kRowsA; ++i)
      copy_chunk(stage + chunk_at<4>(row0 + 64 * i, chunk), from[i] + c * kChunk, inside[i]);
#pragma unroll
    for (int i = 0; i < kRowsB; ++i) {
      if (kN < 64 && row0 >= kN) break;
      const bool there = of_weights[i] != nullptr;
      copy_chunk(stage + kM * 64 + chunk_at<4>(row0 + 64 * i, chunk),
                 there ? of_weights[i] + c * kChunk : weights, there);
    }
    c += 4;
    if (c < p.chunks) return;
    settle();
    find_rows();
  };

  TileSums<E, kM, kN, false> sums;
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
    if (i < p.steps) load(i);
    close_copies();
  }
  for (int step = 0; step < p.steps; ++step) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    if (step + kStages - 1 < p.steps) load(step + kStages - 1);
    close_copies();
    const uint32_t stage = base + static_cast<uint32_t>(step % kStages) * kStageBytes;
    sums.add(stage, stage + kM * 64);
  }
  wait_for_copies<0>();

  // 32 columns at a time through shared memory, so that neighbouring lanes write neighbouring places or
  // channels.
  constexpr int kPitch = kM + 1;
  auto* staged = reinterpret_cast<float*>(shared);
  const bool along_places = p.result.strides[1] != 1;
  const int64_t channel0 = static_cast<int64_t>(group) * p.columns + n0;
  for (int begin = 0; begin < kN; begin += 32) {
    __syncthreads();
    sums.visit(begin, [&](int row, int column, float sum) { staged[column * kPitch + row] = sum; });
    __syncthreads();
    for (int i = threadIdx.x; i < kM * 32; i += kThreads) {
      const int row = along_places ? i % kM : i / 32, column = along_places ? i / kM : i % 32;
      if (m0 + row >= p.places || n0 + begin + column >= p.columns) continue;
      float sum = staged[column * kPitch + row];
      const int64_t channel = channel0 + begin + column;
      if (p.padded && !isfinite(sum)) sum = by_formula(p, m0 + row, channel);
      store_any(p.result.dtype, p.result.data, row_offsets[row] + channel * p.result.strides[1], sum);
    }
  }
}

template <class E, int kN>
void launch(const Product& p, const GatherProduct& product, Stream stream) {
  constexpr int kBytes = kStages * (kM + kN) * 64;
  static_assert(kBytes >= (kM + 1) * 32 * 4);
  cudaFuncSetAttribute(product_kernel<E, kN>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const dim3 grid((p.places + kM - 1) / kM, static_cast<unsigned>((p.columns + kN - 1) / kN),
                  static_cast<unsigned>(product.conv.groups));
  product_kernel<E, kN><<<grid, kThreads, kBytes, stream>>>(p, static_cast<const E*>(product.source_rows),
                                                            static_cast<const E*>(product.weight_rows));
}

template <class E>
void launch_type(const GatherProduct& product, Stream stream) {
  const Conv& conv = product.conv;
  constexpr int kChunk = 16 / sizeof(E);
  const int64_t channels = product.forward ? conv.x_channels : conv.y_channels;
  Product p;
  p.conv = conv;
  p.forward = product.forward;
  p.padded = product.padded;
  p.columns = static_cast<int>(product.forward ? conv.y_channels : conv.x_channels);
  p.chunks = static_cast<int>((channels + kChunk - 1) / kChunk);
  p.filled = int64_t{p.chunks} * kChunk;
  p.pitch = p.filled * conv.groups;
  int64_t places = conv.batch, taps = 1, kernel = 1;
  for (int a = 0; a < 3; ++a) {
    const ProductAxis& axis = product.axes[a];
    p.axes[a] = {static_cast<int>(axis.step), static_cast<int>(axis.first), static_cast<int>(axis.tap_step),
                 static_cast<int>(axis.source)};
    p.results[a] = FastDiv(axis.results);
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
  if (places == 0 || p.columns == 0) return;
  p.places = static_cast<uint32_t>(places);
  p.steps = static_cast<int>((taps * p.chunks + 3) / 4);
  p.weight_group = kernel * p.columns * p.filled;
  p.result = product.forward ? conv.y : conv.x;
  if (p.columns > 64) return launch<E, 128>(p, product, stream);
  if (p.columns > 32) return launch<E, 64>(p, product, stream);
  launch<E, 32>(p, product, stream);
}

}  // namespace

void gather_product(const GatherProduct& product, Stream stream) {
  switch (product.type) {
    case RowType::kF16:
      return launch_type<__half>(product, stream);
    case RowType::kBF16:
      return launch_type<__nv_bfloat16>(product, stream);
    case RowType::kF32:
      return launch_type<float>(product, stream);
  }
}

}  // namespace retrograd::kernels::cuda
