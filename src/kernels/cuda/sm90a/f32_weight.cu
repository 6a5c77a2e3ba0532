// SPDX-License-Identifier: Apache-2.0
// weight_product's sums in FP32 on Hopper: tiles of columns (tap, x channel) by y channels over a part of the
// pixels, 32 pixels a step, multiplied by warpgroups (f32_sums.cuh).
//
// Rows of both operands run along channels, and products of TF32 want them along the sum: of x (A) the
// fragments are read across the rows, two neighbouring channels at once; y (B) is transposed four pixels by
// four channels at a time on its way to the panels.
#include <algorithm>

#include "base/checked.h"
#include "kernels/cuda/dense/tensor_map.h"
#include "kernels/cuda/dense_weight/weight_product_plan.h"
#include "kernels/cuda/dense_weight/weight_tiles.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/sm90a/f32_sums.cuh"

namespace retrograd::kernels::cuda {
namespace {

using f32::Barriers;
using f32::Cut;
using f32::kTerms;
using f32::Multiplier;
using weight::Product;

struct Maps {
  CUtensorMap places;
  int axes;  // of the map of places: w and h, or all three
  FastDiv by_channels, by_kernel_w, by_kernel_h;
};

// Parts are outermost: blocks at work at the same time read the same places.
struct Item {
  int m0, n0, group, number;
  uint32_t begin, end;  // places
  int steps;
};
template <class C>
struct Items {
  const Product& p;
  uint32_t down, across, count;
  __device__ Items(const Product& product)
      : p(product),
        down(static_cast<uint32_t>((p.columns + C::kM - 1) / C::kM)),
        across(static_cast<uint32_t>((p.rows + C::kN - 1) / C::kN)),
        count(down * across * p.groups * ((p.places + p.part - 1) / p.part)) {}
  __device__ Item operator[](uint32_t i) const {
    Item item;
    item.n0 = static_cast<int>(i % across) * C::kN;
    i /= across;
    item.m0 = static_cast<int>(i % down) * C::kM;
    i /= down;
    item.group = static_cast<int>(i % p.groups);
    item.number = static_cast<int>(i / p.groups);
    item.begin = static_cast<uint32_t>(item.number) * p.part;
    item.end = min(item.begin + p.part, p.places);
    item.steps = static_cast<int>((item.end - item.begin + kTerms - 1) / kTerms);
    return item;
  }
};

// Of x, boxes of 32 places by 32 channels of a tap, side by side: a lane asks for one. The last box of a tap
// may reach beyond the group's channels: what it brings goes to columns that nobody reads. Of y every thread
// copies blocks of four places by four channels, kBlocks of them, and transposes them where they lie.
template <class C>
struct Operands {
  static constexpr int kBlocks = C::kN / 64, kBoxes = C::kM / kTerms;
  const Product& p;
  const Maps& maps;
  const Items<C>& items;
  const char *all, *from;        // from: this thread's first place and channels of the next step
  uint32_t number, left, place;  // left: places of the item, from `place` on
  int steps, channel, channels;  // channel: of this lane's box; channels: of y, from this thread's first on
  uint16_t to[3];                // from tap 0 to the box's

