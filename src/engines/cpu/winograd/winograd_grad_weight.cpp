// SPDX-License-Identifier: Apache-2.0
// w[o, i, t] = Σ_p x[i, p + t − pad] · y[o, p],   t in 3 × 3, p over batch and space in tiles of 4 × 4
//
// The tiles are worked on in chunks that fit the last cache. All threads transform the chunk's tiles, 6 × 6
// of x to [x block][36][tile][i] and 4 × 4 of y to [y block][36][tile][width]; then each task makes the 36
// products of one block of x and one of y, summing over the tiles, and transforms them back to 3 × 3. So the
// sums of a task are 9 floats for each pair of channels, and its products never leave L2. Taps along D are
// further channels of x.
#include "engines/cpu/winograd/winograd_grad_weight.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/checked.h"
#include "engines/cpu/boxes.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/machine_vectors.h"
#include "engines/cpu/task_slots.h"
#include "engines/cpu/winograd/winograd_fit.h"
#include "engines/cpu/winograd/winograd_strips.h"
#include "kernels/cpu/dense/tile_product.h"
#include "kernels/cpu/layout/transpose.h"
#include "kernels/cpu/winograd/winograd.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::kWinogradPoints;
using problem::ConvPass;

constexpr int64_t kChunkFloats = 3 * 1024 * 1024;  // 12 MiB of transformed tiles, in L3
constexpr int64_t kMostRowFloats = 4 * kChunkFloats;
constexpr int64_t kFewestTiles = 8;  // fewer products than what is transformed back
constexpr int64_t kXChannelsPerTask = 64;
constexpr int64_t kStripFloats = 16 * 1024;
constexpr int64_t kMostStripRows = 4;
constexpr int64_t kFewestTilesPerSplit = 64;  // sums are transformed back once a split
constexpr int64_t kWantedTasks = 16;
constexpr int64_t kLineFloats = 16;

int64_t round_up(int64_t value, int64_t step) { return ceil_div(value, step) * step; }

