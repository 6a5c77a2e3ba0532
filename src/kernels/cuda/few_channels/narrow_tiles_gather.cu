// SPDX-License-Identifier: Apache-2.0
// x[n, c, q] = Σ_{o, t} y[n, o, (q + P − t)/S] · w[o, c, t] for the few c of a group.
//
// Along an axis the S pixels iS … iS + S − 1 of x read the same window of y, so a thread makes them together:
// no tap is tried in vain. A thread has four such super-pixels in a row, `kPieces` times, with kC channels:
// the values of y it reads and the weights it reads both serve many products. 7x7 with stride 2 and three
// channels: 48 sums, 168 products for 14 reads of 16 bytes.
//
// A block takes a box of super-pixels of `in_block` groups and goes through the y channels in chunks: their
// boxes of y and their weights lie in shared memory. Where boxes are few, threads share the channels of a
// chunk and add up at the end, in order.
//
// Values of y beyond the edge are zeros; a result that is NaN is taken from the formula.
#include <algorithm>

#include "kernels/cuda/counts.h"
#include "kernels/cuda/few_channels/narrow.h"
#include "kernels/cuda/few_channels/narrow_gather_sums.cuh"
#include "kernels/cuda/few_channels/narrow_repair.cuh"
#include "kernels/cuda/few_channels/narrow_tile.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kMostThreads = 256;
constexpr int kMostShared = 56 * 1024;

struct Cut {
  int groups, x_channels, y_channels;  // channels of a group
  int xh, xw, yh, yw;
  int in_block, c_blocks;          // groups of a block; threads along x channels
  int quads, thread_rows, shares;  // threads along columns, rows and y channels
  int row_tiles, column_tiles;
  int tile_rows, tile_columns;    // super-places
  int first_h, first_w;           // where the window of super-place 0 begins
  int chunk;                      // y channels in shared memory
  int group_pitch, weight_pitch;  // floats of a group
  bool wide;                      // rows of x are whole packs of four
  Box box;
  int64_t w_o, w_i, w_h, w_w;
};

template <class S>
__device__ void stage_weights(float* target, const Cut& p, const float* w, int group0, int groups, int o0,
                              int count) {
  constexpr int kEach = S::kKh * S::kKw * S::kC;
  const int total = groups * count * p.c_blocks * kEach;
  for (int i = static_cast<int>(threadIdx.x); i < total; i += static_cast<int>(blockDim.x)) {
    const int c = i % S::kC, kw = i / S::kC % S::kKw, kh = i / (S::kC * S::kKw) % S::kKh;
    int rest = i / kEach;
    const int block = rest % p.c_blocks;
    rest /= p.c_blocks;
    const int o = rest % count, g = rest / count;
    float* const to = target + g * p.weight_pitch + (o * p.c_blocks + block) * S::kWeights +
                      kh * S::kLine * 4 + kw * S::kC + c;
    const float* const from = w + (int64_t{group0 + g} * p.y_channels + o0 + o) * p.w_o +
                              (block * S::kC + c) * p.w_i + kh * p.w_h + kw * p.w_w;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from));
  }
}

