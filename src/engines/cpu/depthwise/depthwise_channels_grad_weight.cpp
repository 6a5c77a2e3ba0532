// SPDX-License-Identifier: Apache-2.0
// w[c, t] = Σ_n Σ_p x[n, c, p·stride + offset(t)] · y[n, c, p]   with channels side by side
//
// Lanes are neighbouring channels, so FP32 and 16-bit types are read where they lie; others are converted, a
// band of rows at a time. A task takes a chunk of channels and a split of the bands of all images, and keeps
// one vector of sums for each block of lanes and tap; the splits of a block are then added in order. Only
// live taps are multiplied, so what is not finite needs no look.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "engines/cpu/boxes.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/depthwise/depthwise_channels.h"
#include "engines/cpu/depthwise/depthwise_dot_taps.h"
#include "engines/cpu/depthwise/depthwise_planes.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/machine_vectors.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/task_slots.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::PassTensor;
using problem::Range;

constexpr int64_t kBandFloats = 65536;                 // 256 KiB, a quarter of L2
constexpr int64_t kMostBandFloats = int64_t{1} << 22;  // dilation may spread the rows of a band far apart
constexpr int64_t kMostTaps = 16384;
constexpr int64_t kSegmentPlaces = 128;
constexpr int64_t kRowsBeside = 4;  // beside those of a window, to find a band's worth of channels
constexpr int64_t kWantedTasks = 32;
constexpr int64_t kFewTasks = 8;
constexpr int64_t kVectorsPerTask = 32768;  // multiply-adds of a vector: about 10 µs
constexpr int64_t kPlacesPerSum = 4;        // that a split adds up at least, or its sums cost as much
constexpr int64_t kFloatsPerStore = 65536;

struct Cut {
  ChannelChunks chunks;
  int64_t segment = 0, segments = 0;  // positions along W
  int64_t band = 1, bands = 0;        // along H
  int64_t x_places = 0, x_rows = 0;   // of a segment and a band
  int64_t units = 0, units_per_split = 1, splits = 1;
};

Cut cut_bands(const ConvPass& pass, const std::array<GatherAxis, 3>& axes, int64_t lanes) {
  Cut cut;
  const int64_t width = axes[2].results, height = axes[1].results, depth = axes[0].results;
  std::tie(cut.segment, cut.segments) = cut_evenly(width, kSegmentPlaces);
  cut.x_places = std::max<int64_t>(axes[2].most_sources(cut.segment), 1);
  const int64_t window = std::max<int64_t>(axes[1].most_sources(1), 1);
  const int64_t places = std::max(cut.x_places, cut.segment);
  const int64_t taps = taps_of(pass), all = pass.batch * depth * height * width;
  const int64_t most_splits = std::max<int64_t>(all / (kPlacesPerSum * taps), 1);
  const int64_t wanted = kBandFloats / (places * (window + kRowsBeside));
  cut.chunks = cut_channels(pass.groups, lanes,
                            std::min(wanted, pass.groups / std::max<int64_t>(kFewTasks / most_splits, 1)));
  const int64_t channels = cut.chunks.most_channels(), stride = pass.axes[1].stride;
  const int64_t x_rows = kBandFloats / (places * channels);
  const int64_t rows = pass.batch * depth * cut.segments * height;
  const int64_t row_cost = cut.segment * channel_blocks(cut.chunks, channels) * (taps + 2);
  const int64_t rows_per_task =
      std::max(ceil_div(rows * cut.chunks.count(), kWantedTasks), ceil_div(kVectorsPerTask, row_cost));
  cut.band = std::clamp<int64_t>(std::min(1 + (x_rows - window) / stride, rows_per_task), 1, height);
  std::tie(cut.band, cut.bands) = cut_evenly(height, cut.band);
  cut.x_rows = std::max<int64_t>(axes[1].most_sources(cut.band), 1);
  cut.units = pass.batch * depth * cut.segments * cut.bands;
  const int64_t splits =
      std::clamp<int64_t>(ceil_div(kWantedTasks, cut.chunks.count()), 1, std::min(most_splits, cut.units));
  cut.units_per_split =
      std::min(cut.units, std::max(ceil_div(cut.units, splits), ceil_div(rows_per_task, cut.band)));
  cut.splits = ceil_div(cut.units, cut.units_per_split);
  return cut;
}

// What both operands are read as: their type, in place, or FP32, converted.
DType type_to_read(const ConvPass& pass) {
  const DType type = pass.x.dtype;
  const bool alike = pass.y.dtype == type && pass.rounding == OperandRounding::kNone;
  return alike && size_of(type) == 2 ? type : DType::kF32;
}

// Rows of y of one image, depth and segment.
struct Band {
  int64_t image = 0, depth = 0;
  Range places, rows;
};

// Rows as the kernel takes them.
struct View {
  const std::byte* at = nullptr;
  int64_t place = 0, row = 0;
};