class WinogradGradWeightStep final : public Step {
 public:
  WinogradGradWeightStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass),
        lanes_(vectors_of(machine).winograd_lanes()),
        width_(vectors_of(machine).tile_width()),
        cut_(cut_winograd_grad_weight(pass, lanes_)),
        slots_(machine.cpu.threads) {
    for (int64_t tile = 0; tile < cut_.tiles_per_split; ++tile) tile_offsets_.push_back(tile * cut_.x_tile);
    all_x_blocks_ = pass.groups * pass.axes[0].kernel * cut_.x_blocks;
    all_y_blocks_ = pass.groups * cut_.y_blocks;
    blocks_ = all_x_blocks_ * cut_.y_blocks;
    // One vector more between points: powers of two would put all 36 into one set of a cache.
    x_point_ = cut_.chunk_tiles() * cut_.x_tile + lanes_;
    y_point_ = cut_.chunk_tiles() * width_ + lanes_;
    product_point_ = cut_.x_block * width_ + lanes_;
    sum_floats_ = cut_.x_block * 9 * width_;
    x_bytes_ = part_bytes<float>(all_x_blocks_ * kWinogradPoints * x_point_);
    y_bytes_ = part_bytes<float>(all_y_blocks_ * kWinogradPoints * y_point_);
    sum_bytes_ = part_bytes<float>(cut_.splits * blocks_ * sum_floats_);
    product_bytes_ = part_bytes<float>(kWinogradPoints * product_point_);
    const int64_t strip = (4 * cut_.rows_per_strip + 2) * (4 * cut_.tiles_w + 2) * lanes_;
    slot_bytes_ = std::max(part_bytes<float>(strip), product_bytes_ + part_bytes<float>(sum_floats_));
  }

  size_t workspace_bytes() const override {
    return x_bytes_ + y_bytes_ + sum_bytes_ + static_cast<size_t>(slots_) * slot_bytes_;
  }

  std::string describe() const override {
    return fmt::format("F(3x3, 4x4), {} tiles in {} chunks and {} splits, {} blocks of {} x {} channels",
                       cut_.rows * cut_.tiles_w, cut_.chunks, cut_.splits, blocks_, cut_.x_block, width_);
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const Parts parts{.x = reinterpret_cast<float*>(workspace),
                      .y = reinterpret_cast<float*>(workspace + x_bytes_),
                      .sums = reinterpret_cast<float*>(workspace + x_bytes_ + y_bytes_),
                      .slots = workspace + x_bytes_ + y_bytes_ + sum_bytes_};
    const auto slot_floats = [&](int64_t slot) {
      return reinterpret_cast<float*>(parts.slots + static_cast<size_t>(slot) * slot_bytes_);
    };
    for (int64_t chunk = 0; chunk < cut_.chunks; ++chunk) {
      const int64_t first = chunk * cut_.rows_per_chunk;
      const int64_t rows = std::min(cut_.rows_per_chunk, cut_.rows - first);
      const int64_t strips = ceil_div(rows, cut_.rows_per_strip);
      run_tasks(*context.pool, (all_x_blocks_ + all_y_blocks_) * strips, slots_,
                [&](int64_t task, int64_t slot) {
                  const int64_t row = task % strips * cut_.rows_per_strip;
                  transform(bindings, task / strips, first, row, std::min(cut_.rows_per_strip, rows - row),
                            slot_floats(slot), parts);
                });
      const int64_t tiles = rows * cut_.tiles_w;
      run_tasks(*context.pool, blocks_ * cut_.splits, slots_, [&](int64_t task, int64_t slot) {
        const int64_t tile = task / blocks_ * cut_.tiles_per_split;
        if (tile >= tiles) return;
        multiply(task % blocks_, tile, std::min(cut_.tiles_per_split, tiles - tile), chunk > 0,
                 slot_floats(slot), parts.sums + task * sum_floats_, parts);
      });
    }
    context.pool->parallel_for(blocks_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) store(bindings, block, parts.sums);
    });
  }

 private:
  struct Parts {
    float *x, *y, *sums;
    std::byte* slots;
  };
  struct XBlock {
    int64_t group, depth_tap, first, count;  // x channels of the group
  };

  XBlock x_block(int64_t index) const {
    const int64_t first = index % cut_.x_blocks * cut_.x_block, above = index / cut_.x_blocks;
    return {above / pass_.axes[0].kernel, above % pass_.axes[0].kernel, first,
            std::min(cut_.x_block, pass_.x_channels_per_group() - first)};
  }

  // Tile rows [row, row + count) of the chunk that begins with `chunk_row`; a block of x, then those of y.
  void transform(const Bindings& bindings, int64_t block, int64_t chunk_row, int64_t row, int64_t count,
                 float* strip, const Parts& parts) const {
    while (count > 0) {
      // A strip ends with its plane.
      const int64_t plane = (chunk_row + row) / cut_.tiles_h, in_plane = (chunk_row + row) % cut_.tiles_h;
      const int64_t now = std::min(count, cut_.tiles_h - in_plane);
      const int64_t tile = row * cut_.tiles_w;
      if (block < all_x_blocks_)
        transform_x(bindings, x_block(block), plane, in_plane, now, strip,
                    parts.x + block * kWinogradPoints * x_point_ + tile * cut_.x_tile);
      else
        transform_y(bindings, block - all_x_blocks_, plane, in_plane, now, strip,
                    parts.y + (block - all_x_blocks_) * kWinogradPoints * y_point_ + tile * width_);
      row += now;
      count -= now;
    }
  }

  void transform_x(const Bindings& bindings, const XBlock& block, int64_t plane, int64_t row, int64_t count,
                   float* strip, float* out) const {
    const auto& s = pass_.x.strides;
    const problem::Window &d = pass_.axes[0], &h = pass_.axes[1], &w = pass_.axes[2];
    const int64_t depth = position(d, plane % d.y, block.depth_tap);
    const bool outside = depth < 0 || depth >= d.x;
    LaneStrip shape{.lanes = lanes_,
                    .first_row = 4 * row - h.pad_lo,
                    .rows = 4 * count + 2,
                    .first_column = -w.pad_lo,
                    .columns = 4 * cut_.tiles_w + 2,
                    .height = outside ? 0 : h.x,
                    .width = w.x};
    const int64_t row_floats = shape.columns * lanes_;
    for (int64_t c = 0; c < block.count; c += lanes_) {
      shape.channels = std::min(lanes_, block.count - c);
      const int64_t channel = block.group * pass_.x_channels_per_group() + block.first + c;
      const int64_t at = plane / d.y * s[0] + channel * s[1] + (outside ? 0 : depth * s[2]);
      load_lanes(shape, static_cast<const float*>(bindings[pass_.x.operand]) + at, s, strip);
      for (int64_t i = 0; i < count; ++i)
        kernels::cpu::winograd_data({.in = strip + 4 * i * row_floats,
                                     .in_row = row_floats,
                                     .in_column = lanes_,
                                     .in_tile = 4 * lanes_,
                                     .out = out + i * cut_.tiles_w * cut_.x_tile + c,
                                     .out_row = 6 * x_point_,
                                     .out_column = x_point_,
                                     .out_tile = cut_.x_tile,
                                     .tiles = cut_.tiles_w});
    }
  }

  void transform_y(const Bindings& bindings, int64_t block, int64_t plane, int64_t row, int64_t count,
                   float* strip, float* out) const {
    const auto& s = pass_.y.strides;
    const problem::Window &d = pass_.axes[0], &h = pass_.axes[1], &w = pass_.axes[2];
    const int64_t group = block / cut_.y_blocks, first = block % cut_.y_blocks * width_;
    LaneStrip shape{.lanes = lanes_,
                    .first_row = 4 * row,
                    .rows = 4 * count,
                    .first_column = 0,
                    .columns = 4 * cut_.tiles_w,
                    .height = h.y,
                    .width = w.y};
    const int64_t row_floats = shape.columns * lanes_;
    for (int64_t c = 0; c < width_; c += lanes_) {
      // Channels that do not exist are zeros: the products of a whole tile are made.
      shape.channels = std::clamp<int64_t>(pass_.y_channels_per_group() - first - c, 0, lanes_);
      const int64_t channel = group * pass_.y_channels_per_group() + first + (shape.channels > 0 ? c : 0);
      const int64_t at = plane / d.y * s[0] + channel * s[1] + plane % d.y * s[2];
      load_lanes(shape, static_cast<const float*>(bindings[pass_.y.operand]) + at, s, strip);
      for (int64_t i = 0; i < count; ++i)
        kernels::cpu::winograd_window({.in = strip + 4 * i * row_floats,
                                       .in_row = row_floats,
                                       .in_column = lanes_,
                                       .in_tile = 4 * lanes_,
                                       .out = out + i * cut_.tiles_w * width_ + c,
                                       .out_row = 6 * y_point_,
                                       .out_column = y_point_,
                                       .out_tile = width_,
                                       .tiles = cut_.tiles_w});
    }
  }

  // sums[i][tap][width] (+)= what `tiles` tiles contribute.
  void multiply(int64_t index, int64_t tile, int64_t tiles, bool accumulate, float* products, float* sums,
                const Parts& parts) const {
    const int64_t x_index = index / cut_.y_blocks;
    const XBlock block = x_block(x_index);
    const int64_t y_index = block.group * cut_.y_blocks + index % cut_.y_blocks;
    const float* x = parts.x + x_index * kWinogradPoints * x_point_ + tile * cut_.x_tile;
    const float* y = parts.y + y_index * kWinogradPoints * y_point_ + tile * width_;
    kernels::cpu::TileProduct product;
    product.offsets = tile_offsets_.data();
    product.inner = tiles;
    product.c_stride = width_;
    for (int64_t point = 0; point < kWinogradPoints; ++point) {
      product.b = y + point * y_point_;
      for (int64_t i = 0; i < block.count; i += kernels::cpu::kTileRows) {
        product.rows = static_cast<int>(std::min<int64_t>(kernels::cpu::kTileRows, block.count - i));
        for (int row = 0; row < product.rows; ++row) product.a[row] = x + point * x_point_ + i + row;
        product.c = products + point * product_point_ + i * width_;
        kernels::cpu::tile_product(product);
      }
    }
    float* part = products + product_bytes_ / sizeof(float);
    for (int64_t half = 0; half < width_; half += lanes_)
      kernels::cpu::winograd_gradient({.in = products + half,
                                       .in_row = 6 * product_point_,
                                       .in_column = product_point_,
                                       .in_tile = width_,
                                       .out = (accumulate ? part : sums) + half,
                                       .out_row = 3 * width_,
                                       .out_column = width_,
                                       .out_tile = 9 * width_,
                                       .tiles = block.count});
    if (accumulate)
      for (int64_t i = 0; i < block.count * 9 * width_; ++i) sums[i] += part[i];
  }

  void store(const Bindings& bindings, int64_t index, float* all_sums) const {
    const XBlock block = x_block(index / cut_.y_blocks);
    float* sums = all_sums + index * sum_floats_;
    for (int64_t split = 1; split < cut_.splits; ++split) {
      const float* part = all_sums + (split * blocks_ + index) * sum_floats_;
      for (int64_t i = 0; i < block.count * 9 * width_; ++i) sums[i] += part[i];
    }
    const auto& s = pass_.w.strides;
    const int64_t o_first = index % cut_.y_blocks * width_;
    const int64_t channels = std::min(width_, pass_.y_channels_per_group() - o_first);
    float* w = static_cast<float*>(bindings[pass_.w.operand]) +
               (block.group * pass_.y_channels_per_group() + o_first) * s[0] + block.first * s[1] +
               block.depth_tap * s[2];
    const bool dense_taps = s[4] == 1 && s[3] == 3;
    if (dense_taps && s[1] == 9)
      return kernels::cpu::transpose(sums, width_, w, s[0], block.count * 9, channels);
    for (int64_t i = 0; i < block.count; ++i, w += s[1], sums += 9 * width_) {
      if (dense_taps) {
        kernels::cpu::transpose(sums, width_, w, s[0], 9, channels);
        continue;
      }
      for (int64_t tap = 0; tap < 9; ++tap)
        for (int64_t o = 0; o < channels; ++o)
          w[o * s[0] + tap / 3 * s[3] + tap % 3 * s[4]] = sums[tap * width_ + o];
    }
  }

  ConvPass pass_;
  int64_t lanes_, width_;
  WinogradGradWeightCut cut_;
  int64_t slots_;
  std::vector<int64_t> tile_offsets_;
  int64_t all_x_blocks_ = 0, all_y_blocks_ = 0;  // of all groups and depth taps
  int64_t blocks_ = 0;                           // pairs of them in a group: tasks of one split
  int64_t x_point_ = 0, y_point_ = 0, product_point_ = 0, sum_floats_ = 0;
  size_t x_bytes_ = 0, y_bytes_ = 0, sum_bytes_ = 0, product_bytes_ = 0, slot_bytes_ = 0;
};

