// SPDX-License-Identifier: Apache-2.0
// result[n, c, q] = Σ_t source[n, c, place(q, t)] · weight[c, t]   with channels side by side
//
// Lanes are neighbouring channels, so FP32 is read and written where it lies; other types are converted row
// by row. The work is a list of groups: some rows of results of a segment along W, of a chunk of channels of
// an image. A task takes neighbouring groups and packs the weights of a chunk when it comes to one. Within a
// group one block of lanes after the other is computed, so that the rows it reads stay in L1 and the group in
// L2. Only live taps are multiplied, so what is not finite needs no look.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "engines/cpu/bias_start.h"
#include "engines/cpu/depthwise/depthwise_channels.h"
#include "engines/cpu/depthwise/depthwise_taps.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/machine_vectors.h"
#include "engines/cpu/task_slots.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::DepthwiseRow;
using problem::ConvPass;
using problem::PassTensor;
using problem::Range;

constexpr int64_t kGroupFloats = 262144;  // 1 MiB: what is used again of it stays in L1, the rest passes by
constexpr int64_t kMostRowFloats = int64_t{1} << 22;  // dilation may spread the rows of a window far apart
// Beyond these a copy whose places lie close together pays: 9.1 ms against 7.9 for replk_dw31_56_c128.
constexpr int64_t kMostTerms = 64;
constexpr int64_t kSegmentPlaces = 128;
constexpr int64_t kFewestFetched = 1 << 20;  // results that do not come from L2
constexpr int64_t kRowsBeside = 4;           // beside those of a window, to find a group's worth of channels
constexpr int64_t kWantedTasks = 32;
constexpr int64_t kVectorsPerTask = 32768;  // multiply-adds of a vector: about 10 µs
constexpr int64_t kPlaceCost = 4;           // of a place beside its multiply-adds

struct Cut {
  ChannelChunks chunks;
  int64_t segment = 0, segments = 0;       // results along W
  int64_t rows_per_group = 1, groups = 0;  // along H
  int64_t rows_per_task = 1;               // at least
  int64_t source_places = 0;               // of a segment
  ChannelRows::Slots slots;
};

Cut cut_groups(const ConvPass& pass, const std::array<GatherAxis, 3>& axes, int64_t lanes) {
  Cut cut;
  const int64_t width = axes[2].results, height = axes[1].results;
  cut.segments = ceil_div(width, kSegmentPlaces);
  cut.segment = ceil_div(width, cut.segments);
  cut.segments = ceil_div(width, cut.segment);
  cut.source_places = std::max<int64_t>(axes[2].most_sources(cut.segment), 1);
  cut.slots = {std::max<int64_t>(axes[0].most_sources(1), 1), std::max<int64_t>(axes[1].most_sources(1), 1)};
  const int64_t places = std::max(cut.source_places, cut.segment);
  cut.chunks = cut_channels(pass.groups, lanes, kGroupFloats / (places * (cut.slots.count() + kRowsBeside)));
  const int64_t most = cut.chunks.most_channels();
  const int64_t source_height = axes[1].phases.front().source_size;
  const bool fits = cut.slots.depths * source_height <= kGroupFloats * 2 / (cut.source_places * most);
  if (fits) cut.slots.rows = source_height;
  int64_t terms = 1;
  for (const problem::Window& w : pass.axes)
    terms *= is_forward(pass) ? w.kernel : ceil_div(w.kernel, w.stride);
  const int64_t rows = cut.chunks.count() * pass.batch * cut.segments * axes[0].results * height;
  const int64_t row_cost = cut.segment * channel_blocks(cut.chunks, most) * (terms + kPlaceCost);
  cut.rows_per_task = std::max(ceil_div(rows, kWantedTasks), ceil_div(kVectorsPerTask, row_cost));
  // Several rows at once where all are as far apart.
  if (fits || is_plain(source_of(pass), pass.rounding))
    cut.rows_per_group =
        std::clamp<int64_t>(std::min(kGroupFloats / (places * most), cut.rows_per_task), 1, height);
  cut.groups = ceil_div(height, cut.rows_per_group);
  cut.rows_per_group = ceil_div(height, cut.groups);
  cut.groups = ceil_div(height, cut.rows_per_group);
  return cut;
}

