// SPDX-License-Identifier: Apache-2.0
// result[n, c, q] = Σ_t source[n, c, place(q, t)] · weight[c, t]   with channels side by side
//
// Lanes are neighbouring channels, so FP32 and 16-bit types are read and written where they lie; others are
// converted row by row. The work is a list of groups: some rows of results of a segment along W, of a chunk
// of channels of an image. A task takes neighbouring groups and packs the weights of a chunk when it comes to
// one. Within a group one block of lanes after the other is computed, so that the rows it reads stay in L1
// and the group in L2. Only live taps are multiplied, so what is not finite needs no look.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "engines/cpu/bias_start.h"
#include "engines/cpu/boxes.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/depthwise/depthwise_channels.h"
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

constexpr int64_t kGroupFloats = 262144;  // 1 MiB: what is used again of it stays in L1, the rest passes by
constexpr int64_t kMostRowFloats = int64_t{1} << 22;  // dilation may spread the rows of a window far apart
// Beyond the fewer of these a copy whose places lie close together pays, unless they do already or pairs are
// decoded: 9.1 ms against 7.9 for replk_dw31_56_c128 in FP32, 3.7 against 4.4 in BF16.
constexpr int64_t kMostTerms = 1024, kMostTermsApart = 64;
constexpr int64_t kMostDecodes = 36;  // of an element; 7 x 7 taps and 16 channels: 0.53 ms, converted 0.46
constexpr int64_t kSegmentPlaces = 128;
constexpr int64_t kFewestFetched = 1 << 20;  // results that do not come from L2
constexpr int64_t kRowsBeside = 4;           // beside those of a window, to find a group's worth of channels
constexpr int64_t kWantedTasks = 32;
constexpr int64_t kVectorsPerTask = 32768;  // multiply-adds of a vector: about 10 µs
constexpr int64_t kPlaceCost = 4;           // of a place beside its multiply-adds

// Whether tensors are read and written where they lie. Elements of 16 bits are decoded for each tap, which
// takes least time where two blocks of lanes are decoded at once.
bool stays_in_place(const ConvPass& pass, int64_t lanes) {
  const DType type = source_of(pass).dtype;
  if (pass.result().dtype != type || pass.rounding != OperandRounding::kNone) return false;
  const bool pairs = type == DType::kBF16 && pass.groups >= 2 * lanes;
  return type == DType::kF32 || (size_of(type) == 2 && (pairs || terms_of(pass) <= kMostDecodes));
}

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
  std::tie(cut.segment, cut.segments) = cut_evenly(width, kSegmentPlaces);
  cut.source_places = std::max<int64_t>(axes[2].most_sources(cut.segment), 1);
  cut.slots = {std::max<int64_t>(axes[0].most_sources(1), 1), std::max<int64_t>(axes[1].most_sources(1), 1)};
  const int64_t places = std::max(cut.source_places, cut.segment);
  cut.chunks = cut_channels(pass.groups, lanes, kGroupFloats / (places * (cut.slots.count() + kRowsBeside)));
  const int64_t most = cut.chunks.most_channels();
  const int64_t source_height = axes[1].phases.front().source_size;
  const bool fits = cut.slots.depths * source_height <= kGroupFloats * 2 / (cut.source_places * most);
  if (fits) cut.slots.rows = source_height;
  const int64_t rows = cut.chunks.count() * pass.batch * cut.segments * axes[0].results * height;
  const int64_t row_cost = cut.segment * channel_blocks(cut.chunks, most) * (terms_of(pass) + kPlaceCost);
  cut.rows_per_task = std::max(ceil_div(rows, kWantedTasks), ceil_div(kVectorsPerTask, row_cost));
  // Several rows at once where all are as far apart.
  if (fits || is_plain(source_of(pass), pass.rounding) || stays_in_place(pass, lanes))
    cut.rows_per_group =
        std::clamp<int64_t>(std::min(kGroupFloats / (places * most), cut.rows_per_task), 1, height);
  std::tie(cut.rows_per_group, cut.groups) = cut_evenly(height, cut.rows_per_group);
  return cut;
}

// Some rows of results of one chunk of channels.
struct Group {
  int64_t chunk = 0, image = 0, depth = 0;
  Range places, rows;
};