// Some rows of one depth of a tensor, in place or in `buffer`.
View view_rows(const PassTensor& tensor, OperandRounding rounding, bool in_place, const std::byte* at,
               const Range& rows, const Range& places, int64_t channels, float* buffer) {
  const auto& s = tensor.strides;
  const auto bytes = static_cast<int64_t>(size_of(tensor.dtype));
  if (in_place) return {at + (rows.begin * s[3] + places.begin * s[4]) * bytes, s[4], s[3]};
  const int64_t row = places.size() * channels;
  for (int64_t h = rows.begin; h < rows.end; ++h)
    load_places(tensor, rounding, at + h * s[3] * bytes, places, channels, buffer + (h - rows.begin) * row);
  return {reinterpret_cast<const std::byte*>(buffer), channels, row};
}

class DepthwiseChannelsGradWeightStep final : public Step {
 public:
  DepthwiseChannelsGradWeightStep(const ConvPass& pass, const Machine& machine)
      : pass_(with_long_rows(pass)),
        axes_(gather_axes(pass_)),
        dot_taps_(pass_, axes_[2]),
        type_(type_to_read(pass_)),
        taps_(taps_of(pass_)),
        cut_(cut_bands(pass_, axes_, vectors_of(machine).plane_lanes())) {
    const int64_t lanes = cut_.chunks.lanes, most = cut_.chunks.most_channels();
    sum_floats_ = channel_blocks(cut_.chunks, most) * taps_ * lanes;
    stores_ = cut_.chunks.count() * ceil_div(channel_blocks(cut_.chunks, most), blocks_per_store());
    slots_.count = std::min<int64_t>(machine.cpu.threads, std::max(tasks(), stores_));
    sums_ = slots_.shared.add<float>(tasks() * sum_floats_);
    const auto add = [&](const PassTensor& tensor, int64_t places) {
      return slots_.own.add<float>(stays_in_place(tensor) ? 0 : places * most);
    };
    x_ = add(pass_.x, cut_.x_rows * cut_.x_places);
    y_ = add(pass_.y, cut_.band * cut_.segment);
    buffer_ = slots_.own.add<float>(lane_buffer_floats(lanes));
  }

  std::string describe() const override {
    return fmt::format(
        "vectors of {} channels, {} chunks of {}, {} splits of {} bands of {} rows x {} places",
        cut_.chunks.lanes, cut_.chunks.count(), cut_.chunks.most_channels(), cut_.splits,
        cut_.units_per_split, cut_.band, cut_.segment);
  }