// The memory of one task.
struct Scratch {
  int64_t* packed;  // the chunk whose weights are there, or -1
  float* weights;   // [block][tap along D][tap along H][slot][lane]
  float* unordered;
  float* buffer;
  float* rows;
  int64_t* tags;
  float* out;
  float* bias;  // of the chunk
};

// Some rows of results of one chunk of channels.
struct Group {
  int64_t chunk = 0, image = 0, depth = 0;
  Range places, rows;
};

class DepthwiseChannelsGatherStep final : public Step {
 public:
  DepthwiseChannelsGatherStep(const ConvPass& pass, const Machine& machine)
      : pass_(with_long_rows(pass)),
        slots_(machine.cpu.threads),
        axes_(gather_axes(pass_)),
        taps_(pass_, axes_),
        cut_(cut_groups(pass_, axes_, vectors_of(machine).plane_lanes())) {
    const int64_t lanes = cut_.chunks.lanes, most = cut_.chunks.most_channels();
    const int64_t vectors = channel_blocks(cut_.chunks, most);
    groups_ = cut_.chunks.count() * pass_.batch * cut_.segments * axes_[0].results * cut_.groups;
    groups_per_task_ = ceil_div(cut_.rows_per_task, cut_.rows_per_group);
    tasks_ = ceil_div(groups_, groups_per_task_);
    fetches_ =
        pass_.batch * pass_.groups * axes_[0].results * axes_[1].results * axes_[2].results >= kFewestFetched;
    const bool converts = !is_plain(source_of(pass_), pass_.rounding);
    weight_bytes_ = part_bytes<float>(vectors * taps_.vectors() * lanes);
    unordered_bytes_ = part_bytes<float>(taps_.unordered_vectors() * lanes);
    buffer_bytes_ = part_bytes<float>(lane_buffer_floats(lanes));
    row_bytes_ = part_bytes<float>(converts ? cut_.slots.count() * cut_.source_places * most : 0);
    tag_bytes_ = part_bytes<int64_t>(converts ? cut_.slots.count() : 0);
    out_bytes_ = part_bytes<float>(writes_in_place() ? 0 : cut_.rows_per_group * cut_.segment * most);
    bias_bytes_ = part_bytes<float>(bias_floats(pass_, most));
    slot_bytes_ = part_bytes<int64_t>(1) + weight_bytes_ + unordered_bytes_ + buffer_bytes_ + row_bytes_ +
                  tag_bytes_ + out_bytes_ + bias_bytes_;
  }

  std::string describe() const override {
    return fmt::format("vectors of {} channels, {} tasks of {} groups of {} rows x {} places x {} channels",
                       cut_.chunks.lanes, tasks_, groups_per_task_, cut_.rows_per_group, cut_.segment,
                       cut_.chunks.most_channels());
  }

