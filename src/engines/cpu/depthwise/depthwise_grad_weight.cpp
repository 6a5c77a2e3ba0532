// SPDX-License-Identifier: Apache-2.0
// w[c, t] = Σ_n Σ_p x[n, x(c), p·stride + offset(t)] · y[n, y(c), p]   with one x or one y channel a group
//
// Lanes are pairs (n, c) of planes. A task takes some boxes of positions of neighbouring blocks of lanes, and
// of those with the same channels in other images, and sums all taps a lane; x comes through a strip of
// lanes, y some rows at a time. A lane's sums are then one row of the workspace, and the rows of a channel
// are added in order: of the planes, then of the tasks. As in depthwise_gather.cpp only live products are
// made.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "engines/cpu/boxes.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/depthwise/depthwise_dot_taps.h"
#include "engines/cpu/depthwise/depthwise_strip.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/machine_vectors.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/task_slots.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::Range;

constexpr int64_t kStripFloats = 65536;                 // 256 KiB, a quarter of L2
constexpr int64_t kMostStripFloats = int64_t{1} << 22;  // dilation may spread the rows of a box far apart
constexpr int64_t kMostMultiplier = 8;
constexpr int64_t kMostTaps = 16384;
constexpr int64_t kWantedTasks = 32;
constexpr int64_t kVectorsPerTask = 32768;     // multiply-adds of a vector: about 10 µs
constexpr int64_t kMostSplitFloats = 1 << 20;  // of the sums of all splits, where there are several
constexpr int64_t kPlaceCost = 16;             // of transposing a place of x and of y, in multiply-adds
constexpr int64_t kPlacesPerGroup = 128;       // of y: 8 KiB, so that x stays in L1 beside it

int64_t pairs_of(const ConvPass& pass) { return std::max(pass.x_channels, pass.y_channels); }

BoxGrid cut_positions(const ConvPass& pass, const PlaneBlocks& blocks) {
  Positions total{1, 1, 1, 1};
  double places = 1, floats_a_place = static_cast<double>(blocks.lanes);
  for (size_t axis = 0; axis < 3; ++axis) {
    total[axis + 1] = pass.axes[axis].y;
    places *= static_cast<double>(total[axis + 1]);
    floats_a_place *= static_cast<double>(pass.axes[axis].stride);
  }
  const double share = places * static_cast<double>(blocks.blocks) / kWantedTasks;
  const double least = kVectorsPerTask / static_cast<double>(taps_of(pass) + kPlaceCost);
  const double wanted = std::min(kStripFloats / floats_a_place, std::max(share, least));
  return cut_into_boxes(total, static_cast<int64_t>(std::clamp(wanted, 16.0, 1e9)));
}

class DepthwiseGradWeightStep final : public Step {
 public:
  DepthwiseGradWeightStep(const ConvPass& pass, const Machine& machine)
      : pass_(with_long_rows(pass)),
        blocks_(cut_into_plane_blocks(pass.batch, pairs_of(pass), vectors_of(machine).plane_lanes())),
        grid_(cut_positions(pass_, blocks_)),
        axes_(gather_axes(pass_)),
        dot_taps_(pass_, axes_[2]),
        taps_(taps_of(pass_)),
        rows_per_group_(std::clamp<int64_t>(kPlacesPerGroup / grid_.box[3], 1, grid_.box[2])) {
    units_ = blocks_.repeats(0) * grid_.count();
    cut_ = cut_into_block_tasks(blocks_, {.floats = plane_floats(pass_) * blocks_.lanes,
                                          .kept = taps_ * blocks_.lanes,
                                          .vectors = count_of(grid_.box) * (taps_ + kPlaceCost)});
    // Each task adds a row of sums for each of its lanes, so there are not many more than wanted.
    const int64_t most = std::min(ceil_div(kWantedTasks, cut_.columns),
                                  ceil_div(kMostSplitFloats, blocks_.period * blocks_.lanes * taps_));
    units_per_split_ = std::min(units_, std::max(ceil_div(units_, most), cut_.repeats));
    splits_ = ceil_div(units_, units_per_split_);
    slots_.count = std::min<int64_t>(machine.cpu.threads, tasks());
    rows_ = slots_.shared.add<float>(splits_ * blocks_.period * blocks_.lanes * taps_);
    Parts& own = slots_.own;
    strip_ = own.add<float>(DepthwiseStrip::most_floats(axes_, grid_, 1, blocks_.lanes));
    y_ = own.add<float>(rows_per_group_ * grid_.box[3] * blocks_.lanes);
    sums_ = own.add<float>(cut_.neighbours * taps_ * blocks_.lanes);
    before_ = own.add<float>(taps_ * blocks_.lanes);
    buffer_ = own.add<float>(lane_buffer_floats(blocks_.lanes));
  }