template <class S, bool kLast>
__global__ void __launch_bounds__(kMostThreads, 2)
    gather_kernel(const __grid_constant__ Conv conv, const __grid_constant__ Cut p, const float* y,
                  const float* w, float* x) {
  extern __shared__ __align__(16) float shared[];
  const int n = static_cast<int>(blockIdx.z), group0 = static_cast<int>(blockIdx.y) * p.in_block;
  const int groups = min(p.in_block, p.groups - group0);
  const int row0 = static_cast<int>(blockIdx.x) / p.column_tiles * p.tile_rows,
            column0 = static_cast<int>(blockIdx.x) % p.column_tiles * p.tile_columns;
  const int positions = p.quads * p.thread_rows * p.c_blocks * p.in_block;
  const int share = static_cast<int>(threadIdx.x) / positions,
            position = static_cast<int>(threadIdx.x) % positions;
  int rest = position, g = 0;
  if constexpr (kLast) {  // neighbouring threads write neighbouring groups
    g = rest % p.in_block;
    rest /= p.in_block;
  }
  const int quad = rest % p.quads;
  rest /= p.quads;
  const int thread_row = rest % p.thread_rows;
  rest /= p.thread_rows;
  const int c_block = rest % p.c_blocks;
  if constexpr (!kLast) g = rest / p.c_blocks;
  const bool works = share < p.shares && g < groups;
  const int row = S::kAlongRows ? thread_row * S::kPieces : thread_row;
  const int64_t y_plane = int64_t{p.yh} * p.yw;

  // y channels from o0 on, with their weights.
  const auto copy = [&](int o0) {
    const int count = min(p.chunk, p.y_channels - o0), all = p.groups * p.y_channels;
    for (int i = 0; i < groups; ++i) {
      Box box = p.box;
      box.channels = count;
      const int64_t first = int64_t{group0 + i} * p.y_channels + o0;
      if constexpr (kLast) {
        if (p.y_channels == p.chunk) {  // all groups of the block at once
          if (i > 0) break;
          box.channels = groups * count;
        }
      }
      const int64_t offset = kLast ? n * y_plane * all + first : (int64_t{n} * all + first) * y_plane;
      stage<kLast>(shared + i * p.group_pitch, box, Image{y + offset, all, p.yh, p.yw}, row0 + p.first_h,
                   column0 + p.first_w);
    }
    stage_weights<S>(shared + p.in_block * p.group_pitch, p, w, group0, groups, o0, count);
  };
  GatherSums<S> sums;
  for (int o0 = 0; o0 < p.y_channels; o0 += p.chunk) {
    const int count = min(p.chunk, p.y_channels - o0);
    if (o0 > 0) __syncthreads();
    copy(o0);
    close_copies();
    wait_for_copies<0>();
    __syncthreads();
    const float* const from = shared + g * p.group_pitch + row * p.box.pitch + quad * 4;
    const float* const with =
        shared + p.in_block * p.group_pitch + g * p.weight_pitch + c_block * S::kWeights;
    for (int o = works ? share : count; o < count; o += p.shares) {
      const float* const of_y = from + o * p.box.plane;
      const float* const of_w = with + o * p.c_blocks * S::kWeights;
      if constexpr (S::kHeld) {
        float weights[S::H::kWindow][1][S::kLine * 4];
        sums.hold(of_w, weights);
        sums.add_rows(of_y, p.box.pitch, weights);
      } else {
        sums.add(of_y, p.box.pitch, p.quads * 4, of_w);
      }
    }
  }
  if (p.shares > 1) add_shares(sums, shared, share, p.shares, position, positions);
  if (!works || share != 0) return;

  const int all = p.groups * p.x_channels, channel0 = (group0 + g) * p.x_channels + c_block * S::kC;
  const int channels = min(S::kC, p.x_channels - c_block * S::kC);
  bool finite = true;
#pragma unroll
  for (int k = 0; k < S::kPieces; ++k)
#pragma unroll
    for (int rh = 0; rh < S::kSh; ++rh) {
      const int h = (row0 + row + (S::kAlongRows ? k : 0)) * S::kSh + rh;
      const int w0 = (column0 + (quad + (S::kAlongRows ? 0 : k * p.quads)) * 4) * S::kSw;
      if (h >= p.xh) continue;
#pragma unroll
      for (int c = 0; c < S::kC; ++c)
#pragma unroll
        for (int i = 0; i < 4 * S::kSw; ++i) finite = finite && isfinite(sums.of[k][rh][c][i]);
      if constexpr (kLast) {
        float* const target = x + ((int64_t{n} * p.xh + h) * p.xw + w0) * all + channel0;
#pragma unroll
        for (int i = 0; i < 4 * S::kSw; ++i) {
          if (w0 + i >= p.xw) break;
          if (S::kC == 4 && p.wide) {
            const float four[4] = {sums.of[k][rh][0][i], sums.of[k][rh][S::kC > 1 ? 1 : 0][i],
                                   sums.of[k][rh][S::kC > 2 ? 2 : 0][i], sums.of[k][rh][S::kC - 1][i]};
            store_pack<float, 4>(target + int64_t{i} * all, four);
            continue;
          }
#pragma unroll
          for (int c = 0; c < S::kC; ++c)
            if (c < channels) target[int64_t{i} * all + c] = sums.of[k][rh][c][i];
        }
      } else {
#pragma unroll
        for (int c = 0; c < S::kC; ++c) {
          if (c >= channels) break;
          float* const target = x + ((int64_t{n} * all + channel0 + c) * p.xh + h) * p.xw + w0;
#pragma unroll
          for (int i = 0; i < 4 * S::kSw; i += 4) {
            const float four[4] = {sums.of[k][rh][c][i], sums.of[k][rh][c][i + 1], sums.of[k][rh][c][i + 2],
                                   sums.of[k][rh][c][i + 3]};
            if (p.wide) {
              if (w0 + i < p.xw) store_pack<float, 4>(target + i, four);
            } else {
#pragma unroll
              for (int j = 0; j < 4; ++j)
                if (w0 + i + j < p.xw) target[i + j] = four[j];
            }
          }
        }
      }
    }
  if (finite) return;
  constexpr int kRows = (S::kAlongRows ? S::kPieces : 1) * S::kSh, kRuns = S::kAlongRows ? 1 : S::kPieces;
  for (int k = 0; k < kRuns; ++k)
    repair_grad_input(conv, n, {channel0, channels}, {(row0 + row) * S::kSh, kRows},
                      {(column0 + (quad + k * p.quads) * 4) * S::kSw, 4 * S::kSw});
}