  size_t workspace_bytes() const override { return slots_.bytes(); }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    float* const sums = sums_.in(workspace);
    run_tasks_nearby(*context.pool, tasks(), slots_.count, [&](int64_t task, int64_t slot) {
      sum_split(bindings, task / cut_.splits, task % cut_.splits, slots_.at(workspace, slot),
                sums + task * sum_floats_);
    });
    const int64_t blocks = channel_blocks(cut_.chunks, cut_.chunks.most_channels());
    const int64_t per_chunk = ceil_div(blocks, blocks_per_store());
    run_tasks(*context.pool, stores_, slots_.count, [&](int64_t task, int64_t slot) {
      const int64_t first = task % per_chunk * blocks_per_store();
      store_blocks(bindings, task / per_chunk, {first, first + blocks_per_store()}, sums,
                   buffer_.in(slots_.at(workspace, slot)));
    });
  }

 private:
  bool stays_in_place(const PassTensor& tensor) const {
    return tensor.dtype == type_ && pass_.rounding == OperandRounding::kNone;
  }
  int64_t tasks() const { return cut_.chunks.count() * cut_.splits; }
  int64_t blocks_per_store() const {
    return std::max<int64_t>(kFloatsPerStore / (cut_.splits * taps_ * cut_.chunks.lanes), 1);
  }

  Band band_at(int64_t index) const {
    const auto take = [&](int64_t count) { return std::exchange(index, index / count) % count; };
    Band band;
    const int64_t row = take(cut_.bands) * cut_.band;
    band.rows = {row, std::min(row + cut_.band, axes_[1].results)};
    const int64_t place = take(cut_.segments) * cut_.segment;
    band.places = {place, std::min(place + cut_.segment, axes_[2].results)};
    band.depth = take(axes_[0].results);
    band.image = index;
    return band;
  }

  void sum_split(const Bindings& bindings, int64_t chunk, int64_t split, std::byte* memory,
                 float* sums) const {
    std::fill_n(sums, sum_floats_, 0.0F);
    const int64_t first = split * cut_.units_per_split;
    for (int64_t unit = first; unit < std::min(first + cut_.units_per_split, cut_.units); ++unit)
      sum_band(bindings, cut_.chunks.at(chunk), band_at(unit), memory, sums);
  }

  void sum_band(const Bindings& bindings, const Range& channels, const Band& band, std::byte* memory,
                float* sums) const {
    const auto& wd = pass_.axes[0];
    const Range x_rows = axes_[1].sources(band.rows.begin, band.rows.end);
    const Range x_places = axes_[2].sources(band.places.begin, band.places.end);
    if (x_rows.size() == 0 || x_places.size() == 0) return;
    const auto address = [&](const PassTensor& tensor, int64_t depth) {
      return static_cast<const std::byte*>(bindings[tensor.operand]) +
             (band.image * tensor.strides[0] + channels.begin + depth * tensor.strides[2]) *
                 static_cast<int64_t>(size_of(tensor.dtype));
    };
    const View y = view_rows(pass_.y, pass_.rounding, stays_in_place(pass_.y), address(pass_.y, band.depth),
                             band.rows, band.places, channels.size(), y_.in(memory));
    const int64_t plane_taps = pass_.axes[1].kernel * pass_.axes[2].kernel, lanes = cut_.chunks.lanes;
    const Range live = live_taps(wd, band.depth);
    for (int64_t tap = live.begin; tap < live.end; ++tap) {
      const View x = view_rows(pass_.x, pass_.rounding, stays_in_place(pass_.x),
                               address(pass_.x, position(wd, band.depth, tap)), x_rows, x_places,
                               channels.size(), x_.in(memory));
      kernels::cpu::DepthwiseDots dots;
      dots.type = type_;
      dots.x_place = x.place;
      dots.x_row = x.row;
      dots.y_place = y.place;
      dots.y_row = y.row;
      dots.first = band.places.begin;
      dots.count = band.places.size();
      dots.start = x_places.begin;
      dots.x = x.at;
      dots.y = y.at;
      dots.sums = sums + tap * plane_taps * lanes;
      dots.blocks = channel_blocks(cut_.chunks, channels.size());
      dots.last_block = channels.size() - lanes;
      dots.block_sums = taps_ * lanes;
      dot_taps_.add(band.rows, x_rows.begin, lanes, dots);
    }
  }

  // Adds the splits of some blocks of a chunk in order, into the first of them, and writes them.
  void store_blocks(const Bindings& bindings, int64_t chunk, const Range& blocks, float* sums,
                    float* buffer) const {
    const Range channels = cut_.chunks.at(chunk);
    const int64_t lanes = cut_.chunks.lanes, count = taps_ * lanes;
    const auto& s = pass_.w.strides;
    const auto& [kd, kh, kw] = pass_.axes;
    const bool one_run = taps_are_one_run(pass_);
    LanePlanes planes = lane_planes(pass_.w, OperandRounding::kNone, bindings[pass_.w.operand], lanes);
    float* first = sums + chunk * cut_.splits * sum_floats_;
    const int64_t end = std::min(blocks.end, channel_blocks(cut_.chunks, channels.size()));
    for (int64_t block = blocks.begin; block < end; ++block) {
      float* total = first + block * count;
      for (int64_t split = 1; split < cut_.splits; ++split)
        for (int64_t i = 0; i < count; ++i) total[i] += total[split * sum_floats_ + i];
      const int64_t channel = channels.begin + block_start(cut_.chunks, channels.size(), block);
      for (int64_t lane = 0; lane < lanes; ++lane)
        planes.offsets[static_cast<size_t>(lane)] = (channel + lane) * s[0];
      if (one_run) {
        store_lanes(planes, 0, s[4], taps_, buffer, total);
        continue;
      }
      for (int64_t d = 0; d < kd.kernel; ++d)
        store_lane_rows(planes, {d * s[2], s[3], s[4], kh.kernel, kw.kernel}, buffer,
                        total + d * kh.kernel * kw.kernel * lanes);
    }
  }

  ConvPass pass_;
  std::array<GatherAxis, 3> axes_;
  DepthwiseDotTaps dot_taps_;
  DType type_;
  int64_t taps_;
  Cut cut_;
  int64_t sum_floats_ = 0, stores_ = 0;
  Slots slots_;
  Part<float> sums_, x_, y_, buffer_;
};

std::optional<Reason> unfit(const ConvPass& conv, const Machine& machine) {
  const int64_t lanes = vectors_of(machine).plane_lanes();
  if (auto reason = unfit_for_channels(conv, lanes)) return reason;
  if (taps_of(conv) > kMostTaps) return "the kernel has more than 2^14 taps";
  const ConvPass rows = with_long_rows(conv);
  const Cut cut = cut_bands(rows, gather_axes(rows), lanes);
  if ((Checked(cut.x_rows) * cut.x_places * cut.chunks.most_channels()).get().value_or(INT64_MAX) >
      kMostBandFloats)
    return "a band of a vector of channels would read more than 2^22 places";
  return std::nullopt;
}

}  // namespace

const Candidate& depthwise_channels_grad_weight() {
  static const ConvCandidate instance({"cpu.depthwise_channels_grad_weight", kGradWeights, unfit,
                                       depthwise_channels_effort, make<DepthwiseChannelsGradWeightStep>});
  return instance;
}

}  // namespace retrograd::engines::cpu