  std::string describe() const override {
    return fmt::format("vectors of {} planes; {} of them, {} side by side a task, in {} splits, {}",
                       blocks_.lanes, blocks_.blocks, cut_.neighbours, splits_, to_string(grid_));
  }

  size_t workspace_bytes() const override { return slots_.bytes(); }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    float* const rows = rows_.in(workspace);
    run_tasks_nearby(*context.pool, tasks(), slots_.count, [&](int64_t task, int64_t slot) {
      std::byte* const memory = slots_.at(workspace, slot);
      const int64_t column = task % cut_.columns * cut_.neighbours, split = task / cut_.columns;
      const int64_t neighbours = std::min(cut_.neighbours, blocks_.period - column);
      sum_split(bindings, column, neighbours, split, memory);
      for (int64_t j = 0; j < neighbours; ++j) {
        LanePlanes planes =
            lane_planes({.dtype = DType::kF32}, OperandRounding::kNone,
                        rows + (split * blocks_.period + column + j) * block_sums(), blocks_.lanes);
        for (int64_t lane = 0; lane < blocks_.lanes; ++lane)
          planes.offsets[static_cast<size_t>(lane)] = lane * taps_;
        store_lanes(planes, 0, 1, taps_, buffer_.in(memory), sums_.in(memory) + j * block_sums());
      }
    });
    context.pool->parallel_for(blocks_.channels, ceil_div(4096, taps_), [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) store_channel(bindings, channel, rows);
    });
  }

 private:
  int64_t tasks() const { return cut_.columns * splits_; }
  int64_t block_sums() const { return taps_ * blocks_.lanes; }

  // Blocks [column, column + neighbours) of a period, one image after the other.
  void sum_split(const Bindings& bindings, int64_t column, int64_t neighbours, int64_t split,
                 std::byte* memory) const {
    std::fill_n(sums_.in(memory), neighbours * block_sums(), 0.0F);
    LanePlanes x = lane_planes(pass_.x, pass_.rounding, bindings[pass_.x.operand], blocks_.lanes);
    LanePlanes y = lane_planes(pass_.y, pass_.rounding, bindings[pass_.y.operand], blocks_.lanes);
    const int64_t pairs = pairs_of(pass_), of_x = pairs / pass_.x_channels, of_y = pairs / pass_.y_channels;
    float* partial = nullptr;  // the sums of the block that has lanes beyond the last plane
    BoxGrid::Box box;
    DepthwiseStrip::Ranges ranges;
    int64_t ranges_of = -1;  // the box that they are of
    for (int64_t unit = split * units_per_split_; unit < std::min((split + 1) * units_per_split_, units_);
         ++unit) {
      const int64_t index = unit % grid_.count();
      if (index != ranges_of) {
        box = grid_.at(index);
        ranges = DepthwiseStrip::ranges_of(axes_, box);
        ranges_of = index;
      }
      for (int64_t j = 0; j < neighbours; ++j) {
        const int64_t block = column + j + unit / grid_.count() * blocks_.period;
        if (block >= blocks_.blocks) break;
        float* const sums = sums_.in(memory) + j * block_sums();
        if (blocks_.used(block) < blocks_.lanes && partial == nullptr) {
          partial = sums;
          std::copy_n(sums, block_sums(), before_.in(memory));
        }
        place_shared_lanes(x, blocks_, block, pass_.x.strides, of_x);
        place_shared_lanes(y, blocks_, block, pass_.y.strides, of_y);
        sum_box(x, y, box, ranges, sums, memory);
      }
    }
    if (partial == nullptr) return;
    for (int64_t tap = 0; tap < taps_; ++tap)
      for (int64_t lane = blocks_.used(blocks_.blocks - 1); lane < blocks_.lanes; ++lane)
        partial[tap * blocks_.lanes + lane] = before_.in(memory)[tap * blocks_.lanes + lane];
  }

  void sum_box(const LanePlanes& x, const LanePlanes& y, const BoxGrid::Box& box,
               const DepthwiseStrip::Ranges& ranges, float* sums, std::byte* memory) const {
    DepthwiseStrip strip(ranges, pass_.x.strides, &x, 1, strip_.in(memory), buffer_.in(memory));
    const problem::Window& wh = pass_.axes[1];
    const auto& s = pass_.y.strides;
    const int64_t h_end = box.first[2] + box.size[2];
    for (int64_t d = box.first[1]; d < box.first[1] + box.size[1]; ++d)
      for (int64_t h = box.first[2]; h < h_end; h += rows_per_group_) {
        const Range rows{h, std::min(h + rows_per_group_, h_end)};
        load_lane_rows(y, {d * s[2] + h * s[3] + box.first[3] * s[4], s[3], s[4], rows.size(), box.size[3]},
                       buffer_.in(memory), y_.in(memory));
        strip.load_up_to(position(wh, rows.end - 1, wh.kernel - 1) + 1);
        for (int64_t tap = 0; tap < pass_.axes[0].kernel; ++tap) {
          const int64_t depth = position(pass_.axes[0], d, tap);
          if (depth >= 0 && depth < pass_.axes[0].x) sum_depth(strip, box, tap, depth, rows, sums, memory);
        }
      }
  }

  // Rows of y against all taps of one depth.
  void sum_depth(const DepthwiseStrip& strip, const BoxGrid::Box& box, int64_t depth_tap, int64_t depth,
                 const Range& rows, float* sums, std::byte* memory) const {
    const int64_t lanes = blocks_.lanes, first = strip.range(1).begin;
    kernels::cpu::DepthwiseDots dots;
    dots.x = reinterpret_cast<const std::byte*>(strip.row(0, depth, first));
    dots.x_row = strip.row_floats();
    dots.y = reinterpret_cast<const std::byte*>(y_.in(memory));
    dots.y_row = box.size[3] * lanes;
    dots.x_place = dots.y_place = lanes;
    dots.first = box.first[3];
    dots.count = box.size[3];
    dots.start = strip.range(2).begin;
    dots.sums = sums + depth_tap * pass_.axes[1].kernel * pass_.axes[2].kernel * lanes;
    dot_taps_.add(rows, first, lanes, dots);
  }

  // Adds the rows of all lanes and splits of one channel in order.
  void store_channel(const Bindings& bindings, int64_t channel, float* rows) const {
    float* total = nullptr;
    const int64_t end = std::min(blocks_.period * blocks_.lanes, blocks_.planes);
    for (int64_t plane = channel; plane < end; plane += blocks_.channels)
      for (int64_t split = 0; split < splits_; ++split) {
        float* row = rows + ((split * blocks_.period + plane / blocks_.lanes) * blocks_.lanes +
                             plane % blocks_.lanes) *
                                taps_;
        if (total == nullptr) {
          total = row;
        } else {
          for (int64_t tap = 0; tap < taps_; ++tap) total[tap] += row[tap];
        }
      }
    const int64_t inner = pass_.x_channels_per_group();
    store_taps(pass_, bindings, channel / inner, channel % inner, total);
  }

  ConvPass pass_;
  PlaneBlocks blocks_;  // of pairs
  BoxGrid grid_;        // of positions of y
  std::array<GatherAxis, 3> axes_;
  DepthwiseDotTaps dot_taps_;
  int64_t taps_, rows_per_group_;
  BlockTasks cut_;
  int64_t units_ = 0, units_per_split_ = 1, splits_ = 1;
  Slots slots_;
  Part<float> rows_, strip_, y_, sums_, buffer_;
  Part<float> before_;  // the sums without the last block, where it has lanes that are no planes
};