  __device__ Operands(const Product& product, const Maps& m, const Items<C>& i, const char* y)
      : p(product), maps(m), items(i), all(y), number(blockIdx.x) {
    begin();
  }
  __device__ void begin() {
    if (number >= items.count) return;
    const Item item = items[number];
    steps = item.steps;
    place = item.begin;
    left = item.end - item.begin;
    const int first = item.n0 + static_cast<int>(threadIdx.x) / 8 * 4;
    channels = p.y_filled - first;
    from = all + static_cast<uint64_t>(place + place_of(0)) * p.y_pitch +
           (static_cast<int64_t>(item.group) * p.y_filled + first) * 4;
    // Beyond the last tap the sums are not written: any box will do.
    auto c = static_cast<uint32_t>(
        min(item.m0 + static_cast<int>(threadIdx.x) % kBoxes * kTerms, p.columns - kTerms));
    uint32_t tap_w = maps.by_channels.split(c);
    uint32_t tap_h = maps.by_kernel_w.split(tap_w);
    const uint32_t tap_d = maps.by_kernel_h.split(tap_h);
    to[0] = static_cast<uint16_t>(tap_d * p.dilation[0]);
    to[1] = static_cast<uint16_t>(tap_h * p.dilation[1]);
    to[2] = static_cast<uint16_t>(tap_w * p.dilation[2]);
    channel = static_cast<int>(c) + item.group * p.x_filled;
  }
  // Eight lanes take eight times four places, so that they store to different banks; four lanes make 64
  // bytes. The places of a panel's eight terms are 0, 2, 4, 6, 1, 3, 5, 7: so are those of Fragments.
  __device__ static uint32_t place_of(int i) {
    const uint32_t chunk = threadIdx.x % 8;
    return chunk / 2 * 8 + chunk % 2 + 2 * i;
  }
  // Where the panel has the i-th channel of a block: its i-th place is copied to there.
  __device__ static uint32_t target(uint32_t panels, int block, int i) {
    const uint32_t row = threadIdx.x / 8 * 4 + i;
    return panels + row * 128 + ((threadIdx.x % 8) ^ (row & 7)) * 16 + block * 64 * 128;
  }
  __device__ void ask(uint32_t stage, uint32_t barrier) {
    if (threadIdx.x < kBoxes) ask_box(stage + threadIdx.x * kTerms * 128, barrier);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool there = place_of(i) < left;
      const char* const row = from + static_cast<uint64_t>(2 * i) * p.y_pitch;
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {
        const bool inside = there && b * 64 < channels;
        copy_chunk(target(stage + C::kABytes, b, i), inside ? row + b * 256 : all, inside);
      }
    }
    from += static_cast<uint64_t>(kTerms) * p.y_pitch;
    place += kTerms;
    left -= kTerms;
    if (--steps > 0) return;
    number += gridDim.x;
    begin();
  }
  __device__ void ask_box(uint32_t target, uint32_t barrier) const {
    uint32_t w = place;
    uint32_t h = p.outputs[2].split(w);
    uint32_t d = p.outputs[1].split(h);
    const auto n = static_cast<int>(p.outputs[0].split(d));
    const int at_h = static_cast<int>(h) * p.stride[1] - p.pad[1],
              at_w = static_cast<int>(w) * p.stride[2] - p.pad[2];
    if (maps.axes == 2)
      hopper::load_places(target, &maps.places, barrier, channel, at_w, at_h, n, to[2], to[1]);
    else
      hopper::load_places(target, &maps.places, barrier, channel, at_w, at_h,
                          static_cast<int>(d) * p.stride[0] - p.pad[0], n, to[2], to[1], to[0]);
  }
  __device__ static void make_panels(uint32_t panels) {
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      uint32_t rows[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) load_words(target(panels, b, i), rows[i]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t column[4] = {rows[0][i], rows[1][i], rows[2][i], rows[3][i]};
        f32::store_to_panels<C>(target(panels, b, i), column);
      }
    }
  }
};

// Rows lane/4 and lane/4 + 8 of a warp's 16 are neighbouring columns, terms t and t + 4 of eight neighbouring
// places.
struct Fragments {
  uint32_t at, chunk, line;
  __device__ explicit Fragments(int first_row) {
    const uint32_t m = first_row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 * 2;
    line = threadIdx.x % 4 * 2;
    chunk = m % kTerms / 4;
    at = m / kTerms * kTerms * 128 + line * 128 + m % 4 * 4;
  }
  __device__ void load(uint32_t stage, int i, int j, uint32_t (&a)[4]) const {
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half)
      asm volatile("ld.shared.v2.b32 {%0,%1}, [%2];"
                   : "=r"(a[2 * half]), "=r"(a[2 * half + 1])
                   : "r"(stage + at + i * 64 * 128 + (j * 8 + half) * 128 + (chunk ^ (line + half)) * 16));
  }
};