class DepthwiseChannelsGatherStep final : public Step {
 public:
  DepthwiseChannelsGatherStep(const ConvPass& pass, const Machine& machine)
      : pass_(with_long_rows(pass)),
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
    in_place_ = stays_in_place(pass_, lanes);
    // 16 registers do not hold the sums and weights of three taps of a pair.
    const problem::Window& w = pass_.axes[2];
    const bool three = w.kernel == 3 && w.stride == 1 && w.dilation == 1;
    pairs_ =
        in_place_ && pass_.result().dtype == DType::kBF16 && !(three && vectors_of(machine).few_registers());
    const bool converts = !reads_in_place();
    slots_.count = std::min<int64_t>(machine.cpu.threads, tasks_);
    Parts& own = slots_.own;
    packed_ = own.add<int64_t>(1);
    weights_ = own.add<float>(vectors * taps_.vectors() * lanes);
    unordered_ = own.add<float>(taps_.unordered_vectors() * lanes);
    buffer_ = own.add<float>(lane_buffer_floats(lanes));
    rows_ = own.add<float>(converts ? cut_.slots.count() * cut_.source_places * most : 0);
    tags_ = own.add<int64_t>(converts ? cut_.slots.count() : 0);
    out_ = own.add<float>(writes_in_place() ? 0 : cut_.rows_per_group * cut_.segment * most);
    bias_ = own.add<float>(bias_floats(pass_, most));
    starts_ = own.add<float>(bias_floats(pass_, vectors * lanes));
  }

  std::string describe() const override {
    return fmt::format("vectors of {} channels, {} tasks of {} groups of {} rows x {} places x {} channels",
                       cut_.chunks.lanes, tasks_, groups_per_task_, cut_.rows_per_group, cut_.segment,
                       cut_.chunks.most_channels());
  }

  size_t workspace_bytes() const override { return slots_.bytes(); }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    for (int64_t slot = 0; slot < slots_.count; ++slot) *packed_.in(slots_.at(workspace, slot)) = -1;
    run_tasks_nearby(*context.pool, tasks_, slots_.count, [&](int64_t task, int64_t slot) {
      run_groups(bindings, {task * groups_per_task_, std::min((task + 1) * groups_per_task_, groups_)},
                 slots_.at(workspace, slot));
    });
  }

 private:
  bool reads_in_place() const { return in_place_ || is_plain(source_of(pass_), pass_.rounding); }
  int64_t pairs(int64_t channels) const {
    const int64_t two = 2 * cut_.chunks.lanes;
    if (!pairs_ || channels < two) return 0;
    return channels / two + (channels % two > cut_.chunks.lanes ? 1 : 0);
  }
  bool writes_in_place() const { return in_place_ || pass_.result().dtype == DType::kF32; }

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

  void pack_weights(const Bindings& bindings, int64_t chunk, std::byte* memory) const {
    if (std::exchange(*packed_.in(memory), chunk) == chunk) return;
    const auto& s = pass_.w.strides;
    const Range channels = cut_.chunks.at(chunk);
    const int64_t lanes = cut_.chunks.lanes;
    const float* const bias = load_bias(pass_, bindings, channels.begin, channels.size(), bias_.in(memory));
    LanePlanes planes = lane_planes(pass_.w, pass_.rounding, bindings[pass_.w.operand], lanes);
    for (int64_t block = 0; block < channel_blocks(cut_.chunks, channels.size()); ++block) {
      // Of a pair of blocks one has the even channels, the other the odd ones.
      const bool paired = block / 2 < pairs(channels.size());
      const int64_t first = paired ? std::min(block / 2 * 2 * lanes, channels.size() - 2 * lanes) + block % 2
                                   : block_start(cut_.chunks, channels.size(), block);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const int64_t channel = first + (paired ? 2 * lane : lane);
        planes.offsets[static_cast<size_t>(lane)] = (channels.begin + channel) * s[0];
        if (bias != nullptr) starts_.in(memory)[block * lanes + lane] = bias[channel];
      }
      taps_.pack(planes, s, unordered_.in(memory), buffer_.in(memory),
                 weights_.in(memory) + block * taps_.vectors() * lanes);
    }
  }

  void run_groups(const Bindings& bindings, const Range& groups, std::byte* memory) const {
    const PassTensor& source = source_of(pass_);
    const auto bytes = static_cast<int64_t>(size_of(source.dtype));
    const auto* base = static_cast<const std::byte*>(bindings[source.operand]);
    ChannelRows rows(source, pass_.rounding, reads_in_place(), axes_[1].phases.front().source_size,
                     cut_.slots, rows_.in(memory), tags_.in(memory));
    for (int64_t index = groups.begin; index < groups.end; ++index) {
      const Group group = group_at(index);
      const Range channels = cut_.chunks.at(group.chunk);
      pack_weights(bindings, group.chunk, memory);
      const bool same_rows = index > groups.begin && (group.depth > 0 || group.rows.begin > 0);
      if (!same_rows)
        rows.begin(base + (group.image * source.strides[0] + channels.begin) * bytes,
                   axes_[2].sources(group.places.begin, group.places.end), channels.size());
      run_group(bindings, group, channels, rows, memory);
    }
  }

  void run_group(const Bindings& bindings, const Group& group, const Range& channels, ChannelRows& rows,
                 std::byte* memory) const {
    const PassTensor& result = pass_.result();
    const auto& s = result.strides;
    auto* to = static_cast<std::byte*>(bindings[result.operand]) +
               (group.image * s[0] + channels.begin + group.depth * s[2] + group.rows.begin * s[3]) *
                   static_cast<int64_t>(size_of(result.dtype));
    const int64_t row_floats = writes_in_place() ? s[3] : group.places.size() * channels.size();
    DepthwiseRow row;
    if (in_place_) row.type = result.dtype;
    row.source_row = rows.row_floats();
    row.out_row = row_floats;
    row.source_place = rows.place_floats();
    row.source_start = axes_[2].sources(group.places.begin, group.places.end).begin;
    row.out_place = writes_in_place() ? s[4] : channels.size();
    row.start = pass_.bias ? starts_.in(memory) : nullptr;
    row.blocks = channel_blocks(cut_.chunks, channels.size());
    row.last_block = channels.size() - cut_.chunks.lanes;
    row.block_weights = taps_.vectors() * cut_.chunks.lanes;
    row.pairs = pairs(channels.size());
    row.fetches = fetches_;
    const auto bytes = static_cast<int64_t>(size_of(result.dtype));
    row.out = writes_in_place() ? to + group.places.begin * s[4] * bytes
                                : reinterpret_cast<std::byte*>(out_.in(memory));
    taps_.run<kMostTerms>(group.depth, group.rows, group.places, 1, weights_.in(memory), cut_.chunks.lanes,
                          row, [&](int64_t, int64_t d, int64_t h, int64_t step, int64_t count) {
                            for (int64_t i = rows.in_place() ? 0 : count; i-- > 1;) rows.row(d, h + i * step);
                            return rows.row(d, h);
                          });
    if (writes_in_place()) return;
    for (int64_t h = 0; h < group.rows.size(); ++h)
      store_places(result, to + h * s[3] * bytes, group.places, channels.size(),
                   out_.in(memory) + h * row_floats);
  }

  ConvPass pass_;
  std::array<GatherAxis, 3> axes_;
  DepthwiseTaps taps_;
  Cut cut_;
  bool fetches_ = false, in_place_ = false, pairs_ = false;
  int64_t groups_ = 0, groups_per_task_ = 1, tasks_ = 0;
  Slots slots_;
  Part<int64_t> packed_;  // the chunk whose weights are there, or -1
  Part<float> weights_;   // [block][tap along D][tap along H][slot][lane]
  Part<float> unordered_, buffer_, rows_, out_, bias_;
  Part<float> starts_;  // the bias, [block][lane]
  Part<int64_t> tags_;
};