// Floats of one row of transformed tiles, all channels.
Checked row_floats(const ConvPass& p, const WinogradGradWeightCut& cut, int64_t lanes) {
  return (Checked(p.axes[0].kernel) * cut.x_blocks * cut.x_tile + Checked(cut.y_blocks) * 2 * lanes) *
         p.groups * cut.tiles_w * kWinogradPoints;
}

void cut_channels(const ConvPass& p, int64_t lanes, WinogradGradWeightCut& cut) {
  const int64_t channels = p.x_channels_per_group();
  cut.x_blocks = ceil_div(channels, std::max(kXChannelsPerTask, lanes));
  cut.x_block = round_up(ceil_div(channels, cut.x_blocks), lanes);
  cut.x_blocks = ceil_div(channels, cut.x_block);
  cut.y_blocks = ceil_div(p.y_channels_per_group(), 2 * lanes);
  cut.tiles_h = ceil_div(p.axes[1].y, 4);
  cut.tiles_w = ceil_div(p.axes[2].y, 4);
  // An odd number of cache lines: a power of two would put all tiles into few sets of L1.
  cut.x_tile = round_up(cut.x_block, std::max(kLineFloats, lanes));
  if (cut.x_tile / kLineFloats % 2 == 0) cut.x_tile += std::max(kLineFloats, lanes);
}