// Sizes that depend on how many rows and quads of super-places a block has.
template <class S>
void set_tile(Cut& p, int rows, int quads) {
  constexpr int kRowPieces = S::kAlongRows ? S::kPieces : 1, kQuadPieces = S::kAlongRows ? 1 : S::kPieces;
  p.thread_rows = ceil_of(rows, kRowPieces);
  p.quads = ceil_of(quads, kQuadPieces);
  p.tile_rows = p.thread_rows * kRowPieces;
  p.tile_columns = p.quads * kQuadPieces * 4;
  p.box.rows = p.tile_rows + S::H::kWindow - 1;
  p.box.columns = p.tile_columns + S::W::kWindow - 1;
  p.box.pitch = odd_pitch(p.tile_columns - 4 + S::kChunks * 4);
  p.box.plane = (p.box.rows * p.box.pitch / 4 | 1) * 4;
  p.box.lanes = lanes_for(p.box.columns);
}
template <class S>
int positions_of(const Cut& p) {
  return p.thread_rows * p.quads * p.c_blocks * p.in_block;
}
template <class S>
int channel_floats(const Cut& p) {  // of one y channel of all groups of a block
  return p.in_block * (p.box.plane + p.c_blocks * S::kWeights);
}

template <class S>
Cut cut_of(const Conv& conv, bool last) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  Cut p{};
  p.groups = static_cast<int>(conv.groups);
  p.x_channels = static_cast<int>(conv.x_channels);
  p.y_channels = static_cast<int>(conv.y_channels);
  p.xh = static_cast<int>(h.x), p.xw = static_cast<int>(w.x);
  p.yh = static_cast<int>(h.y), p.yw = static_cast<int>(w.y);
  p.c_blocks = ceil_of(conv.x_channels, S::kC);
  // Channels last: 16 channels are whole 32-byte sectors.
  p.in_block = last && conv.y_channels < 16 ? std::min(p.groups, ceil_of(16, conv.y_channels)) : 1;
  p.first_h = static_cast<int>(h.pad / S::kSh) + S::H::kLow;
  p.first_w = static_cast<int>(w.pad / S::kSw) + S::W::kLow;
  const int super_h = ceil_of(h.x, S::kSh), super_w = ceil_of(w.x, S::kSw), quads = ceil_of(super_w, 4);
  const auto fits = [&](const Cut& trial) {
    return positions_of<S>(trial) <= kMostThreads &&
           channel_floats<S>(trial) * std::min(p.y_channels, 4) * 4 <= kMostShared;
  };
  // As many quads across as fit, up to 32 of a thread's pieces; then rows, evenly.
  int across = std::min(quads, S::kAlongRows ? 32 : 128);
  across = ceil_of(quads, ceil_of(quads, across));
  set_tile<S>(p, 1, across);
  while (!fits(p) && across > 1) set_tile<S>(p, 1, across = ceil_of(across, 2));
  for (int tiles = super_h; tiles >= 1; --tiles) {
    Cut trial = p;
    set_tile<S>(trial, ceil_of(super_h, tiles), across);
    if (!fits(trial)) break;
    p = trial;
  }
  p.row_tiles = ceil_of(super_h, p.tile_rows);
  p.column_tiles = ceil_of(quads * 4, p.tile_columns);
  const int positions = positions_of<S>(p);
  p.shares = std::max(1, std::min(kMostThreads / positions, p.y_channels / 4));
  // Sharing pays where threads are few.
  if (p.row_tiles * p.column_tiles * ceil_of(p.groups, p.in_block) * conv.batch * positions > 132 * 512)
    p.shares = 1;
  p.chunk = std::min(p.y_channels, std::max(1, kMostShared / 4 / channel_floats<S>(p)));
  if (p.chunk < p.y_channels && p.chunk > p.shares) p.chunk = p.chunk / p.shares * p.shares;
  // Groups of neighbouring threads begin two chunks apart modulo eight, their weights an odd number.
  p.group_pitch = p.chunk * p.box.plane;
  p.box.in_group = std::max(1, p.chunk);
  p.box.group_gap = p.in_block > 1 ? (10 - p.group_pitch / 4 % 8) % 8 * 4 : 0;
  p.group_pitch += p.box.group_gap;
  p.weight_pitch = (p.chunk * p.c_blocks * S::kWeights / 4 | 1) * 4;
  p.wide = last ? p.x_channels % 4 == 0 : w.x % 4 == 0;
  p.wide = p.wide && reinterpret_cast<uintptr_t>(conv.x.data) % 16 == 0;
  p.w_o = conv.w.strides[0], p.w_i = conv.w.strides[1], p.w_h = conv.w.strides[3], p.w_w = conv.w.strides[4];
  return p;
}

template <class S, bool kLast>
void launch(const Conv& conv, Stream stream) {
  const Cut p = cut_of<S>(conv, kLast);
  const int positions = positions_of<S>(p), threads = ceil_of(positions * p.shares, 32) * 32;
  const int staged = p.in_block * (p.group_pitch + p.weight_pitch),
            at_end = (p.shares - 1) * positions * static_cast<int>(sizeof(GatherSums<S>) / 4);
  const int bytes = std::max(staged, at_end) * 4;
  start(gather_kernel<S, kLast>, {p.row_tiles * p.column_tiles, ceil_of(p.groups, p.in_block), conv.batch},
        threads, bytes, stream, conv, p, conv.y.data, conv.w.data, conv.x.data);
}

}  // namespace

void narrow_tiles_grad_input(const Conv& conv, bool channels_last, Stream stream) {
  with_gather_shape(conv, [&](auto shape) {
    using S = decltype(shape);
    channels_last ? launch<S, true>(conv, stream) : launch<S, false>(conv, stream);
  });
}

}  // namespace retrograd::kernels::cuda
