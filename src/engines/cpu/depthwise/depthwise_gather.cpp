// SPDX-License-Identifier: Apache-2.0
// result[n, c, q] = Σ_s Σ_t source[n, s(c), place(q, t)] · weight[s, c, t]   with one s or one c a group
//
// Lanes are planes (n, c) of the result. A task takes some neighbouring blocks of lanes and those with the
// same channels in other images, packs their weights [block][s][d][h][w][lane] once, and computes a box of
// pixels of each: source rows are transposed into a strip [s][d][h][w][lane] just before the first row of
// results that reads them, rows of results are written as soon as some are done. The strip is clipped to the
// source and only live taps are multiplied, so what is not finite needs no look.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "engines/cpu/bias_start.h"
#include "engines/cpu/boxes.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/depthwise/depthwise_strip.h"
#include "engines/cpu/depthwise/depthwise_taps.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/machine_vectors.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/task_slots.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::DepthwiseRow;
using problem::ConvPass;
using problem::PassTensor;
using problem::Range;

constexpr int64_t kStripFloats = 65536;                 // 256 KiB, a quarter of L2
constexpr int64_t kMostStripFloats = int64_t{1} << 22;  // dilation may spread the rows of a box far apart
constexpr int64_t kMostMultiplier = DepthwiseStrip::kMostSources;
constexpr int64_t kMostTerms = 65536;
constexpr int64_t kMostTapRows = 512;
constexpr int64_t kWantedTasks = 32;
constexpr int64_t kVectorsPerTask = 32768;  // multiply-adds of a vector: about 10 µs
constexpr int64_t kPlaceCost = 16;          // of transposing a place there and back, in multiply-adds
constexpr int64_t kPlacesPerStore = 256;

// Boxes whose source fits the strip; smaller ones where there are few blocks of lanes.
BoxGrid cut_results(const ConvPass& pass, const PlaneBlocks& blocks) {
  Positions total{1, 1, 1, 1};
  double places = 1, sources_a_place = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    const problem::Window& w = pass.axes[axis];
    total[axis + 1] = is_forward(pass) ? w.y : w.x;
    places *= static_cast<double>(total[axis + 1]);
    sources_a_place *= is_forward(pass) ? static_cast<double>(w.stride) : 1 / static_cast<double>(w.stride);
  }
  const auto floats_a_place = static_cast<double>(blocks.lanes * source_channels(pass)) * sources_a_place;
  const double share = places * static_cast<double>(blocks.blocks) / kWantedTasks;
  const double least = kVectorsPerTask / static_cast<double>(terms_of(pass) + kPlaceCost);
  const double wanted = std::min(kStripFloats / floats_a_place, std::max(share, least));
  return cut_into_boxes(total, static_cast<int64_t>(std::clamp(wanted, 16.0, 1e9)));
}

class DepthwiseGatherStep final : public Step {
 public:
  DepthwiseGatherStep(const ConvPass& pass, const Machine& machine)
      : pass_(with_long_rows(pass)),
        blocks_(cut_into_plane_blocks(pass.batch, result_channels(pass) * pass.groups,
                                      vectors_of(machine).plane_lanes())),
        grid_(cut_results(pass_, blocks_)),
        axes_(gather_axes(pass_)),
        taps_(pass_, axes_) {
    block_weights_ = source_channels(pass_) * taps_.vectors() * blocks_.lanes;
    cut_ = cut_into_block_tasks(blocks_, {.floats = plane_floats(pass_) * blocks_.lanes,
                                          .kept = block_weights_,
                                          .vectors = count_of(grid_.box) * (terms_of(pass_) + kPlaceCost)});
    tasks_ = ceil_div(blocks_.repeats(0), cut_.repeats) * cut_.columns * grid_.count();
    rows_per_store_ = std::clamp<int64_t>(kPlacesPerStore / grid_.box[3], 1, grid_.box[2]);
    slots_.count = std::min<int64_t>(machine.cpu.threads, tasks_);
    Parts& own = slots_.own;
    strip_ = own.add<float>(DepthwiseStrip::most_floats(axes_, grid_, source_channels(pass_), blocks_.lanes));
    out_ = own.add<float>(rows_per_store_ * grid_.box[3] * blocks_.lanes);
    weights_ = own.add<float>(cut_.neighbours * block_weights_);
    unordered_ = own.add<float>(taps_.unordered_vectors() * blocks_.lanes);
    buffer_ = own.add<float>(lane_buffer_floats(blocks_.lanes));
    bias_ = own.add<float>(bias_floats(pass_, cut_.neighbours * blocks_.lanes));
  }

