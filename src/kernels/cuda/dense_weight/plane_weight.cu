// SPDX-License-Identifier: Apache-2.0
// w[o, c, tap] = Σ_p y[p, o] · x[place(p, tap), c], operands in place
//
// A block makes kM y channels by kN columns (x channel, tap) over a part of the pixels, 128 bytes of pixels a
// step, four steps in flight. Rows in shared memory run along pixels: that is how planes lie, so lanes copy
// neighbouring pixels of a channel, 16 bytes of them or 4; with 4 a lane knows its place and goes over
// columns, whose offsets are in a table. Parts go to the workspace as FP32 and are added in order.
#include "base/checked.h"
#include "kernels/cuda/counts.h"
#include "kernels/cuda/dense/plane_tiles.cuh"
#include "kernels/cuda/dense_weight/plane_weight_plan.h"
#include "kernels/cuda/dense_weight/weight_parts.h"
#include "kernels/cuda/launch.cuh"

namespace retrograd::kernels::cuda {
namespace {

using planes::copy_some;
using planes::Cut;
using planes::Fragments;
using planes::Product;

// Where a column reads, from where tap 0 of x channel 0 does.
struct Column {
  int64_t offset;
  int shift[3];
  int live;
};

__device__ Column column_of(const Product& p, int column) {
  Column c{};
  if (column >= p.columns) return c;
  const int channel = column / p.taps, tap = column % p.taps;
  c.shift[0] = tap / (p.kernel[1] * p.kernel[2]) * p.dilation[0];
  c.shift[1] = tap / p.kernel[2] % p.kernel[1] * p.dilation[1];
  c.shift[2] = tap % p.kernel[2] * p.dilation[2];
  c.offset = channel * p.x_strides[1];
  for (int a = 0; a < 3; ++a) c.offset += c.shift[a] * p.x_strides[2 + a];
  c.live = 1;
  return c;
}

// A place of y.
struct Place {
  uint32_t n, d, h, w;
  __device__ Place(const Product& p, uint32_t place) {
    w = place;
    h = p.outputs[2].split(w);
    d = p.outputs[1].split(h);
    n = p.outputs[0].split(d);
  }
  __device__ int64_t in_y(const Product& p) const {
    return n * p.y_strides[0] + d * p.y_strides[2] + h * p.y_strides[3] + w * p.y_strides[4];
  }
};

template <class E, class C, bool kWideX, bool kWideY>
struct Copies {
  // Lanes along a row's 128 bytes.
  static constexpr int kLanesX = kWideX ? 8 : 32, kLanesY = kWideY ? 8 : 32;
  static constexpr int kBytesX = 128 / kLanesX, kBytesY = 128 / kLanesY;
  const Product& p;
  const E *x, *y;         // of the block's first rows
  const Column* columns;  // of the tile
  int rows;               // of y, from the tile's first on
  uint32_t end;

