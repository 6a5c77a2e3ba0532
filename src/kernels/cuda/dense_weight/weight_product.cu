// SPDX-License-Identifier: Apache-2.0
// w[o, tap, c] = Σ_p y[p, o] · x[place(p, tap), c]
//
// A block makes kM y channels by kN columns (tap, x channel) over a part of the pixels, 128 bytes of a
// column a step, several steps in flight. Rows of both operands run along channels, so the fragments are
// transposed as they are read. Parts go to the workspace as FP32, a second kernel adds them in order.

#include "base/checked.h"
#include "kernels/cuda/counts.h"
#include "kernels/cuda/dense_weight/weight_parts.h"
#include "kernels/cuda/dense_weight/weight_product_plan.h"
#include "kernels/cuda/dense_weight/weight_tiles.cuh"
#include "kernels/cuda/launch.cuh"

namespace retrograd::kernels::cuda {
namespace {

using weight::Fragments;
using weight::Product;
using weight::Stage;

template <class Math, class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    product_kernel(const __grid_constant__ Product p, const char* x_rows, const char* y_rows, float* parts) {
  using E = typename Math::Element;
  using S = Stage<E, C>;
  constexpr int kTerms = S::kTerms, kChunksM = C::kM / S::kChunk, kChunksN = C::kN / S::kChunk;
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ int4 table[C::kStages][kTerms];  // places of a step: image, then where tap 0 is, without padding
  const uint32_t base = shared_address(shared);
  const int n0 = static_cast<int>(blockIdx.x) * C::kN, m0 = static_cast<int>(blockIdx.y) * C::kM;
  const int group = static_cast<int>(blockIdx.z) % p.groups, number = static_cast<int>(blockIdx.z) / p.groups;
  const uint32_t begin = static_cast<uint32_t>(number) * p.part, end = min(begin + p.part, p.places);
  const int steps = end > begin ? static_cast<int>((end - begin + kTerms - 1) / kTerms) : 0;

  // A thread copies the same chunk of every kPass-th row: one place in its row, one tap.
  static_assert(C::kThreads % kChunksM == 0 && C::kThreads % kChunksN == 0);
  constexpr int kPassM = C::kThreads / kChunksM, kPassN = C::kThreads / kChunksN;
  const int chunk_m = static_cast<int>(threadIdx.x) % kChunksM,
            row_m = static_cast<int>(threadIdx.x) / kChunksM;
  const int chunk_n = static_cast<int>(threadIdx.x) % kChunksN,
            row_n = static_cast<int>(threadIdx.x) / kChunksN;
  const int column = n0 + chunk_n * S::kChunk;
  const int tap = column / p.x_filled, channel = column % p.x_filled;
  const int shift[3] = {tap / (p.kernel[1] * p.kernel[2]) * p.dilation[0] - p.pad[0],
                        tap / p.kernel[2] % p.kernel[1] * p.dilation[1] - p.pad[1],
                        tap % p.kernel[2] * p.dilation[2] - p.pad[2]};
  const bool live_m = m0 + chunk_m * S::kChunk < p.y_filled, live_n = tap < p.taps;
  y_rows += (static_cast<int64_t>(group) * p.y_filled + (live_m ? m0 + chunk_m * S::kChunk : 0)) * sizeof(E);
  x_rows += (static_cast<int64_t>(group) * p.x_filled + channel) * sizeof(E);

  const auto tabulate = [&](int step, int term) {
    const uint32_t place = begin + static_cast<uint32_t>(step) * kTerms + term;
    uint32_t w = min(place, p.places - 1);
    uint32_t h = p.outputs[2].split(w);
    uint32_t d = p.outputs[1].split(h);
    const uint32_t n = p.outputs[0].split(d);
    table[step % C::kStages][term] =
        int4{static_cast<int>(n) * p.source[0], static_cast<int>(d) * p.stride[0],
             static_cast<int>(h) * p.stride[1],
             place < end ? static_cast<int>(w) * p.stride[2] : -(1 << 30)};  // beyond every edge
  };
  const auto load = [&](int step) {
    if (step >= steps) return;
    const int slot = step % C::kStages;
    const uint32_t stage = base + static_cast<uint32_t>(slot) * S::kBytes;
    const uint32_t first = begin + static_cast<uint32_t>(step) * kTerms;
#pragma unroll
    for (int i = 0; i < kTerms; i += kPassM) {
      const uint32_t place = first + row_m + i;
      const bool inside = place < end && live_m;
      copy_chunk(stage + (row_m + i) * S::kRowM + chunk_m * 16,
                 y_rows + static_cast<uint64_t>(inside ? place : 0) * p.y_pitch, inside);
    }
#pragma unroll
    for (int i = 0; i < kTerms; i += kPassN) {
      const int4 place = table[slot][row_n + i];
      const int sd = place.y + shift[0], sh = place.z + shift[1], sw = place.w + shift[2];
      const bool inside = live_n && static_cast<unsigned>(sd) < static_cast<unsigned>(p.source[0]) &&
                          static_cast<unsigned>(sh) < static_cast<unsigned>(p.source[1]) &&
                          static_cast<unsigned>(sw) < static_cast<unsigned>(p.source[2]);
      const int at = ((place.x + sd) * p.source[1] + sh) * p.source[2] + sw;
      const uint32_t to = stage + kTerms * S::kRowM + (row_n + i) * S::kRowN + chunk_n * 16;
      const char* const from =
          x_rows + static_cast<uint64_t>(static_cast<uint32_t>(inside ? at : 0)) * p.x_pitch;
      if (p.near)
        weight::copy_near(to, from, inside);
      else
        copy_chunk(to, from, inside);
    }
  };

  for (int i = static_cast<int>(threadIdx.x); i < C::kStages * kTerms; i += C::kThreads)
    tabulate(i / kTerms, i % kTerms);
  __syncthreads();
  // A barrier is between this and the copies that read it.
  const auto tabulate_next = [&](int step) {
    if (threadIdx.x < kTerms) tabulate(step + C::kStages, static_cast<int>(threadIdx.x));
  };
  const WarpCorner<C> warp;
  WarpSums<Math, C::kWarpM, C::kWarpN> sums;
  multiply_steps<C, S::kBytes, Fragments<E, C>>(steps, base, warp, sums, load, tabulate_next);

  // [part][group][y channel][tap][x channel, filled up]
  float* out = parts + number * p.weights + static_cast<int64_t>(group) * p.rows * p.columns;
  Fragments<E, C>::visit(sums.sums, [&](int row, int offset, auto values) {
    const int o = m0 + warp.row + row, n = n0 + warp.column + offset;
    if (o < p.rows && n < p.columns)
      *reinterpret_cast<decltype(values)*>(out + static_cast<int64_t>(o) * p.columns + n) = values;
  });
}

template <class Math, class C>
void launch(const Product& p, const WeightProduct& product, int64_t parts, Stream stream) {
  constexpr int kBytes = C::kStages * Stage<typename Math::Element, C>::kBytes;
  start(product_kernel<Math, C>, {ceil_div(p.columns, C::kN), ceil_div(p.rows, C::kM), p.groups * parts},
        C::kThreads, kBytes, stream, p, product.x_rows, product.y_rows, product.workspace);
}

Product prepare(const WeightProduct& product, int64_t parts, int64_t x_columns) {
  const Conv& conv = product.conv;
  const int64_t chunk = chunk_elements(product.math), element = 16 / chunk;
  Product p;
  set_axes(conv, p);
  p.places = static_cast<uint32_t>(places_of(conv));
  p.part = static_cast<uint32_t>(filled_to(ceil_div(p.places, parts), 64));
  p.rows = static_cast<int>(conv.y_channels);
  p.y_filled = static_cast<int>(filled_to(p.rows, chunk));
  p.x_filled = static_cast<int>(filled_to(conv.x_channels, chunk));
  p.groups = static_cast<int>(conv.groups);
  p.y_pitch = static_cast<uint32_t>(p.y_filled * element * p.groups);
  p.x_pitch = static_cast<uint32_t>(p.x_filled * element * p.groups);
  p.taps = static_cast<int>(taps_of(conv));
  p.x_columns = static_cast<int>(x_columns);
  p.columns = p.taps * p.x_columns;
  p.near = p.taps > 1 && p.x_filled < 64;
  p.weights = conv.groups * conv.y_channels * p.columns;
  return p;
}

template <class Math>
void launch_tiles(const Product& p, const WeightProduct& product, const WeightChoice& choice, Stream stream) {
  const int64_t parts = choice.parts;
  constexpr bool kSixteenBits = sizeof(typename Math::Element) == 2;
  const auto is = [&](int m, int n) { return choice.m == m && choice.n == n; };
  if (is(32, 128)) return launch<Math, TileCut<32, 128, 32, 32, 4, 2>>(p, product, parts, stream);
  if (is(64, 128)) return launch<Math, TileCut<64, 128, 64, 32, 4, 2>>(p, product, parts, stream);
  if (is(128, 64)) return launch<Math, TileCut<128, 64, 64, 32, 4, 2>>(p, product, parts, stream);
  if (is(64, 64)) return launch<Math, TileCut<64, 64, 32, 32, 3, 3>>(p, product, parts, stream);
  if constexpr (kSixteenBits) {
    if (is(32, 64)) return launch<Math, TileCut<32, 64, 32, 16, 4, 3>>(p, product, parts, stream);
    if (is(64, 32)) return launch<Math, TileCut<64, 32, 16, 32, 4, 3>>(p, product, parts, stream);
    if (is(16, 128)) return launch<Math, TileCut<16, 128, 16, 32, 3, 3>>(p, product, parts, stream);
    if (is(32, 32)) return launch<Math, TileCut<32, 32, 16, 16, 4, 4>>(p, product, parts, stream);
  } else {
    if (is(32, 64)) return launch<Math, TileCut<32, 64, 32, 32, 4, 3>>(p, product, parts, stream);
    if (is(64, 32)) return launch<Math, TileCut<64, 32, 32, 32, 4, 3>>(p, product, parts, stream);
  }
  launch<Math, TileCut<128, 128, 64, 32, 4, 1>>(p, product, parts, stream);
}

template <class Math>
void launch_in(const WeightProduct& product, Stream stream) {
  const WeightRepair repair = repair_after(product.math, product.padded);
  const WeightChoice& choice = product.choice;
  const int64_t chunk = chunk_elements(product.math);
  Product p = prepare(product, choice.parts, f32_weight_columns(product.conv));
  if (choice.m != 0 || !f32_weight(p, product, stream)) {
    p = prepare(product, choice.parts, filled_to(product.conv.x_channels, chunk));
    launch_tiles<Math>(p, product, choice, stream);
  }
  add_weight_parts(in_plain_parts({product.asked, repair, product.patches, p.x_columns, product.workspace,
                                   ceil_div(p.places, p.part)},
                                  p.part),
                   stream);
}

}  // namespace

void weight_product(const WeightProduct& product, Stream stream) {
  with_math<InTF32>(product.math, [&](auto math) { launch_in<decltype(math)>(product, stream); });
}

}  // namespace retrograd::kernels::cuda
