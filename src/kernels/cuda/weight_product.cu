// SPDX-License-Identifier: Apache-2.0
// w[o, c, tap] = Σ_p y[p, o] · x[place(p, tap), c]
//
// A block makes 128 y channels by kN x channels of one tap over a part of the places, in steps of 32 places
// (16 in FP32), four steps in flight. Rows of both operands run along channels, so the fragments are
// transposed as they are read. Parts go to the workspace as FP32, a second kernel adds them in order.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/tile_mma.cuh"
#include "kernels/cuda/weight_product.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kStages = 4;

struct Product {
  FastDiv outputs[3];  // of an axis
  int stride[3], dilation[3], pad[3], source[3], kernel[3];
  uint32_t places, part;  // part: places of one, a multiple of a step
  int rows, columns;      // y channels, x channels of a group
  int y_filled, x_filled;
  int64_t y_pitch, x_pitch;
  int groups;
  int64_t weights, taps;  // of all groups; of a weight
};

template <class E, int kM, int kN>
__global__ void __launch_bounds__(kThreads)
    product_kernel(const __grid_constant__ Product p, const E* x_rows, const E* y_rows, float* parts) {
  using Sums = TileSums<E, kM, kN, true>;
  constexpr int kChunk = 16 / sizeof(E), kTerms = Sums::kTerms;
  constexpr int kChunksM = kM / kChunk, kChunksN = kN / kChunk;
  constexpr int kBytesM = kTerms * kM * static_cast<int>(sizeof(E)),
                kBytesN = kTerms * kN * static_cast<int>(sizeof(E));
  constexpr int kStageBytes = kBytesM + kBytesN;
  extern __shared__ __align__(128) unsigned char shared[];
  const uint32_t base = shared_address(shared);
  const int n0 = static_cast<int>(blockIdx.x) * kN, m0 = static_cast<int>(blockIdx.y) * kM;
  const int group = static_cast<int>(blockIdx.z) % p.groups, number = static_cast<int>(blockIdx.z) / p.groups;
  const uint32_t begin = static_cast<uint32_t>(number) * p.part, end = min(begin + p.part, p.places);
  // A thread copies the same chunk of columns at every step: one tap, one place in its row.
  static_assert(kThreads % kChunksN == 0);
  const int column = n0 + static_cast<int>(threadIdx.x) % kChunksN * kChunk;
  const int tap = column / p.x_filled, channel = column % p.x_filled;
  const int shift[3] = {tap / (p.kernel[1] * p.kernel[2]) * p.dilation[0] - p.pad[0],
                        tap / p.kernel[2] % p.kernel[1] * p.dilation[1] - p.pad[1],
                        tap % p.kernel[2] * p.dilation[2] - p.pad[2]};
  const bool live = tap < p.taps;
  x_rows += static_cast<int64_t>(group) * p.x_filled;
  y_rows += static_cast<int64_t>(group) * p.y_filled;

  const auto load = [&](int step) {
    const uint32_t stage = base + static_cast<uint32_t>(step % kStages) * kStageBytes;
    const uint32_t first = begin + static_cast<uint32_t>(step) * kTerms;
#pragma unroll
    for (int i = static_cast<int>(threadIdx.x); i < kTerms * kChunksM; i += kThreads) {
      const int row = i / kChunksM, chunk = i % kChunksM;
      const uint32_t place = first + row;
      const bool inside = place < end && m0 + chunk * kChunk < p.y_filled;
      copy_chunk(stage + chunk_at<kChunksM>(row, chunk),
                 inside ? y_rows + place * p.y_pitch + m0 + chunk * kChunk : y_rows, inside);
    }
#pragma unroll
    for (int i = static_cast<int>(threadIdx.x); i < kTerms * kChunksN; i += kThreads) {
      const int row = i / kChunksN, chunk = i % kChunksN;
      const uint32_t place = first + row;
      uint32_t w = place;
      uint32_t h = p.outputs[2].split(w);
      uint32_t d = p.outputs[1].split(h);
      const int64_t n = p.outputs[0].split(d);
      const int sd = static_cast<int>(d) * p.stride[0] + shift[0],
                sh = static_cast<int>(h) * p.stride[1] + shift[1],
                sw = static_cast<int>(w) * p.stride[2] + shift[2];
      const bool inside = place < end && live &&
                          static_cast<unsigned>(sd) < static_cast<unsigned>(p.source[0]) &&
                          static_cast<unsigned>(sh) < static_cast<unsigned>(p.source[1]) &&
                          static_cast<unsigned>(sw) < static_cast<unsigned>(p.source[2]);
      const int64_t at = ((n * p.source[0] + sd) * p.source[1] + sh) * p.source[2] + sw;
      copy_chunk(stage + kBytesM + chunk_at<kChunksN>(row, chunk),
                 inside ? x_rows + at * p.x_pitch + channel : x_rows, inside);
    }
  };

  Sums sums;
  const int steps = end > begin ? static_cast<int>((end - begin + kTerms - 1) / kTerms) : 0;
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
    if (i < steps) load(i);
    close_copies();
  }
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    if (step + kStages - 1 < steps) load(step + kStages - 1);
    close_copies();
    const uint32_t stage = base + static_cast<uint32_t>(step % kStages) * kStageBytes;
    sums.add(stage, stage + kBytesM);
  }
  wait_for_copies<0>();

  // [part][group][y channel][tap][x channel]
  float* out = parts + number * p.weights + static_cast<int64_t>(group) * p.rows * p.taps * p.columns;