std::optional<Reason> unfit(const ConvPass& conv, const Machine& machine) {
  if (auto reason = unfit_phases(conv)) return reason;
  const int64_t lanes = vectors_of(machine).plane_lanes();
  if (auto reason = unfit_for_channels(conv, lanes)) return reason;
  if (taps_of(conv) > kMostTerms) return "the kernel has more than 1024 taps";
  const bool apart = conv.groups > 2 * lanes && source_of(conv).dtype != DType::kBF16;
  if (taps_of(conv) > kMostTermsApart && apart)
    return "the kernel has more than 64 taps, and places lie apart";
  const ConvPass rows = with_long_rows(conv);
  const Cut cut = cut_groups(rows, gather_axes(rows), lanes);
  if ((Checked(cut.slots.depths) * cut.slots.rows * cut.source_places * cut.chunks.most_channels())
          .get()
          .value_or(INT64_MAX) > kMostRowFloats)
    return "a window of a vector of channels would read more than 2^22 places";
  return std::nullopt;
}

}  // namespace

const Candidate& depthwise_channels_gather() {
  static const ConvCandidate instance({"cpu.depthwise_channels_gather", kGathers, unfit,
                                       depthwise_channels_effort, make<DepthwiseChannelsGatherStep>});
  return instance;
}

}  // namespace retrograd::engines::cpu
