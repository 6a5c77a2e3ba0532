// SPDX-License-Identifier: Apache-2.0
// result[m, n] = Σ_{tap, c} source[place(m, tap), c] · weight[tap, n, c] of groups of few channels
// (group_rows.h)
//
// A warp makes 32 positions of a residue by up to 32 channels: fragments of the source are read from the box
// where a tap finds them, those of the weights in the order in which lanes hold them, four eights of channels
// at once. Products span eight or 16 channels of joined groups, so others never meet. Four lanes that hold a
// pixel's channels exchange them and store 16 bytes each.
//
// Zeros beyond the edge, and between joined groups, are multiplied: where that may have made a NaN, the
// result is taken from the formula.

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/group_boxes/group_rows.cuh"
#include "kernels/cuda/group_boxes/group_rows.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/repair.cuh"

namespace retrograd::kernels::cuda {
namespace {

using namespace group_rows_tiles;

// What one warp makes of a box: positions of a residue, by a quad of eights of channels.
struct Item {
  int quad, tile, residue[3], number;
  __device__ Item(const GroupProduct& p, int item) {
    auto rest = static_cast<uint32_t>(item), q = rest;
    rest = p.by_quads.split(q);
    uint32_t t = rest;
    number = static_cast<int>(p.by_tiles.split(t));
    quad = static_cast<int>(q), tile = static_cast<int>(t);
    group_residue(p, number, residue);
  }
};

// Positions of a box that are places of the result: those below it along each axis.
struct Limits {
  int n, at[3];
  __device__ Limits(const GroupProduct& p, const GroupBoxAt& box, const Item& item) : n(p.batch - box.n) {
#pragma unroll
    for (int a = 0; a < 3; ++a) at[a] = p.axes[a].residue[item.residue[a]].results - box.at[a];
  }
  __device__ bool has(const Entry& position) const {
    return position.n() < n && position.d() < at[0] && position.h() < at[1] && position.w() < at[2];
  }
};

// Bit i: element i is NaN.
template <class E>
__device__ uint32_t nan_bits(const E* place, int count) {
  uint32_t bits = 0;
#pragma unroll
  for (int chunk = 0; chunk < kGroupQuad; ++chunk) {
    if (chunk * 8 >= count) break;
    const uint4 words = reinterpret_cast<const uint4*>(place)[chunk];
    const uint32_t of[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int i = 0; i < 8; ++i) bits |= uint32_t{is_nan<E>(of[i / 2] >> i % 2 * 16)} << (chunk * 8 + i);
  }
  return bits;
}

// Results of an item once more, where they are NaN, a place a lane. A zero between joined groups that meets
// what is not finite makes NaN of all channels of a group, so that others are suspect only at an edge.
template <class E>
__device__ __noinline__ void repair_item(const Conv& conv, const GroupProduct& p, const GroupBoxAt& box,
                                         const Item& item, const Entry* positions, int first_group, int tiles,
                                         E* result) {
  const Result kind = p.forward ? Result::kForward : Result::kGradInput;
  const int m = item.tile * kGroupTile + static_cast<int>(threadIdx.x) % 32;
  const Entry at = positions[min(m, p.positions - 1)];
  const int before = item.quad * kGroupQuad * 8, count = min(tiles * 8 - before, kGroupQuad * 8);
  const int64_t c0 = int64_t{first_group} * p.columns * 8 + before;
  E* const place = result + (group_result_offset(p, box, item.residue) + at.offset) * 8 + c0;
  const bool there = m < p.positions && Limits(p, box, item).has(at);
  const uint32_t bits = there ? nan_bits(place, count) : 0;
  if (!__any_sync(~0u, bits != 0)) return;
  Index5 index{box.n + at.n(), c0, int64_t{box.at[0] + at.d()} * p.axes[0].result_step + item.residue[0],
               int64_t{box.at[1] + at.h()} * p.axes[1].result_step + item.residue[1],
               int64_t{box.at[2] + at.w()} * p.axes[2].result_step + item.residue[2]};
  const bool edge = reaches_edge(conv, kind, index);
  Terms terms{};
  if (bits != 0) terms = terms_of_place(conv, p.forward, index);
  const bool any = terms.all() != 0;
  const Source source(p.forward ? conv.x : conv.y, conv.rounding), weights(conv.w, conv.rounding);
  const int first = before / p.result_channels;
#pragma unroll 1
  for (int c = 0, end = 0; c < count; c = end) {
    const int group = (before + c) / p.result_channels - first;
    end = min(count, (first + group + 1) * p.result_channels - before);
    const uint32_t all = (~0u >> (32 - (end - c))) << c;
    const bool suspect = (p.joined > 1 && (bits & all) == all) || (edge && (bits & all) != 0);
    if (!__any_sync(~0u, suspect)) continue;
    const float value = suspect && any ? source(terms.a + int64_t{group} * p.source_channels) : 0.0f;
    if (!__any_sync(~0u, suspect && !isnan(value))) continue;
#pragma unroll 1
    for (int i = c; i < end; ++i) {
      index.c = c0 + i;
      bool open = suspect && !isnan(value) && (bits >> i & 1) != 0;
      if (open && any) {
        const int64_t behind = p.forward ? i * conv.w.strides[0]
                                         : int64_t{group} * p.source_channels * conv.w.strides[0] +
                                               (i - group * p.result_channels) * conv.w.strides[1];
        open = !isnan(value * weights(terms.b + behind));
      }
      repair_open(conv, kind, open, index, [&](float sum) { place[i] = from_float<E>(sum); });
    }
  }
}

// Sums of 16 positions to the result, eight of them: lane 4i + j gets all eight channels of tile j of place
// i. Returns whether one that was stored may be NaN.
template <class E>
__device__ bool store_tile(const float (&sums)[kGroupQuad][4], int half, bool live, E* to) {
  uint32_t words[kGroupQuad];
#pragma unroll
  for (int t = 0; t < kGroupQuad; ++t) words[t] = pair_of<E>(sums[t][2 * half], sums[t][2 * half + 1]);
  transpose(words, static_cast<int>(threadIdx.x) % 32);
  if (live) *reinterpret_cast<uint4*>(to) = {words[0], words[1], words[2], words[3]};
  return live && sum_is_nan<E>(words);
}

template <class Math>
__global__ void __launch_bounds__(kGroupThreads, 2)
    group_rows_kernel(const __grid_constant__ Conv conv, const __grid_constant__ GroupProduct p,
                      const __grid_constant__ InPlaceWeights strides, const typename Math::Element* source,
                      const typename Math::Element* weights, typename Math::Element* result) {
  using E = typename Math::Element;
  extern __shared__ __align__(128) unsigned char shared[];
  const Shared room(p, shared);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int first_group = static_cast<int>(blockIdx.x) * p.groups;
  const int groups = min(p.groups, p.all_groups - first_group), tiles = groups * p.columns;
  const int quads = (tiles + kGroupQuad - 1) / kGroupQuad;
  const int items = p.residues * static_cast<int>(p.by_tiles.divisor) * p.quads;
  const bool has_bias = conv.bias.data != nullptr;
  room.set_tables(p, strides);
  if (has_bias)
    for (int i = static_cast<int>(threadIdx.x); i < tiles * 8; i += kGroupThreads)
      room.bias[i] = bias_of(conv, int64_t{first_group} * p.columns * 8 + i);
  __syncthreads();
  auto number = static_cast<uint32_t>(blockIdx.y);
  const Loader<E> loader(p, room, source + int64_t{first_group} * p.terms * 8, groups * p.terms);
  loader.load(p, number, 0);
  room.load_weights(p, strides, weights, first_group, groups);

  uint32_t suspects = 0;  // items that may have to be mended
  int ordinal = 0;
  for (int stage = 0; number < p.boxes; number += gridDim.y, stage ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    if (number + gridDim.y < p.boxes) loader.load(p, number + gridDim.y, stage ^ 1);
    const GroupBoxAt box = group_box_at(p, number);
#pragma unroll 1
    for (int i = warp; i < items; i += kGroupWarps, ++ordinal) {
      const Item item(p, i);
      if (item.quad >= quads) continue;
      uint32_t rows[kDown];
#pragma unroll
      for (int m = 0; m < kDown; ++m)
        rows[m] = room.stage(p, stage) + lane / 16 * 16 +
                  room.positions[min(item.tile * kGroupTile + m * 16 + lane % 16, p.positions - 1)].window;
      float sums[kDown][kGroupQuad][4] = {};
      multiply_taps<Math>(p, room, item.quad, room.begins[item.number], room.begins[item.number + 1], rows,
                          sums);
      if (has_bias) room.add_bias(item.quad, sums);
      const int eight = item.quad * kGroupQuad + lane % 4;
      const Limits limits(p, box, item);
      E* const to =
          result + (group_result_offset(p, box, item.residue) + int64_t{first_group} * p.columns + eight) * 8;
      bool nan = false;
#pragma unroll
      for (int m = 0; m < kDown; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int at = item.tile * kGroupTile + m * 16 + half * 8 + lane / 4;
          const Entry position = room.positions[min(at, p.positions - 1)];
          const bool live = at < p.positions && eight < tiles && limits.has(position);
          nan |= store_tile(sums[m], half, live, to + int64_t{position.offset} * 8);
        }
      if (__any_sync(~0u, nan)) suspects |= 1u << ordinal % 32;
    }
  }
  if (!p.repair || suspects == 0) return;
  __syncwarp();  // other lanes store what is mended
  ordinal = 0;
#pragma unroll 1
  for (number = static_cast<uint32_t>(blockIdx.y); number < p.boxes; number += gridDim.y)
#pragma unroll 1
    for (int i = warp; i < items; i += kGroupWarps, ++ordinal) {
      const Item item(p, i);
      if (item.quad >= quads || (suspects >> ordinal % 32 & 1) == 0) continue;
      repair_item(conv, p, group_box_at(p, number), item, room.positions, first_group, tiles, result);
    }
}

template <class Math>
void launch(const Conv& conv, const GroupRows& plan, Stream stream) {
  using E = typename Math::Element;
  const GroupProduct& p = plan.product;
  const InPlaceWeights strides = in_place_weights(conv, p.forward, Columns::kChannels);
  start(group_rows_kernel<Math>, {plan.slabs, plan.workers}, kGroupThreads, p.shared_bytes, stream, conv, p,
        strides, (p.forward ? conv.x : conv.y).data, conv.w.data, (p.forward ? conv.y : conv.x).data);
}

}  // namespace

void group_rows(const Conv& conv, const GroupRows& plan, Stream stream) {
  conv.x.dtype == DType::kF16 ? launch<InF16>(conv, plan, stream) : launch<InBF16>(conv, plan, stream);
}

}  // namespace retrograd::kernels::cuda