  std::string describe() const override {
    return fmt::format("vectors of {} planes; {} tasks of {} x {} of them, {}", blocks_.lanes, tasks_,
                       cut_.repeats, cut_.neighbours, to_string(grid_));
  }

  size_t workspace_bytes() const override { return slots_.bytes(); }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    run_tasks_nearby(*context.pool, tasks_, slots_.count, [&](int64_t task, int64_t slot) {
      std::byte* const memory = slots_.at(workspace, slot);
      const BoxGrid::Box box = grid_.at(task % grid_.count());
      const int64_t column = task / grid_.count() % cut_.columns * cut_.neighbours;
      const int64_t neighbours = std::min(cut_.neighbours, blocks_.period - column);
      const int64_t first = task / grid_.count() / cut_.columns * cut_.repeats;
      const int64_t end = std::min(first + cut_.repeats, blocks_.repeats(column));
      if (first >= end) return;
      for (int64_t j = 0; j < neighbours; ++j) pack_weights(bindings, column + j, j, memory);
      const DepthwiseStrip::Ranges ranges = DepthwiseStrip::ranges_of(axes_, box);
      Planes planes = planes_of(bindings);
      for (int64_t i = first; i < end; ++i)
        for (int64_t j = 0; j < neighbours; ++j) {
          const int64_t block = column + j + i * blocks_.period;
          if (block >= blocks_.blocks) break;
          // Lanes beyond the last plane repeat it, so their weights must be its weights.
          if (i > 0 && blocks_.used(block) < blocks_.lanes) pack_weights(bindings, block, j, memory);
          run_box(block, j, box, ranges, planes, memory);
        }
    });
  }

 private:
  // Of the tensors that a task reads and writes, before place_lanes().
  struct Planes {
    std::array<LanePlanes, DepthwiseStrip::kMostSources> sources;
    LanePlanes result;
  };
  Planes planes_of(const Bindings& bindings) const {
    const PassTensor &source = source_of(pass_), &result = pass_.result();
    Planes planes;
    for (size_t i = 0; i < static_cast<size_t>(source_channels(pass_)); ++i)
      planes.sources[i] = lane_planes(source, pass_.rounding, bindings[source.operand], blocks_.lanes);
    planes.result = lane_planes(result, OperandRounding::kNone, bindings[result.operand], blocks_.lanes);
    return planes;
  }

  // [s][d][h][slot][lane], as the task's block `neighbour`.
  void pack_weights(const Bindings& bindings, int64_t block, int64_t neighbour, std::byte* memory) const {
    const auto& s = pass_.w.strides;
    const int64_t lanes = blocks_.lanes, sources = source_channels(pass_), results = result_channels(pass_);
    if (pass_.bias) {
      const auto& bias = *pass_.bias;
      LanePlanes one = lane_planes(bias, OperandRounding::kNone, bindings[bias.operand], lanes);
      place_lanes(one, blocks_, block, bias.strides, [](int64_t channel) { return channel; });
      load_lanes(one, 0, 1, 1, buffer_.in(memory), bias_.in(memory) + neighbour * lanes);
    }
    LanePlanes planes = lane_planes(pass_.w, pass_.rounding, bindings[pass_.w.operand], lanes);
    for (int64_t source = 0; source < sources; ++source) {
      // The weights of a channel are the same in every image.
      const problem::Strides5 channel_stride{0, 1, 0, 0, 0};
      place_lanes(planes, blocks_, block, channel_stride, [&](int64_t channel) {
        return is_forward(pass_) ? channel * s[0] + source * s[1]
                                 : (channel / results * sources + source) * s[0] + channel % results * s[1];
      });
      taps_.pack(planes, s, unordered_.in(memory), buffer_.in(memory),
                 weights_.in(memory) + neighbour * block_weights_ + source * taps_.vectors() * lanes);
    }
  }

  void run_box(int64_t block, int64_t neighbour, const BoxGrid::Box& box,
               const DepthwiseStrip::Ranges& ranges, Planes& planes, std::byte* memory) const {
    const int64_t sources = source_channels(pass_), results = result_channels(pass_);
    const auto& from = source_of(pass_).strides;
    place_shared_lanes(planes.sources[0], blocks_, block, from, results);
    for (int64_t i = 0; sources > 1 && i < sources; ++i)  // of one result channel, then
      place_lanes(planes.sources[static_cast<size_t>(i)], blocks_, block, from,
                  [&](int64_t channel) { return channel * sources + i; });
    DepthwiseStrip strip(ranges, from, planes.sources.data(), sources, strip_.in(memory), buffer_.in(memory));
    const auto& s = pass_.result().strides;
    place_shared_lanes(planes.result, blocks_, block, s, 1);
    const int64_t width = box.size[3], h_end = box.first[2] + box.size[2];
    const Range places{box.first[3], box.first[3] + width};
    DepthwiseRow row;
    if (pass_.bias) row.start = bias_.in(memory) + neighbour * blocks_.lanes;
    const float* const weights = weights_.in(memory) + neighbour * block_weights_;
    row.source_row = strip.row_floats();
    row.source_place = row.out_place = blocks_.lanes;
    row.source_start = strip.range(2).begin;
    row.out = reinterpret_cast<std::byte*>(out_.in(memory));
    row.out_row = width * blocks_.lanes;
    for (int64_t d = box.first[1]; d < box.first[1] + box.size[1]; ++d)
      for (int64_t h = box.first[2]; h < h_end; h += rows_per_store_) {
        const int64_t rows = std::min(rows_per_store_, h_end - h);
        strip.load_up_to(axes_[1].sources(h, h + rows).end);
        taps_.run<kMostTapRows>(d, {h, h + rows}, places, sources, weights, blocks_.lanes, row,
                                [&](int64_t channel, int64_t at_d, int64_t at_h, int64_t, int64_t) {
                                  return strip.row(channel, at_d, at_h);
                                });
        store_lane_rows(planes.result, {d * s[2] + h * s[3] + box.first[3] * s[4], s[3], s[4], rows, width},
                        buffer_.in(memory), out_.in(memory));
      }
  }

  ConvPass pass_;
  PlaneBlocks blocks_;
  BoxGrid grid_;  // of places of the result
  std::array<GatherAxis, 3> axes_;
  DepthwiseTaps taps_;
  int64_t block_weights_ = 0;  // floats
  BlockTasks cut_;
  int64_t tasks_ = 0, rows_per_store_ = 1;
  Slots slots_;
  Part<float> strip_, out_, weights_, unordered_, buffer_, bias_;
};