  size_t workspace_bytes() const override { return static_cast<size_t>(used_slots()) * slot_bytes_; }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const auto scratch_of = [&](int64_t slot) {
      return scratch_at(workspace + static_cast<size_t>(slot) * slot_bytes_);
    };
    for (int64_t slot = 0; slot < used_slots(); ++slot) *scratch_of(slot).packed = -1;
    run_tasks_nearby(*context.pool, tasks_, slots_, [&](int64_t task, int64_t slot) {
      run_groups(bindings, {task * groups_per_task_, std::min((task + 1) * groups_per_task_, groups_)},
                 scratch_of(slot));
    });
  }

 private:
  int64_t used_slots() const { return std::min(slots_, tasks_); }
  bool writes_in_place() const { return pass_.result().dtype == DType::kF32; }

  Scratch scratch_at(std::byte* at) const {
    const auto take = [&](size_t bytes) { return std::exchange(at, at + bytes); };
    Scratch s{};
    s.packed = reinterpret_cast<int64_t*>(take(part_bytes<int64_t>(1)));
    s.weights = reinterpret_cast<float*>(take(weight_bytes_));
    s.unordered = reinterpret_cast<float*>(take(unordered_bytes_));
    s.buffer = reinterpret_cast<float*>(take(buffer_bytes_));
    s.rows = reinterpret_cast<float*>(take(row_bytes_));
    s.tags = reinterpret_cast<int64_t*>(take(tag_bytes_));
    s.out = reinterpret_cast<float*>(take(out_bytes_));
    s.bias = reinterpret_cast<float*>(take(bias_bytes_));
    return s;
  }

  Group group_at(int64_t index) const {
    const auto take = [&](int64_t count) { return std::exchange(index, index / count) % count; };
    Group group;
    const int64_t row = take(cut_.groups) * cut_.rows_per_group;
    group.rows = {row, std::min(row + cut_.rows_per_group, axes_[1].results)};
    group.depth = take(axes_[0].results);
    const int64_t place = take(cut_.segments) * cut_.segment;
    group.places = {place, std::min(place + cut_.segment, axes_[2].results)};
    group.image = take(pass_.batch);
    group.chunk = index;
    return group;
  }

  void pack_weights(const Bindings& bindings, int64_t chunk, const Scratch& scratch) const {
    if (std::exchange(*scratch.packed, chunk) == chunk) return;
    const auto& s = pass_.w.strides;
    const Range channels = cut_.chunks.at(chunk);
    const int64_t lanes = cut_.chunks.lanes;
    load_bias(pass_, bindings, channels.begin, channels.size(), scratch.bias);
    LanePlanes planes = lane_planes(pass_.w, pass_.rounding, bindings[pass_.w.operand], lanes);
    for (int64_t block = 0; block < channel_blocks(cut_.chunks, channels.size()); ++block) {
      const int64_t first = channels.begin + block_start(cut_.chunks, channels.size(), block);
      for (int64_t lane = 0; lane < lanes; ++lane)
        planes.offsets[static_cast<size_t>(lane)] = (first + lane) * s[0];
      taps_.pack(planes, s, scratch.unordered, scratch.buffer,
                 scratch.weights + block * taps_.vectors() * lanes);
    }
  }

  void run_groups(const Bindings& bindings, const Range& groups, const Scratch& scratch) const {
    const PassTensor& source = source_of(pass_);
    const auto bytes = static_cast<int64_t>(size_of(source.dtype));
    const auto* base = static_cast<const std::byte*>(bindings[source.operand]);
    ChannelRows rows(source, pass_.rounding, axes_[1].phases.front().source_size, cut_.slots, scratch.rows,
                     scratch.tags);
    for (int64_t index = groups.begin; index < groups.end; ++index) {
      const Group group = group_at(index);
      const Range channels = cut_.chunks.at(group.chunk);
      pack_weights(bindings, group.chunk, scratch);
      const bool same_rows = index > groups.begin && (group.depth > 0 || group.rows.begin > 0);
      if (!same_rows)
        rows.begin(base + (group.image * source.strides[0] + channels.begin) * bytes,
                   axes_[2].sources(group.places.begin, group.places.end), channels.size());
      run_group(bindings, group, channels, rows, scratch);
    }
  }

  void run_group(const Bindings& bindings, const Group& group, const Range& channels, ChannelRows& rows,
                 const Scratch& scratch) const {
    const PassTensor& result = pass_.result();
    const auto& s = result.strides;
    auto* to = static_cast<std::byte*>(bindings[result.operand]) +
               (group.image * s[0] + channels.begin + group.depth * s[2] + group.rows.begin * s[3]) *
                   static_cast<int64_t>(size_of(result.dtype));
    const int64_t row_floats = writes_in_place() ? s[3] : group.places.size() * channels.size();
    TapRows<kMostTerms> lists;
    DepthwiseRow row;
    row.sources = lists.sources;
    row.weights = lists.weights;
    row.source_place = rows.place_floats();
    row.source_start = axes_[2].sources(group.places.begin, group.places.end).begin;
    row.out_place = writes_in_place() ? s[4] : channels.size();
    row.start = pass_.bias ? scratch.bias : nullptr;
    row.blocks = channel_blocks(cut_.chunks, channels.size());
    row.last_block = channels.size() - cut_.chunks.lanes;
    row.block_weights = taps_.vectors() * cut_.chunks.lanes;
    row.fetches = fetches_;
    float* out = writes_in_place() ? reinterpret_cast<float*>(to) + group.places.begin * s[4] : scratch.out;
    for (size_t i = 0; i < axes_[1].phases.size(); ++i) {
      const AxisPhase& phase = axes_[1].phases[i];
      const Range& full = taps_.full_rows(i);
      const Range positions = positions_in(phase, group.rows.begin, group.rows.end);
      for (int64_t j = positions.begin; j < positions.end;) {
        const bool is_full = j >= full.begin && j < full.end;
        const int64_t end = is_full ? std::min(full.end, positions.end) : j + 1;
        row.out_rows = end - j;
        row.out_row = phase.step * row_floats;
        row.source_row = phase.source_step * rows.row_floats();
        list_rows(group.depth, phase, {j, end}, rows, scratch.weights, lists, row);
        float* at = out + (phase.first + j * phase.step - group.rows.begin) * row_floats;
        taps_.run(group.places, row, at);
        j = end;
      }
    }
    if (writes_in_place()) return;
    const auto bytes = static_cast<int64_t>(size_of(result.dtype));
    for (int64_t h = 0; h < group.rows.size(); ++h)
      store_places(result, to + h * s[3] * bytes, group.places, channels.size(),
                   scratch.out + h * row_floats);
  }

  // The rows of the source and of the weights behind the first of some rows of results, which are alike; all
  // that the others read is loaded.
  void list_rows(int64_t d, const AxisPhase& ph, const Range& results, ChannelRows& rows,
                 const float* weights, TapRows<kMostTerms>& lists, DepthwiseRow& row) const {
    const AxisPhase& pd = axes_[0].phase_of(d);
    const int64_t place_d = d / pd.step * pd.source_step, place_h = results.begin * ph.source_step;
    row.rows = 0;
    for (const PhaseTap& td : pd.taps) {
      if (place_d + td.offset < 0 || place_d + td.offset >= pd.source_size) continue;
      for (const PhaseTap& th : ph.taps) {
        if (place_h + th.offset < 0 || place_h + th.offset >= ph.source_size) continue;
        for (int64_t i = rows.in_place() ? 0 : results.size(); i-- > 1;)
          rows.row(place_d + td.offset, place_h + i * ph.source_step + th.offset);
        lists.sources[row.rows] = rows.row(place_d + td.offset, place_h + th.offset);
        lists.weights[row.rows++] = weights + taps_.row_of(td.tap, th.tap) * cut_.chunks.lanes;
      }
    }
  }

  ConvPass pass_;
  int64_t slots_;
  std::array<GatherAxis, 3> axes_;
  DepthwiseTaps taps_;
  Cut cut_;
  bool fetches_ = false;
  int64_t groups_ = 0, groups_per_task_ = 1, tasks_ = 0;
  size_t weight_bytes_ = 0, unordered_bytes_ = 0, buffer_bytes_ = 0, row_bytes_ = 0, tag_bytes_ = 0,
         out_bytes_ = 0, bias_bytes_ = 0, slot_bytes_ = 0;
};

class DepthwiseChannelsGatherCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.depthwise_channels_gather"; }
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    return depthwise_channels_effort(pass, machine);
  }
  Support supports(const problem::Pass& pass, const Machine& machine) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (const Support dense = dense_gather().supports(pass, machine); !dense.accepted()) return dense;
    const int64_t lanes = vectors_of(machine).plane_lanes();
    if (const auto reason = unfit_for_channels(*conv, lanes)) return Support::no(*reason);
    int64_t terms = 1;
    for (const problem::Window& window : conv->axes) terms *= window.kernel;
    if (terms > kMostTerms) return Support::no("the kernel has more than 64 taps");
    const ConvPass rows = with_long_rows(*conv);
    const Cut cut = cut_groups(rows, gather_axes(rows), lanes);
    if ((Checked(cut.slots.depths) * cut.slots.rows * cut.source_places * cut.chunks.most_channels())
            .get()
            .value_or(INT64_MAX) > kMostRowFloats)
      return Support::no("a window of a vector of channels would read more than 2^22 places");
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass, const Machine& machine) const override {
    return std::make_unique<DepthwiseChannelsGatherStep>(std::get<ConvPass>(pass), machine);
  }
};

}  // namespace

const Candidate& depthwise_channels_gather() {
  static const DepthwiseChannelsGatherCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu
