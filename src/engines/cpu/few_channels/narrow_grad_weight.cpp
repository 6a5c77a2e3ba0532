// SPDX-License-Identifier: Apache-2.0
// w[o, i, t] = Σ_p y[o, p] · x[i, p·stride + offset(t)]   with few o, or few (i, t)
//
// with positions p as the vector side, so that neither operand is transposed. x is copied apart by residues
// (residue_strips.h): there, neighbours in p are neighbours in memory and t is an offset. y is read in place
// if that makes whole vectors, else it is copied (dots_cut.h). A task owns a block of y channels, a block of
// x channels and a split of the boxes, and keeps one vector of sums a weight.
//
// Zeros around x and behind y add products that the mathematics does not have. That differs only where the
// other factor is not finite: both operands are checked, and such a box runs with masks (masked_rows.h).
//
// Where the machine multiplies pairs of BF16, copies of BF16 numbers stay what they are (bf16_rows.h), but
// for boxes with numbers that those products would lose or that are not finite.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/dense/cells.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/few_channels/dots_cut.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/few_channels/bf16_rows.h"
#include "kernels/cpu/few_channels/row_dots.h"
#include "kernels/cpu/layout/masked_rows.h"
#include "kernels/cpu/vector_shape.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;

constexpr int64_t kMostResidues = 64;
constexpr int64_t kMostTaps = 4096;
constexpr int64_t kFewRows = 64;  // (i, t): where the dense engine would spend its time on packing y
// Fewer products than these take less time than waking a thread.
constexpr int64_t kProductsForThreads = int64_t{1} << 18;

int64_t rounded_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Element `index` of rows of FP32 or, halved, of BF16 numbers.
const float* element(const float* rows, int64_t index, bool halved) {
  return halved ? reinterpret_cast<const float*>(reinterpret_cast<const uint16_t*>(rows) + index)
                : rows + index;
}