std::optional<Reason> unfit(const ConvPass& conv, const Machine& machine) {
  if (auto reason = unfit_phases(conv)) return reason;
  const int64_t sources = source_channels(conv), results = result_channels(conv);
  if (std::min(sources, results) > 1 || std::max(sources, results) > kMostMultiplier)
    return "a group has more than one channel on both sides, or more than 8";
  const PlaneBlocks blocks =
      cut_into_plane_blocks(conv.batch, conv.groups * results, vectors_of(machine).plane_lanes());
  if (blocks.planes * 2 < blocks.blocks * blocks.lanes)
    return "there are too few planes to fill a vector with them";
  if (sources * conv.axes[0].kernel * conv.axes[1].kernel > kMostTapRows)
    return "the kernels of a result have more than 512 rows";
  if (sources * taps_of(conv) > kMostTerms) return "a result is a sum of more than 2^16 products";
  const ConvPass rows = with_long_rows(conv);
  if (DepthwiseStrip::most_floats(gather_axes(rows), cut_results(rows, blocks), sources, blocks.lanes) >
      kMostStripFloats)
    return "a box of all lanes would read more than 2^22 places";
  return std::nullopt;
}

}  // namespace

const Candidate& depthwise_gather() {
  static const ConvCandidate instance(
      {"cpu.depthwise_gather", kGathers, unfit, depthwise_planes_effort, make<DepthwiseGatherStep>});
  return instance;
}

}  // namespace retrograd::engines::cpu