#pragma unroll
  for (int slice = 0; slice < kN; slice += 32)
    sums.visit(slice, [&](int row, int offset, float sum) {
      const int o = m0 + row, t = (n0 + slice + offset) / p.x_filled, c = (n0 + slice + offset) % p.x_filled;
      if (o < p.rows && t < p.taps && c < p.columns) out[(o * p.taps + t) * p.columns + c] = sum;
    });
}

__global__ void __launch_bounds__(kThreads)
    finish_kernel(Conv conv, bool padded, int64_t weights, int64_t parts, const float* sums) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i >= weights) return;
  float sum = 0;
  for (int64_t part = 0; part < parts; ++part) sum += sums[part * weights + i];
  int64_t rest = i;
  Index5 at;
  at.c = rest % conv.x_channels;
  rest /= conv.x_channels;
  at.w = rest % conv.axes[2].kernel;
  rest /= conv.axes[2].kernel;
  at.h = rest % conv.axes[1].kernel;
  rest /= conv.axes[1].kernel;
  at.d = rest % conv.axes[0].kernel;
  at.n = rest / conv.axes[0].kernel;
  if (padded && !isfinite(sum)) sum = grad_weight_sum(conv, at, 0, 1);
  store_any(conv.w.dtype, conv.w.data, offset_of(conv.w, at), sum);
}

int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t taps_of(const Conv& conv) { return conv.axes[0].kernel * conv.axes[1].kernel * conv.axes[2].kernel; }
int64_t places_of(const Conv& conv) { return conv.batch * conv.axes[0].y * conv.axes[1].y * conv.axes[2].y; }

struct Cut {
  int m, n;
};
int64_t columns_of(const Conv& conv, int64_t chunk) {
  return taps_of(conv) * (ceil_of(conv.x_channels, chunk) * chunk);
}
Cut cut_of(int64_t rows, int64_t columns) {
  return {rows <= 64 && columns > 64 ? 64 : 128, columns > 64 ? 128 : columns > 32 ? 64 : 32};
}

template <class E, int kM, int kN>
void launch(const Product& p, const WeightProduct& product, int64_t parts, Stream stream) {
  constexpr int kBytes =
      kStages * TileSums<E, kM, kN, true>::kTerms * (kM + kN) * static_cast<int>(sizeof(E));
  cudaFuncSetAttribute(product_kernel<E, kM, kN>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const dim3 grid(static_cast<unsigned>(ceil_of(p.taps * p.x_filled, kN)),
                  static_cast<unsigned>(ceil_of(p.rows, kM)), static_cast<unsigned>(p.groups * parts));
  product_kernel<E, kM, kN><<<grid, kThreads, kBytes, stream>>>(
      p, static_cast<const E*>(product.x_rows), static_cast<const E*>(product.y_rows), product.workspace);
}

template <class E>
void launch_type(const WeightProduct& product, Stream stream) {
  const Conv& conv = product.conv;
  constexpr int kChunk = 16 / sizeof(E);
  const int64_t parts = weight_product_parts(conv, product.type);
  Product p;
  for (int a = 0; a < 3; ++a) {
    const Axis& axis = conv.axes[a];
    p.outputs[a] = FastDiv(axis.y > 0 ? axis.y : 1);
    p.stride[a] = static_cast<int>(axis.stride);
    p.dilation[a] = static_cast<int>(axis.dilation);
    p.pad[a] = static_cast<int>(axis.pad);
    p.source[a] = static_cast<int>(axis.x);
    p.kernel[a] = static_cast<int>(axis.kernel);
  }
  const int64_t columns = columns_of(conv, kChunk);
  const Cut cut = cut_of(conv.y_channels, columns);
  p.places = static_cast<uint32_t>(places_of(conv));
  p.part = static_cast<uint32_t>(ceil_of(ceil_of(p.places, parts), 32) * 32);
  p.rows = static_cast<int>(conv.y_channels);
  p.columns = static_cast<int>(conv.x_channels);
  p.y_filled = static_cast<int>(ceil_of(p.rows, kChunk) * kChunk);
  p.x_filled = static_cast<int>(ceil_of(p.columns, kChunk) * kChunk);
  p.groups = static_cast<int>(conv.groups);
  p.y_pitch = int64_t{p.y_filled} * p.groups;
  p.x_pitch = int64_t{p.x_filled} * p.groups;
  p.taps = taps_of(conv);
  p.weights = conv.groups * conv.y_channels * p.taps * conv.x_channels;
  if (cut.m == 64)
    launch<E, 64, 128>(p, product, parts, stream);
  else if (cut.n == 128)
    launch<E, 128, 128>(p, product, parts, stream);
  else if (cut.n == 64)
    launch<E, 128, 64>(p, product, parts, stream);
  else
    launch<E, 128, 32>(p, product, parts, stream);
  finish_kernel<<<static_cast<unsigned>(ceil_of(p.weights, kThreads)), kThreads, 0, stream>>>(
      conv, product.padded, p.weights, parts, product.workspace);
}

}  // namespace

int64_t weight_product_parts(const Conv& conv, RowType type) {
  const int64_t columns = columns_of(conv, chunk_elements(type));
  const Cut cut = cut_of(conv.y_channels, columns);
  const int64_t blocks = ceil_of(columns, cut.n) * ceil_of(conv.y_channels, cut.m) * conv.groups;
  // Two waves of two blocks on some 132 multiprocessors, but at least 512 places a part.
  int64_t parts = ceil_of(528, blocks > 0 ? blocks : 1);
  const int64_t most = ceil_of(places_of(conv), 512);
  if (parts > most) parts = most;
  if (parts * conv.groups > 65535) parts = 65535 / conv.groups;
  return parts < 1 ? 1 : parts;
}

void weight_product(const WeightProduct& product, Stream stream) {
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