template <class C>
__device__ void write(const Product& p, const Item& item, int first_row,
                      const float (&sums)[C::kDown][C::kN / 2], float* parts) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // [part][group][y channel][tap][x channel, filled up]
  float* const out = parts + item.number * p.weights + static_cast<int64_t>(item.group) * p.rows * p.columns;
#pragma unroll
  for (int i = 0; i < C::kDown; ++i) {
    const int m = item.m0 + first_row + i * 64 + static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane / 4 * 2;
    if (m >= p.columns) continue;
#pragma unroll
    for (int j = 0; j < C::kN / 8; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int o = item.n0 + j * 8 + lane % 4 * 2 + e;
        if (o < p.rows)
          *reinterpret_cast<float2*>(out + static_cast<int64_t>(o) * p.columns + m) =
              float2{sums[i][4 * j + e], sums[i][4 * j + 2 + e]};
      }
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    f32_kernel(const __grid_constant__ Product p, const __grid_constant__ Maps maps, const char* y_rows,
               float* parts) {
  extern __shared__ unsigned char shared[];
  __shared__ uint64_t memory[3 * C::kStages];
  const uint32_t base = (shared_address(shared) + 1023) & ~1023u;
  const Barriers<C> barriers(memory);
  const Items<C> items(p);
  if (threadIdx.x < 128) {
    hopper::give_registers_back<C::kBringing>();
    int64_t steps = 0;
    for (uint32_t i = blockIdx.x; i < items.count; i += gridDim.x) steps += items[i].steps;
    Operands<C> operands(p, maps, items, y_rows);
    f32::bring<C>(steps, barriers, base, operands);
  } else {
    hopper::take_registers<C::kMultiplying>();
    const int first_row = (static_cast<int>(threadIdx.x) / 128 - 1) * C::kDown * 64;
    const Fragments fragments(first_row);
    Multiplier<C, Fragments> multiplier(barriers, fragments, base);
    for (uint32_t i = blockIdx.x; i < items.count; i += gridDim.x) {
      const Item item = items[i];
      float sums[C::kDown][C::kN / 2];
      multiplier.multiply(sums, item.steps);
      write<C>(p, item, first_row, sums, parts);
    }
  }
}

template <int kProducts, int kDown, int kN, int kGroups, int kStages>
using Weight = Cut<kProducts, kDown, kN, kGroups, kStages, false>;

template <class C>
bool launch(const Product& p, const WeightProduct& product, Stream stream) {
  Maps maps;
  const PlacesMap places = f32_weight_places(product.conv, p.x_filled);
  if (!make_map(places, MapType::kF32, product.x_rows, &maps.places)) return false;
  maps.axes = places.axes;
  maps.by_channels = FastDiv(p.x_columns);
  maps.by_kernel_w = FastDiv(p.kernel[2]);
  maps.by_kernel_h = FastDiv(p.kernel[1]);
  const int64_t items =
      ceil_div(p.columns, C::kM) * ceil_div(p.rows, C::kN) * p.groups * ceil_div(p.places, p.part);
  start(f32_kernel<C>, std::min<int64_t>(items, 132), C::kThreads, C::kBytes, stream, p, maps, product.y_rows,
        product.workspace);
  return true;
}

bool launch_three(const Product& p, const WeightProduct& product, Stream stream) {
  const int m = f32_weight_choice(product.conv, ProductMath::kF32).m;
  if (m == 256) return launch<Weight<3, 2, 64, 2, 4>>(p, product, stream);
  if (m == 192) return launch<Weight<3, 1, 64, 3, 5>>(p, product, stream);
  return launch<Weight<3, 1, 128, 2, 4>>(p, product, stream);
}

}  // namespace

bool f32_weight(const Product& p, const WeightProduct& product, Stream stream) {
  return product.math == ProductMath::kF32 ? launch_three(p, product, stream)
                                           : launch<Weight<1, 2, 64, 2, 5>>(p, product, stream);
}

}  // namespace retrograd::kernels::cuda