  __device__ void load(uint32_t stage, uint32_t first) const {
    load_y(stage, first);
    load_x(stage + C::kM * C::kRow, first);
  }
  __device__ void load_y(uint32_t stage, uint32_t first) const {
    constexpr int kDown = 32 / kLanesY;
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const uint32_t place = first + lane % kLanesY * (kBytesY / static_cast<int>(sizeof(E)));
    const bool there = place < end;
    const E* const from = y + Place(p, there ? place : first).in_y(p);
#pragma unroll
    for (int i = 0; i < C::kM; i += C::kWarps * kDown) {
      const int row = i + warp * kDown + lane / kLanesY;
      const bool live = there && row < rows;
      copy_some<kBytesY>(stage + row * C::kRow + lane % kLanesY * kBytesY,
                         from + (live ? row : 0) * p.y_strides[1], live);
    }
  }
  __device__ void load_x(uint32_t stage, uint32_t first) const {
    constexpr int kDown = 32 / kLanesX;
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const uint32_t place = first + lane % kLanesX * (kBytesX / static_cast<int>(sizeof(E)));
    const bool there = place < end;
    const Place at(p, there ? place : first);
    const int sd = static_cast<int>(at.d) * p.stride[0] - p.pad[0],
              sh = static_cast<int>(at.h) * p.stride[1] - p.pad[1],
              sw = static_cast<int>(at.w) * p.stride[2] - p.pad[2];
    const int64_t offset =
        at.n * p.x_strides[0] + sd * p.x_strides[2] + sh * p.x_strides[3] + sw * p.x_strides[4];
#pragma unroll 8
    for (int i = 0; i < C::kN; i += C::kWarps * kDown) {
      const int row = i + warp * kDown + lane / kLanesX;
      const Column& column = columns[row];
      bool live = there && column.live != 0;
      if (!kWideX && p.padded)
        live = live && static_cast<unsigned>(sd + column.shift[0]) < static_cast<unsigned>(p.source[0]) &&
               static_cast<unsigned>(sh + column.shift[1]) < static_cast<unsigned>(p.source[1]) &&
               static_cast<unsigned>(sw + column.shift[2]) < static_cast<unsigned>(p.source[2]);
      copy_some<kBytesX>(stage + row * C::kRow + lane % kLanesX * kBytesX,
                         x + (live ? offset + column.offset : 0), live);
    }
  }
};

template <class Math, class C, bool kWideX, bool kWideY>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    product_kernel(const __grid_constant__ Product p, const typename Math::Element* x,
                   const typename Math::Element* y, float* parts) {
  using E = typename Math::Element;
  constexpr int kTerms = 128 / sizeof(E);
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ Column columns[C::kN];
  const uint32_t base = shared_address(shared);
  const int n0 = static_cast<int>(blockIdx.x) * C::kN, m0 = static_cast<int>(blockIdx.y) * C::kM;
  const int group = static_cast<int>(blockIdx.z) % p.groups, number = static_cast<int>(blockIdx.z) / p.groups;
  const uint32_t begin = static_cast<uint32_t>(number) * p.part, end = min(begin + p.part, p.places);
  const int steps = end > begin ? static_cast<int>((end - begin + kTerms - 1) / kTerms) : 0;
  for (int i = static_cast<int>(threadIdx.x); i < C::kN; i += C::kThreads) columns[i] = column_of(p, n0 + i);
  const Copies<E, C, kWideX, kWideY> copies{p,
                                            x + static_cast<int64_t>(group) * p.x_channels * p.x_strides[1],
                                            y + (static_cast<int64_t>(group) * p.rows + m0) * p.y_strides[1],
                                            columns,
                                            p.rows - m0,
                                            end};
  __syncthreads();
  const auto load = [&](int step) {
    if (step < steps) copies.load(base + step % C::kStages * C::kStage, begin + step * kTerms);
  };
  const WarpCorner<C> warp;
  WarpSums<Math, C::kWarpM, C::kWarpN> sums;
  multiply_steps<C, C::kStage, Fragments<C>>(steps, base, warp, sums, load, [](int) {});

  // [part][group][y channel][x channel][tap], filled up
  float* out = parts + number * p.weights + static_cast<int64_t>(group) * p.rows * p.pitch;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < C::kWarpM / 16; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int o = m0 + warp.row + i * 16 + lane / 4 + half * 8;
      if (o >= p.rows) continue;
#pragma unroll
      for (int j = 0; j < C::kWarpN / 8; ++j) {
        const int n = n0 + warp.column + j * 8 + lane % 4 * 2;
        if (n < p.pitch)
          *reinterpret_cast<float2*>(out + o * p.pitch + n) =
              float2{sums.sums[i][j][2 * half], sums.sums[i][j][2 * half + 1]};
      }
    }
}

Product prepare(const PlaneWeight& product) {
  const Conv& conv = product.conv;
  Product p;
  set_axes(conv, p);
  p.padded = product.padded;
  for (int i = 0; i < 5; ++i) p.x_strides[i] = conv.x.strides[i], p.y_strides[i] = conv.y.strides[i];
  p.places = static_cast<uint32_t>(places_of(conv));
  p.part = static_cast<uint32_t>(filled_to(ceil_div(p.places, product.choice.parts), 64));
  p.rows = static_cast<int>(conv.y_channels);
  p.x_channels = static_cast<int>(conv.x_channels);
  p.taps = static_cast<int>(taps_of(conv));
  p.columns = p.x_channels * p.taps;
  p.groups = static_cast<int>(conv.groups);
  p.pitch = plane_pitch(conv);
  p.weights = conv.groups * conv.y_channels * p.pitch;
  return p;
}

template <class Math, class C, bool kWideX, bool kWideY>
void launch(const Product& p, const PlaneWeight& product, Stream stream) {
  constexpr int kBytes = C::kStages * C::kStage;
  const auto kernel = product_kernel<Math, C, kWideX, kWideY>;
  using E = typename Math::Element;
  start(kernel, {ceil_div(p.columns, C::kN), ceil_div(p.rows, C::kM), p.groups * product.choice.parts},
        C::kThreads, kBytes, stream, p, product.conv.x.data, product.conv.y.data, product.workspace);
}

template <class Math, class C>
void launch_copies(const Product& p, const PlaneWeight& product, Stream stream) {
  const PlaneCopies& copies = product.choice.copies;
  if (copies.wide_x && copies.wide_y) return launch<Math, C, true, true>(p, product, stream);
  if constexpr (sizeof(typename Math::Element) == 4)
    if (copies.wide_y) return launch<Math, C, false, true>(p, product, stream);
  launch<Math, C, false, false>(p, product, stream);
}

template <class Math>
void launch_tiles(const Product& p, const PlaneWeight& product, Stream stream) {
  const auto is = [&](int m, int n) { return product.choice.m == m && product.choice.n == n; };
  if (is(128, 64)) return launch_copies<Math, Cut<128, 64, 64, 32, 2>>(p, product, stream);
  if (is(64, 128)) return launch_copies<Math, Cut<64, 128, 64, 32, 2>>(p, product, stream);
  if (is(64, 64)) return launch_copies<Math, Cut<64, 64, 32, 32, 3>>(p, product, stream);
  if (is(32, 64)) return launch_copies<Math, Cut<32, 64, 32, 16, 4>>(p, product, stream);
  if (is(64, 32)) return launch_copies<Math, Cut<64, 32, 16, 32, 4>>(p, product, stream);
  if (is(64, 16)) return launch_copies<Math, Cut<64, 16, 16, 16, 4>>(p, product, stream);
  if (is(16, 64)) return launch_copies<Math, Cut<16, 64, 16, 16, 4>>(p, product, stream);
  launch_copies<Math, Cut<32, 32, 16, 16, 5>>(p, product, stream);
}

template <class Math>
void launch_in(const PlaneWeight& product, Stream stream) {
  const Product p = prepare(product);
  launch_tiles<Math>(p, product, stream);
  const WeightRepair repair = repair_after(product.math, product.padded);
  add_weight_parts(
      in_plain_parts({product.asked, repair, true, p.pitch, product.workspace, ceil_div(p.places, p.part)},
                     p.part),
      stream);
}

}  // namespace

void plane_weight(const PlaneWeight& product, Stream stream) {
  with_math<InNearTF32>(product.math, [&](auto math) { launch_in<decltype(math)>(product, stream); });
}

}  // namespace retrograd::kernels::cuda