class NarrowGradWeightStep final : public Step {
 public:
  NarrowGradWeightStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass),
        cut_(cut_dots(pass, vectors_of(machine))),
        pairs_(!unfit_for_bf16_pairs(pass, machine)),
        blocks_(ceil_div(pass.groups, cut_.groups_at_once) * cut_.y_blocks * cut_.x_blocks) {
    list_terms();
    slots_.count = std::min<int64_t>(machine.cpu.threads, blocks_ * cut_.splits);
    for (const AxisFold& axis : cut_.axes) leaves_source_ |= axis.leaves_source();
    const int64_t lanes = cut_.vectors.dot_lanes();
    const int64_t weights = pass.y_channels * pass.x_channels_per_group() * cut_.taps;
    if (std::min(kProductsForThreads, weights) * std::min(kProductsForThreads, count_of(cut_.grid.total)) <
        kProductsForThreads)
      slots_.count = 1;
    total_floats_ = cut_.groups_at_once * cut_.y_block * cut_.x_block * cut_.taps;
    totals_ = slots_.shared.add<float>(blocks_ * cut_.splits * total_floats_);
    // A call of the kernel reads whole vectors.
    strips_ = slots_.own.add<float>(cut_.groups_at_once * cut_.x_block * cut_.strips.channel_pitch() + lanes);
    sums_ = slots_.own.add<float>(total_floats_ * lanes);
    const int64_t copied = cut_.groups_at_once > 1 ? cut_.groups_at_once * cut_.y_block : cut_.call_channels;
    copy_ = slots_.own.add<float>(copied * cut_.y_stride);
    valid_ = slots_.own.add<float>(cut_.strips.channel_pitch() + lanes);
    y_valid_ = slots_.own.add<float>(cut_.copies_y() ? cut_.y_stride : 0);
  }

  std::string describe() const override {
    return fmt::format(
        "calls of {} y channels; {} tasks: {} splits of {}, blocks of {} x {} channels, {} groups at once{}",
        cut_.call_channels, blocks_ * cut_.splits, cut_.splits, to_string(cut_.grid), cut_.y_block,
        cut_.x_block, cut_.groups_at_once, pairs_ ? ", pairs of bf16" : "");
  }

  size_t workspace_bytes() const override { return slots_.bytes(); }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    float* const totals = totals_.in(workspace);
    run_tasks(*context.pool, blocks_ * cut_.splits, slots_.count, [&](int64_t task, int64_t slot) {
      sum_split(bindings, place_of(task % blocks_), task / blocks_, totals + task * total_floats_,
                slots_.at(workspace, slot));
    });
    context.pool->parallel_for(blocks_, std::max<int64_t>(1, 16384 / std::max<int64_t>(total_floats_, 1)),
                               [&](int64_t begin, int64_t end) {
                                 for (int64_t block = begin; block < end; ++block)
                                   store_block(bindings, block, totals);
                               });
  }

 private:
  struct Place {
    int64_t group, groups;
    int64_t y_first, y_count, x_first, x_count;  // channels within the group
  };
  Place place_of(int64_t block) const {
    const int64_t rest = block / cut_.x_blocks;
    const int64_t y_first = rest % cut_.y_blocks * cut_.y_block,
                  x_first = block % cut_.x_blocks * cut_.x_block;
    const int64_t group = rest / cut_.y_blocks * cut_.groups_at_once;
    return {.group = group,
            .groups = std::min(cut_.groups_at_once, pass_.groups - group),
            .y_first = y_first,
            .y_count = std::min(cut_.y_block, pass_.y_channels_per_group() - y_first),
            .x_first = x_first,
            .x_count = std::min(cut_.x_block, pass_.x_channels_per_group() - x_first)};
  }
  // offsets_[x channel][tap] into the strips.
  void list_terms() {
    const auto& [d, h, w] = cut_.axes;
    offsets_.reserve(static_cast<size_t>(cut_.x_block * cut_.taps));
    for (const int64_t od : d.offsets)
      for (const int64_t oh : h.offsets)
        for (const int64_t ow : w.offsets) offsets_.push_back(cut_.strips.offset_of({od, oh, ow}));
    const size_t taps = offsets_.size(), all = taps * static_cast<size_t>(cut_.x_block);
    while (offsets_.size() < all)
      offsets_.push_back(offsets_[offsets_.size() - taps] + cut_.strips.channel_pitch());
  }

  // totals[group][y channel][x channel][tap] of a split.
  void sum_split(const Bindings& bindings, const Place& place, int64_t split, float* totals,
                 std::byte* memory) const {
    float *const strips = strips_.in(memory), *const sums = sums_.in(memory), *const copy = copy_.in(memory);
    const auto& x = pass_.x;
    const auto* x_base = static_cast<const std::byte*>(bindings[x.operand]) +
                         (place.group * pass_.x_channels_per_group() + place.x_first) * x.strides[1] *
                             static_cast<int64_t>(size_of(x.dtype));
    const int64_t group_strips = place.x_count * cut_.strips.channel_pitch();
    const bool several = cut_.groups_at_once > 1;
    bool halved = pairs_;  // sums that pairs did not make may be too small to add pairs to
    const int64_t first = split * cut_.boxes_per_split;
    const int64_t last = std::min(first + cut_.boxes_per_split, cut_.grid.count());
    for (int64_t index = first; index < last; ++index) {
      Box box{.at = cut_.grid.at(index),
              .x = x_base,
              .x_channels = place.groups * place.x_count,
              .strips = strips,
              .valid = valid_.in(memory),
              .y_valid = cut_.copies_y() ? y_valid_.in(memory) : nullptr,
              .halved = halved};
      load_x(box);
      kernels::cpu::RowDots dots;
      dots.offsets = offsets_.data();
      dots.terms = place.x_count * cut_.taps;
      const int64_t y_first = place.group * pass_.y_channels_per_group() + place.y_first;
      if (several) copy_y(bindings, y_first, place.groups * place.y_count, box, copy);
      for (int64_t g = 0; g < place.groups; ++g)
        for (int64_t o = 0; o < place.y_count; o += cut_.call_channels) {
          const int64_t row = g * place.y_count + o;
          dots.channels = static_cast<int>(std::min(cut_.call_channels, place.y_count - o));
          dots.accumulate = index > first;
          dots.sums = sums + row * dots.terms * kernels::cpu::vector_shape().dot_lanes();
          dots.next = next_call(place, index, last, o);
          if (!several && cut_.copies_y()) copy_y(bindings, y_first + o, dots.channels, box, copy);
          add_box(bindings, y_first + o, box, element(strips, g * group_strips, box.halved),
                  several ? element(copy, row * cut_.y_stride, box.halved) : copy, dots);
        }
      halved = box.halved;
    }
    kernels::cpu::lane_totals(sums, place.groups * place.y_count * place.x_count * cut_.taps, totals);
  }

  // A box while it is added.
  struct Box {
    BoxGrid::Box at;
    const std::byte* x;  // its first channel
    int64_t x_channels;
    float* strips;
    float *valid, *y_valid;  // of y where it is copied, else null
    bool halved;             // what is copied are BF16 numbers
    bool masked = false;     // something is not finite, and the two above say which places are there
  };
  // The FP32 numbers that were copied become BF16; false where pairs would lose one or meet a zero that the
  // mathematics does not have.
  static bool halve(float* values, int64_t count) {
    const kernels::cpu::CellFacts facts = kernels::cpu::halve(values, count);
    return facts.large && facts.finite;
  }
  void load_x(Box& box) const {
    const int64_t floats = box.x_channels * cut_.strips.channel_pitch();
    cut_.strips.load(pass_.x, pass_.rounding, box.x, box.x_channels, box.at, box.strips);
    if (box.halved && halve(box.strips, floats)) return;
    if (std::exchange(box.halved, false)) return load_x(box);
    std::fill_n(box.strips + floats, kernels::cpu::vector_shape().dot_lanes(), 0.0F);
    if (!all_finite(box.strips, floats)) mask(box);
  }
  // As if all of x and y were ones.
  void mask(Box& box) const {
    if (std::exchange(box.masked, true)) return;
    const float one = 1;
    const auto* ones = reinterpret_cast<const std::byte*>(&one);
    cut_.strips.load({}, OperandRounding::kNone, ones, 1, box.at, box.valid);
    std::fill_n(box.valid + cut_.strips.channel_pitch(), kernels::cpu::vector_shape().dot_lanes(), 0.0F);
    if (cut_.copies_y()) load_y({}, OperandRounding::kNone, ones, 1, box.at, box.y_valid);
  }
  void add_rows(const Box& box, const float* strips, const kernels::cpu::RowDots& dots, int64_t y_at) const {
    if (box.halved) return kernels::cpu::bf16_row_dots(dots);
    if (!box.masked) return kernels::cpu::row_dots(dots);
    kernels::cpu::masked_row_dots(dots, {.valid = box.valid + (dots.source - strips),
                                         .valid_terms = cut_.taps,
                                         .y_valid = box.y_valid == nullptr ? nullptr : box.y_valid + y_at});
  }

  // How far behind y the next call reads: its next channels, or the first ones of the next box.
  int64_t next_call(const Place& place, int64_t index, int64_t last, int64_t o) const {
    const auto& s = pass_.y.strides;
    if (cut_.copies_y()) return 0;
    if (o + cut_.call_channels < place.y_count) return cut_.call_channels * s[1];
    if (index + 1 == last) return 0;
    const auto at = [&](const Positions& p) { return p[0] * s[0] + p[1] * s[2] + p[2] * s[3] + p[3] * s[4]; };
    return at(cut_.grid.at(index + 1).first) - at(cut_.grid.at(index).first) - o * s[1];
  }

  // One call for the whole box, or one for each of its planes.
  void add_box(const Bindings& bindings, int64_t channel, Box& box, const float* strips, const float* copy,
               kernels::cpu::RowDots& dots) const {
    const auto& s = pass_.y.strides;
    const auto& [first, size] = box.at;
    const auto* base = static_cast<const std::byte*>(bindings[pass_.y.operand]) +
                       (first[0] * s[0] + channel * s[1]) * static_cast<int64_t>(size_of(pass_.y.dtype));
    if (cut_.y == DotsRows::kOneRow) return add_one_row(box, strips, copy, dots);
    const auto& extent = cut_.strips.extent();
    const bool copied = cut_.copies_y(), joined = cut_.y == DotsRows::kJoined;
    const auto* y =
        copied ? copy : reinterpret_cast<const float*>(base) + first[1] * s[2] + first[2] * s[3] + first[3];
    const int64_t plane = copied ? cut_.y_extent[1] * cut_.y_pitch : s[2];
    const int64_t image = copied ? cut_.y_extent[0] * plane : s[0];
    dots.y_stride = copied ? cut_.y_stride : s[1];
    dots.y_row = copied ? cut_.y_pitch : s[3];
    dots.source_row = extent[2];
    dots.rows = joined ? 1 : size[2];
    dots.count = joined ? size[2] * size[3] : copied ? cut_.y_pitch : size[3];
    for (int64_t n = 0; n < size[0]; ++n)
      for (int64_t z = 0; z < size[1]; ++z) {
        dots.source = element(strips, (n * extent[0] + z) * extent[1] * extent[2], box.halved);
        dots.y = element(y, n * image + z * plane, box.halved);
        if (!copied && leaves_source_ && !rows_are_finite(dots)) mask(box);
        add_rows(box, strips, dots, n * image + z * plane);
        dots.accumulate = true;
      }
  }

  void add_one_row(const Box& box, const float* strips, const float* copy,
                   kernels::cpu::RowDots& dots) const {
    const auto& extent = cut_.strips.extent();
    const auto& size = box.at.size;
    dots.y = copy;
    dots.y_stride = cut_.y_stride;
    dots.source = strips;
    dots.count = (((size[0] - 1) * extent[0] + size[1] - 1) * extent[1] + size[2] - 1) * extent[2] + size[3];
    dots.count = std::min(rounded_up(dots.count, kernels::cpu::vector_shape().dot_lanes()), cut_.y_stride);
    add_rows(box, strips, dots, 0);
  }

  static bool rows_are_finite(const kernels::cpu::RowDots& dots) {
    const bool joined = dots.y_row == dots.count;
    bool finite = true;
    for (int64_t o = 0; o < dots.channels; ++o)
      for (int64_t row = 0; row < (joined ? 1 : dots.rows); ++row)
        finite &= all_finite(dots.y + o * dots.y_stride + row * dots.y_row,
                             joined ? dots.rows * dots.count : dots.count);
    return finite;
  }

  // A box of y, zeros where there is no position.
  void copy_y(const Bindings& bindings, int64_t channel, int64_t channels, Box& box, float* copy) const {
    const auto& s = pass_.y.strides;
    const auto* base =
        static_cast<const std::byte*>(bindings[pass_.y.operand]) +
        (box.at.first[0] * s[0] + channel * s[1]) * static_cast<int64_t>(size_of(pass_.y.dtype));
    load_y(pass_.y, pass_.rounding, base, channels, box.at, copy);
    if (box.halved && halve(copy, channels * cut_.y_stride)) return;
    if (std::exchange(box.halved, false)) {
      load_x(box);
      return copy_y(bindings, channel, channels, box, copy);
    }
    if (leaves_source_ && !all_finite(copy, channels * cut_.y_stride)) mask(box);
  }

  // `base` is the first of `channels` channels in the box's first image.
  void load_y(const problem::PassTensor& y, OperandRounding rounding, const std::byte* base, int64_t channels,
              const BoxGrid::Box& box, float* copy) const {
    const auto& s = y.strides;
    const auto bytes = static_cast<int64_t>(size_of(y.dtype));
    // Channels that lie together are read together.
    const int64_t at_once = is_channels_last(y) ? channels : 1;
    StripShape shape{.channels = at_once, .channel_pitch = cut_.y_stride, .extent = cut_.y_extent};
    for (size_t axis = 0; axis < 3; ++axis) {
      shape.start[axis] = box.first[axis + 1];
      shape.size[axis] = box.first[axis + 1] + box.size[axis + 1];
    }
    for (int64_t o = 0; o < channels; o += at_once)
      for (int64_t n = 0; n < box.size[0]; ++n)
        load_strip(y, rounding, base + (n * s[0] + o * s[1]) * bytes, shape,
                   copy + o * cut_.y_stride + n * shape.plane());
    for (int64_t o = 0; o < channels; ++o)
      std::fill(copy + o * cut_.y_stride + box.size[0] * shape.plane(), copy + (o + 1) * cut_.y_stride, 0.0F);
  }

  void store_block(const Bindings& bindings, int64_t block, float* totals) const {
    const Place place = place_of(block);
    float* total = totals + block * total_floats_;
    const int64_t rows = place.groups * place.y_count, used = rows * place.x_count * cut_.taps;
    for (int64_t split = 1; split < cut_.splits; ++split) {
      const float* part = totals + (split * blocks_ + block) * total_floats_;
      for (int64_t i = 0; i < used; ++i) total[i] += part[i];
    }
    // Rows of several groups are all that these have: they follow each other.
    for (int64_t o = 0; o < rows; ++o)
      for (int64_t i = 0; i < place.x_count; ++i, total += cut_.taps)
        store_taps(pass_, bindings, place.group * pass_.y_channels_per_group() + place.y_first + o,
                   place.x_first + i, total);
  }

  ConvPass pass_;
  DotsCut cut_;
  bool pairs_;
  int64_t blocks_;  // tasks of one split
  std::vector<int64_t> offsets_;
  bool leaves_source_ = false;
  int64_t total_floats_ = 0;  // weights of one block
  Slots slots_;
  Part<float> totals_, strips_, sums_, copy_, valid_, y_valid_;
};

// Channels as lanes would leave half a vector empty, or spend their time on packing.
bool is_narrow(const ConvPass& pass, int64_t taps, int64_t lanes) {
  const int64_t half = lanes / 2;
  const int64_t y = pass.y_channels_per_group(), x = pass.x_channels_per_group();
  // A vector of x channels is what the dense engine packs instead of y, where there is but one tap: 2.0 ms
  // for 2.6 (64 channels of 56 x 56 to 256).
  const bool packs_x = taps == 1 && x >= lanes;
  return y < half || (y == half && x <= half) || (x <= kFewRows / taps && !packs_x);
}

std::optional<Reason> unfit(const ConvPass& conv, const Machine& machine) {
  Checked residues = 1;
  int64_t taps = 1;
  for (const problem::Window& w : conv.axes) {
    residues = residues * w.stride;
    taps *= w.kernel;
  }
  if (!is_narrow(conv, taps, vectors_of(machine).dot_lanes()))
    return "a group has channels enough to fill a vector with them";
  if (residues.get().value_or(INT64_MAX) > kMostResidues) return "the strides make more than 64 strips";
  if (has_dead_taps(conv)) return "there are taps that read padding alone";
  if (taps > kMostTaps) return "the kernel has more than 4096 taps to keep sums of";
  if (conv.axes[2].y < 4) return "rows of fewer than 4 places do not fill a vector";
  return std::nullopt;
}

}  // namespace

const Candidate& narrow_grad_weight() {
  static const ConvCandidate instance({"cpu.narrow_grad_weight", kGradWeights, unfit,
                                       few_channels_grad_weight_effort, make<NarrowGradWeightStep>});
  return instance;
}

}  // namespace retrograd::engines::cpu