std::optional<Reason> unfit(const ConvPass& conv, const Machine& machine) {
  const int64_t x = conv.x_channels_per_group(), y = conv.y_channels_per_group();
  if (std::min(x, y) > 1 || std::max(x, y) > kMostMultiplier)
    return "a group has more than one channel on both sides, or more than 8";
  const PlaneBlocks blocks =
      cut_into_plane_blocks(conv.batch, pairs_of(conv), vectors_of(machine).plane_lanes());
  if (blocks.planes * 2 < blocks.blocks * blocks.lanes)
    return "there are too few planes to fill a vector with them";
  if (taps_of(conv) > kMostTaps) return "the kernel has more than 2^14 taps";
  const ConvPass rows = with_long_rows(conv);
  if (DepthwiseStrip::most_floats(gather_axes(rows), cut_positions(rows, blocks), 1, blocks.lanes) >
      kMostStripFloats)
    return "a box of all lanes would read more than 2^22 places";
  return std::nullopt;
}

}  // namespace

const Candidate& depthwise_grad_weight() {
  static const ConvCandidate instance({"cpu.depthwise_grad_weight", kGradWeights, unfit,
                                       depthwise_planes_effort, make<DepthwiseGradWeightStep>});
  return instance;
}

}  // namespace retrograd::engines::cpu
