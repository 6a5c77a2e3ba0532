// SPDX-License-Identifier: Apache-2.0
// w[o, c, t] = Σ_p y[p, o] · x[place(p, t), c] of groups of few channels (group_weights.h)
//
// For 16 pixels a warp reads y once and, for each of its taps, x where the tap finds it, both transposed on
// the way; while a box is multiplied, the next is on its way.
#include "kernels/cuda/counts.h"
#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/group_boxes/group_rows.cuh"
#include "kernels/cuda/group_boxes/group_weights.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/part_sums.h"

namespace retrograd::kernels::cuda {
namespace {

using group_rows_tiles::Entry;
using group_rows_tiles::entry_of;

struct Room {
  unsigned char* stages;
  Entry *staged, *positions;
  int* taps;  // bytes behind a window
  int x_bytes, stage_bytes;

  __device__ Room(const GroupWeightsCut& c, unsigned char* room)
      : stages(room), x_bytes(c.product.stage_bytes), stage_bytes(c.product.stage_bytes + c.y_bytes) {
    taps = reinterpret_cast<int*>(room + c.product.shared_bytes) - (c.product.taps + 3) / 4 * 4;
    positions = reinterpret_cast<Entry*>(taps) - c.product.positions;
    staged = positions - c.product.staged;
  }
  __device__ uint32_t x(int stage) const {
    return shared_address(stages) + static_cast<uint32_t>(stage * stage_bytes);
  }
  __device__ uint32_t y(int stage) const { return x(stage) + static_cast<uint32_t>(x_bytes); }
};

template <class T>
__device__ void load_box(const GroupWeightsCut& c, const Room& room, uint32_t number, int stage, const T* x,
                         const T* y, int groups) {
  const GroupProduct& p = c.product;
  const GroupBoxAt box = group_box_at(p, number);
  const int thread = static_cast<int>(threadIdx.x);
  {
    auto rest = static_cast<uint32_t>(thread);
    int first = static_cast<int>(p.by_chunks.split(rest));
    const int chunk = static_cast<int>(rest), step = kGroupThreads / p.chunks;
    if (chunk >= groups * p.terms || first >= step) first = p.staged;
    int at[3];
#pragma unroll
    for (int a = 0; a < 3; ++a) at[a] = box.at[a] * p.axes[a].step + p.axes[a].low;
    const T* const from = x + (group_source_offset(p, box) + chunk) * 8;
    const uint32_t to = room.x(stage) + chunk * 16;
    for (int i = first; i < p.staged; i += step) {
      const Entry e = room.staged[i];
      const bool live = static_cast<unsigned>(at[0] + e.d()) < static_cast<unsigned>(p.axes[0].source) &&
                        static_cast<unsigned>(at[1] + e.h()) < static_cast<unsigned>(p.axes[1].source) &&
                        static_cast<unsigned>(at[2] + e.w()) < static_cast<unsigned>(p.axes[2].source) &&
                        box.n + e.n() < p.batch;
      copy_chunk(to + e.window, live ? from + int64_t{e.offset} * 8 : x, live);
    }
  }
  const int chunk = thread % p.tiles, step = kGroupThreads / p.tiles;
  int first = thread / p.tiles;
  if (chunk >= groups * p.columns || first >= step) first = c.filled;
  const int zero[3] = {};
  const T* const from = y + (group_result_offset(p, box, zero) + chunk) * 8;
  const uint32_t to = room.y(stage) + chunk * 16;
  for (int i = first; i < c.filled; i += step) {
    const Entry e = room.positions[min(i, p.positions - 1)];
    const bool live = i < p.positions && box.at[0] + e.d() < p.axes[0].positions &&
                      box.at[1] + e.h() < p.axes[1].positions && box.at[2] + e.w() < p.axes[2].positions &&
                      box.n + e.n() < p.batch;
    copy_chunk(to + i * c.y_pitch, live ? from + int64_t{e.offset} * 8 : y, live);
  }
  close_copies();
}

// kTaps: of a warp; taps beyond the last are multiplied like it, and dropped.
template <class T, int kTaps>
__global__ void __launch_bounds__(kGroupThreads, 2)
    group_weights_kernel(const __grid_constant__ GroupWeightsCut c, const T* x, const T* y, float* parts) {
  extern __shared__ __align__(128) unsigned char shared[];
  const GroupProduct& p = c.product;
  const Room room(c, shared);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int slab = static_cast<int>(blockIdx.x) / c.slices, slice = static_cast<int>(blockIdx.x) % c.slices,
            part = static_cast<int>(blockIdx.y);
  const int first_group = slab * p.groups, groups = min(p.groups, p.all_groups - first_group);
  const int roles = c.units * c.owners, own = min(roles, kGroupWarps);  // those of this block
  const int role = slice * kGroupWarps + warp % own, share = warp / own;
  const bool works = role < roles && share < c.shares;
  const GroupUnit unit = group_unit(c, min(role, roles - 1) / c.owners);
  const int first_tap = min(role, roles - 1) % c.owners * kTaps;
  for (int i = thread; i < p.staged; i += kGroupThreads)
    room.staged[i] = entry_of(i * p.pitch, group_staged(p, i));
  for (int i = thread; i < p.positions; i += kGroupThreads) {
    const GroupPlace place = group_position(p, i);
    room.positions[i] = entry_of(group_window(p, place) * p.pitch, place);
  }
  for (int i = thread; i < p.taps; i += kGroupThreads)
    room.taps[i] = group_tap(p, {0, 0, 0}, i).staged * p.pitch;
  __syncthreads();
  int taps[kTaps];
#pragma unroll
  for (int i = 0; i < kTaps; ++i) taps[i] = room.taps[min(first_tap + i, p.taps - 1)];

  x += int64_t{first_group} * p.terms * 8;
  y += int64_t{first_group} * p.columns * 8;
  const uint32_t end = min(static_cast<uint32_t>(part + 1) * c.in_part, p.boxes);
  uint32_t number = static_cast<uint32_t>(part) * c.in_part;
  load_box(c, room, number, 0, x, y, groups);
  const int y_line = lane / 16 * 8 + lane % 8, y_half = lane / 8 % 2;
  const int x_line = lane / 8 % 2 * 8 + lane % 8, x_half = lane / 16;
  float sums[kTaps][2][4] = {};
  for (int stage = 0; number < end; ++number, stage ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    if (number + 1 < end) load_box(c, room, number + 1, stage ^ 1, x, y, groups);
    if (!works) continue;
    const uint32_t of_y = room.y(stage) + y_line * c.y_pitch + (unit.y + y_half) * 16,
                   of_x = room.x(stage) + (unit.x + x_half) * 16;
    for (int step = share; step < c.filled / 16; step += c.shares) {
      const uint32_t base = of_x + room.positions[min(step * 16 + x_line, p.positions - 1)].window;
      uint32_t a[4];
      load_matrices<true>(of_y + step * 16 * c.y_pitch, a);
#pragma unroll
      for (int i = 0; i < kTaps; ++i) {
        uint32_t b[4];
        load_matrices<true>(base + taps[i], b);
        multiply_add(sums[i][0], a, b[0], b[1], T{});
        multiply_add(sums[i][1], a, b[2], b[3], T{});
      }
    }
  }

  // One role after another: [share][tap][y channel][x channel], a thread a pair of channels.
  auto* const of_shares = reinterpret_cast<float*>(shared);
  float* const out = parts + part * c.weights;
#pragma unroll 1
  for (int r = 0; r < own && slice * kGroupWarps + r < roles; ++r) {
    __syncthreads();
    if (works && warp % own == r) {
#pragma unroll
      for (int i = 0; i < kTaps; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j)
#pragma unroll
          for (int e = 0; e < 4; e += 2)
            *reinterpret_cast<float2*>(of_shares + (share * kTaps + i) * 256 + (lane / 4 + e / 2 * 8) * 16 +
                                       j * 8 + lane % 4 * 2) = {sums[i][j][e], sums[i][j][e + 1]};
    }
    __syncthreads();
    const int mine = slice * kGroupWarps + r, tap0 = mine % c.owners * kTaps;
    const GroupPair pair = group_pair(c, group_unit(c, mine / c.owners), groups, thread / 16, thread % 16);
    if (!pair.live) continue;
    float* const to = out + ((int64_t{first_group} * p.columns * 8 + pair.y) * p.source_channels +
                             pair.x % p.source_channels) *
                                p.taps;
    for (int i = 0; i < kTaps && tap0 + i < p.taps; ++i) {
      float sum = of_shares[i * 256 + thread];
      for (int s = 1; s < c.shares; ++s) sum += of_shares[(s * kTaps + i) * 256 + thread];
      to[tap0 + i] = sum;
    }
  }
}

template <class T, int kTaps>
void launch(const Conv& conv, const GroupWeights& plan, float* sums, Stream stream) {
  const GroupWeightsCut& c = plan.cut;
  const int slabs = ceil_of(c.product.all_groups, c.product.groups);
  start(group_weights_kernel<T, kTaps>, {slabs * c.slices, c.parts}, kGroupThreads, c.product.shared_bytes,
        stream, c, conv.x.data, conv.y.data, sums);
  add_parts(conv, c.parts, PartOrder::kTapsOfChannel, plan.rows, sums, stream);
}

}  // namespace

void group_weights(const Conv& conv, const GroupWeights& plan, float* sums, Stream stream) {
  with_half(conv.x.dtype, [&](auto type) {
    with_one_of<1, 3, 5, 7, 9>(plan.cut.of_warp,
                               [&](auto taps) { launch<decltype(type), taps()>(conv, plan, sums, stream); });
  });
}

}  // namespace retrograd::kernels::cuda