std::optional<Reason> unfit(const ConvPass& conv, const Machine& machine) {
  if (auto reason = winograd_unfit(conv)) return reason;
  const int64_t lanes = vectors_of(machine).winograd_lanes();
  WinogradGradWeightCut cut;
  cut_channels(conv, lanes, cut);
  if (conv.batch * conv.axes[0].y * cut.tiles_h * cut.tiles_w < kFewestTiles)
    return fmt::format("there are fewer than {} tiles", kFewestTiles);
  if (row_floats(conv, cut, lanes).get().value_or(INT64_MAX) > kMostRowFloats)
    return "a row of transformed tiles exceeds the cache";
  return std::nullopt;
}

}  // namespace

WinogradGradWeightCut cut_winograd_grad_weight(const ConvPass& p, int64_t lanes) {
  WinogradGradWeightCut cut;
  cut_channels(p, lanes, cut);
  cut.rows = p.batch * p.axes[0].y * cut.tiles_h;
  const int64_t floats = row_floats(p, cut, lanes).get().value_or(kMostRowFloats);
  std::tie(cut.rows_per_chunk, cut.chunks) =
      cut_evenly(cut.rows, std::clamp<int64_t>(kChunkFloats / floats, 1, cut.rows));
  const int64_t strip_row = 4 * (4 * cut.tiles_w + 2) * lanes;
  cut.rows_per_strip =
      std::clamp<int64_t>(kStripFloats / strip_row, 1, std::min(kMostStripRows, cut.rows_per_chunk));
  const int64_t blocks = p.groups * p.axes[0].kernel * cut.x_blocks * cut.y_blocks;
  const int64_t most = std::max<int64_t>(1, cut.chunk_tiles() / kFewestTilesPerSplit);
  cut.tiles_per_split =
      ceil_div(cut.chunk_tiles(), std::clamp<int64_t>(ceil_div(kWantedTasks, blocks), 1, most));
  cut.splits = ceil_div(cut.chunk_tiles(), cut.tiles_per_split);
  return cut;
}

const Candidate& winograd_grad_weight() {
  static const ConvCandidate instance(
      {"cpu.winograd_grad_weight", kGradWeights, unfit, nullptr, make<WinogradGradWeightStep>, true});
  return instance;
}

}  // namespace retrograd::engines::cpu
