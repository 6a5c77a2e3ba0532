// SPDX-License-Identifier: Apache-2.0
// Few places of y and many weights. A row of the weight's memory, all that belongs to one y channel, is read
// or written where it lies, at the speed of memory:
//
//   grad_input    G[p, c] = Σ_o y[o, p] · w[o, c]        c = (x channel, tap) in the order of memory,
//                 x[i, q] = Σ_t G[output_reading(q, t), (i, t)]
//   forward       y[o, p] = Σ_c w[o, c] · X[p, c]         X[p, (i, t)] = x[i, position(p, t)]
//   grad_weight   w[o, c] = Σ_p y[o, p] · X[p, c]
//
// X has zeros where a tap reads outside x. The mathematics has no product there, and 0 times what is not
// finite is NaN. So where a y is not finite (grad_weight) cpu.dense_grad_weight computes the pass, and where
// a sum is not (forward) cpu.dense_gather does.
#include "kernels/cpu/dense/few_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "engines/cpu/bias_start.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/task_slots.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::FewPlaces;
using problem::ConvPass;
using problem::Window;

constexpr int64_t kMostPlaces = 16;      // of y
constexpr int64_t kMostPairs = 1 << 16;  // of a place of y and a tap
constexpr int64_t kMostXPlaces = 1 << 16;
constexpr int64_t kMostColumns = 512;      // at once
constexpr int64_t kFewestColumns = 64;     // that are worth a task
constexpr int64_t kRowsAtOnce = 4;         // of the kernel
constexpr int64_t kMostValues = 4096;      // at all places, in L1
constexpr int64_t kMostSums = 8192;        // the same
constexpr int64_t kTaskWeights = 1 << 15;  // about 5 us: fewer are not worth handing out
constexpr int64_t kWantedTasks = 16;
constexpr int64_t kChannelsAtOnce = 128;
constexpr int64_t kLineFloats = 16;

int64_t places_of(const ConvPass& p, bool of_x) {
  int64_t count = p.batch;
  for (const Window& w : p.axes) count *= of_x ? w.x : w.y;
  return count;
}

// Whether the weights of a y channel fill one piece of memory, x channels outside the taps or inside.
bool has_dense_rows(const ConvPass& p) {
  const int64_t channels = p.x_channels_per_group(), taps = taps_of(p);
  const auto& s = p.w.strides;
  if (channels > 1 && s[1] != taps && s[1] != 1) return false;
  std::array<std::pair<int64_t, int64_t>, 3> axes{
      {{s[2], p.axes[0].kernel}, {s[3], p.axes[1].kernel}, {s[4], p.axes[2].kernel}}};
  std::sort(axes.begin(), axes.end());
  int64_t next = channels > 1 && s[1] == 1 ? channels : 1;
  for (const auto& [stride, size] : axes) {
    if (size == 1) continue;
    if (stride != next) return false;
    next *= size;
  }
  return true;
}

// What a tap of an axis reads at a place of y, ordered by x, then by tap.
struct AxisMeeting {
  int64_t x, tap, y;
};
using AxisMeetings = std::vector<AxisMeeting>;

AxisMeetings meetings_along(const Window& axis) {
  AxisMeetings all;
  for (int64_t y = 0; y < axis.y; ++y)
    for (int64_t tap = 0; tap < axis.kernel; ++tap)
      if (const int64_t x = position(axis, y, tap); x >= 0 && x < axis.x) all.push_back({x, tap, y});
  std::sort(all.begin(), all.end(), [](const AxisMeeting& a, const AxisMeeting& b) {
    return std::pair(a.x, a.tap) < std::pair(b.x, b.tap);
  });
  return all;
}

// Calls body for each run of meetings with the same x.
template <class Body>
void for_each_x(const AxisMeetings& all, const Body& body) {
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].x == all[begin].x) ++end;
    body(std::span(all).subspan(begin, end - begin));
  }
}

// A place of x and the column of a tap that meets it at a place of y.
struct Meeting {
  int64_t y, x;    // places, of the batch
  int64_t column;  // of x channel 0
};

// All of them, ordered by the place of x, then by tap.
std::vector<Meeting> meetings_of(const ConvPass& p) {
  std::vector<Meeting> all;
  const problem::Window &d = p.axes[0], &h = p.axes[1], &w = p.axes[2];
  const auto& s = p.w.strides;
  const AxisMeetings depths = meetings_along(d), rows = meetings_along(h), columns = meetings_along(w);
  all.reserve(static_cast<size_t>(p.batch) * depths.size() * rows.size() * columns.size());
  using Run = std::span<const AxisMeeting>;
  for (int64_t n = 0; n < p.batch; ++n)
    for_each_x(depths, [&](Run at_d) {
      for_each_x(rows, [&](Run at_h) {
        for_each_x(columns, [&](Run at_w) {
          const int64_t place = ((n * d.x + at_d[0].x) * h.x + at_h[0].x) * w.x + at_w[0].x;
          for (const AxisMeeting& i : at_d)
            for (const AxisMeeting& j : at_h)
              for (const AxisMeeting& k : at_w)
                all.push_back({((n * d.y + i.y) * h.y + j.y) * w.y + k.y, place,
                               i.tap * s[2] + j.tap * s[3] + k.tap * s[4]});
        });
      });
    });
  return all;
}

// Where a place of a tensor lies, in elements.
int64_t offset_of(const ConvPass& p, bool of_x, int64_t place) {
  const auto& s = of_x ? p.x.strides : p.y.strides;
  const auto size = [&](size_t axis) { return of_x ? p.axes[axis].x : p.axes[axis].y; };
  int64_t offset = 0;
  for (size_t axis = 3; axis-- > 0; place /= size(axis)) offset += place % size(axis) * s[axis + 2];
  return offset + place * s[0];
}

// From the values of a place to those of the next: 5 lines modulo 32. Places share no sets of L1, and what
// is read is not a multiple of 4 KiB away from what has just been written for another place: it would wait
// for that.
int64_t value_pitch_of(int64_t columns) {
  constexpr int64_t kLines = 32, kAway = 5;
  const int64_t lines = ceil_div(columns, kLineFloats);
  return (lines + (kAway - lines % kLines + kLines) % kLines) * kLineFloats;
}

class FewPlacesStep : public Step {
 public:
  FewPlacesStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass),
        columns_(pass.x_channels_per_group() * taps_of(pass)),
        rows_(pass.y_channels_per_group()),
        places_(places_of(pass, false)),
        channel_blocks_(ceil_div(pass.x_channels_per_group(), kChannelsAtOnce)),
        slots_(machine.cpu.threads),
        meetings_(meetings_of(pass)),
        pads_(static_cast<int64_t>(meetings_.size()) < places_ * taps_of(pass)),
        factor_pitch_((ceil_div(pass.y_channels, kLineFloats) | 1) * kLineFloats),
        value_pitch_(value_pitch_of(columns_)),
        factor_bytes_(part_bytes<float>(places_ * factor_pitch_)) {
    const int64_t wanted = std::clamp<int64_t>(pass.y_channels * columns_ / kTaskWeights, 1, kWantedTasks);
    tasks_a_group_ = ceil_div(wanted, pass.groups);
  }

 protected:
  float* factors(std::byte* workspace) const { return reinterpret_cast<float*>(workspace); }
  // y at one place, for all channels.
  void load_factors(const Bindings& bindings, int64_t place, float* factors) const {
    const auto bytes = static_cast<int64_t>(size_of(pass_.y.dtype));
    const auto* y = static_cast<const std::byte*>(bindings[pass_.y.operand]);
    load_row(pass_.y.dtype, pass_.rounding, y + offset_of(pass_, false, place) * bytes, pass_.y.strides[1],
             pass_.y_channels, factors + place * factor_pitch_);
  }
  FewPlaces part(const Bindings& bindings, int64_t group, int64_t row, int64_t column, std::byte* workspace,
                 float* values) const {
    const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
    const int64_t channel = group * rows_ + row;
    return {.dtype = pass_.w.dtype,
            .weights = static_cast<std::byte*>(bindings[pass_.w.operand]) +
                       (channel * pass_.w.strides[0] + column) * bytes,
            .weight_stride = pass_.w.strides[0],
            .factors = factors(workspace) + channel,
            .factor_stride = factor_pitch_,
            .places = places_,
            .values = values + column,
            .value_stride = value_pitch_};
  }
  std::byte* x_at(const Bindings& bindings, int64_t group, int64_t channel, int64_t place) const {
    return static_cast<std::byte*>(bindings[pass_.x.operand]) +
           (offset_of(pass_, true, place) +
            (group * pass_.x_channels_per_group() + channel) * pass_.x.strides[1]) *
               static_cast<int64_t>(size_of(pass_.x.dtype));
  }
  int64_t channels_from(int64_t first) const {
    return std::min(kChannelsAtOnce, pass_.x_channels_per_group() - first);
  }
  int64_t group_floats() const { return places_ * value_pitch_; }

  ConvPass pass_;
  int64_t columns_, rows_, places_;  // of a group's weights, and of y
  int64_t channel_blocks_;           // of a group's x channels
  int64_t slots_;
  std::vector<Meeting> meetings_;
  bool pads_;  // taps meet zeros
  // Of a place: odd numbers of lines. With powers of two all places would share some sets of L1.
  int64_t factor_pitch_, value_pitch_;
  size_t factor_bytes_;
  int64_t tasks_a_group_ = 1;
};

class FewPlacesGatherStep final : public FewPlacesStep {
 public:
  FewPlacesGatherStep(const ConvPass& pass, const Machine& machine) : FewPlacesStep(pass, machine) {
    // The sums of all places stay in L1.
    const int64_t most =
        std::clamp(kMostSums / places_ / kLineFloats * kLineFloats, kFewestColumns, kMostColumns);
    chunk_ = std::clamp(ceil_div(ceil_div(columns_, tasks_a_group_), kLineFloats) * kLineFloats,
                        kFewestColumns, most);
    chunks_ = ceil_div(columns_, chunk_);
    splits_ = std::clamp<int64_t>(tasks_a_group_ / chunks_, 1, rows_);
    split_rows_ = ceil_div(rows_, splits_);
    splits_ = ceil_div(rows_, split_rows_);
  }

  std::string describe() const override {
    return fmt::format("{} places; {} groups, {} chunks of {} columns, {} splits of {} rows", places_,
                       pass_.groups, chunks_, chunk_, splits_, split_rows_);
  }
  size_t workspace_bytes() const override {
    return factor_bytes_ + part_bytes<float>(pass_.groups * splits_ * group_floats());
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* const sums = reinterpret_cast<float*>(workspace + factor_bytes_);
    for (int64_t p = 0; p < places_; ++p) load_factors(bindings, p, factors(workspace));
    const auto multiply = [&](int64_t task, int64_t) {
      const int64_t column = task % chunks_ * chunk_, split = task / chunks_ % splits_;
      const int64_t group = task / chunks_ / splits_, row = split * split_rows_;
      FewPlaces f =
          part(bindings, group, row, column, workspace, sums + (group * splits_ + split) * group_floats());
      f.rows = std::min(split_rows_, rows_ - row);
      f.columns = std::min(chunk_, columns_ - column);
      for (int64_t p = 0; p < places_; ++p) std::fill_n(f.values + p * value_pitch_, f.columns, 0.0F);
      kernels::cpu::add_weight_rows(f);
    };
    const auto gather = [&](int64_t task, int64_t) {
      const int64_t group = task / channel_blocks_, first = task % channel_blocks_ * kChannelsAtOnce;
      gather_channels(bindings, group, first, channels_from(first), sums + group * splits_ * group_floats());
    };
    run_stages(*context.pool, slots_, pass_.groups * chunks_ * splits_, multiply,
               pass_.groups * channel_blocks_, gather);
  }

 private:
  void gather_channels(const Bindings& bindings, int64_t group, int64_t first, int64_t count,
                       const float* sums) const {
    std::array<float, kChannelsAtOnce> row, begins{};
    load_bias(pass_, bindings, group * pass_.x_channels_per_group() + first, count, begins.data());
    const int64_t step = pass_.w.strides[1];
    auto meeting = meetings_.begin();
    for (int64_t place = 0; place < places_of(pass_, true); ++place) {
      row = begins;
      for (; meeting != meetings_.end() && meeting->x == place; ++meeting)
        for (int64_t split = 0; split < splits_; ++split) {
          const float* from =
              sums + split * group_floats() + meeting->y * value_pitch_ + meeting->column + first * step;
          for (int64_t i = 0; i < count; ++i) row[static_cast<size_t>(i)] += from[i * step];
        }
      store_row(pass_.x.dtype, x_at(bindings, group, first, place), pass_.x.strides[1], row.data(), 1, count);
    }
  }

  int64_t chunk_, chunks_;  // columns
  int64_t splits_, split_rows_;
};

// A step over X, which is made first: then tasks of some rows of the weight go through it.
class UnfoldedStep : public FewPlacesStep {
 public:
  size_t workspace_bytes() const override {
    return std::max(factor_bytes_ + part_bytes<float>(pass_.groups * group_floats()),
                    fallback_ ? fallback_->workspace_bytes() : 0);
  }

 protected:
  UnfoldedStep(const ConvPass& pass, const Machine& machine, const Candidate& fallback)
      : FewPlacesStep(pass, machine),
        task_rows_(ceil_div(ceil_div(rows_, tasks_a_group_), kRowsAtOnce) * kRowsAtOnce),
        row_tasks_(ceil_div(rows_, task_rows_)) {
    if (pads_) fallback_ = fallback.make_step(pass, machine);
  }

  // X of a group.
  float* values_of(int64_t group, std::byte* workspace) const {
    return reinterpret_cast<float*>(workspace + factor_bytes_) + group * group_floats();
  }
  // Makes X, then calls multiply(task, slot) for each of the tasks.
  template <class Multiply>
  void run_over_x(const Bindings& bindings, std::byte* workspace, runtime::ExecutionContext& context,
                  int64_t tasks, const Multiply& multiply) const {
    const auto unfold = [&](int64_t task, int64_t) {
      const int64_t group = task / channel_blocks_, first = task % channel_blocks_ * kChannelsAtOnce;
      unfold_channels(bindings, group, first, channels_from(first), values_of(group, workspace));
    };
    run_stages(*context.pool, slots_, pass_.groups * channel_blocks_, unfold, tasks, multiply);
  }

  int64_t task_rows_, row_tasks_;
  std::unique_ptr<const Step> fallback_;  // where taps meet zeros, for what is not finite

 private:
  void unfold_channels(const Bindings& bindings, int64_t group, int64_t first, int64_t count,
                       float* values) const {
    std::array<float, kChannelsAtOnce> row;
    const int64_t step = pass_.w.strides[1];
    if (pads_) {
      const auto clear = [&](int64_t column, int64_t columns) {
        for (int64_t p = 0; p < places_; ++p) std::fill_n(values + p * value_pitch_ + column, columns, 0.0F);
      };
      const int64_t taps = taps_of(pass_);
      if (step >= taps)
        clear(first * taps, count * taps);  // taps of a channel side by side
      else
        for (int64_t tap = 0; tap < taps; ++tap) clear(tap * pass_.x_channels_per_group() + first, count);
    }
    int64_t loaded = -1;
    for (const Meeting& m : meetings_) {
      if (m.x != loaded)
        load_row(pass_.x.dtype, pass_.rounding, x_at(bindings, group, first, m.x), pass_.x.strides[1], count,
                 row.data());
      loaded = m.x;
      float* to = values + m.y * value_pitch_ + m.column + first * step;
      for (int64_t i = 0; i < count; ++i) to[i * step] = row[static_cast<size_t>(i)];
    }
  }
};

class FewPlacesGradWeightStep final : public UnfoldedStep {
 public:
  FewPlacesGradWeightStep(const ConvPass& pass, const Machine& machine)
      : UnfoldedStep(pass, machine, dense_grad_weight()),
        chunk_(std::max(kMostValues / places_, std::min(kMostColumns, kMostSums / places_))),
        chunks_(std::clamp<int64_t>(tasks_a_group_ / row_tasks_, 1, ceil_div(columns_, kMostColumns))),
        task_columns_(ceil_div(ceil_div(columns_, chunks_), kLineFloats) * kLineFloats) {
    chunks_ = ceil_div(columns_, task_columns_);
  }

  std::string describe() const override {
    return fmt::format("{} places; {} groups, {} chunks of {} columns, {} blocks of {} rows", places_,
                       pass_.groups, chunks_, task_columns_, row_tasks_, task_rows_);
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    for (int64_t p = 0; p < places_; ++p) {
      load_factors(bindings, p, factors(workspace));
      if (fallback_ && !all_finite(factors(workspace) + p * factor_pitch_, pass_.y_channels))
        return fallback_->run(bindings, workspace, context);
    }
    const auto multiply = [&](int64_t task, int64_t) {
      const int64_t first = task % chunks_ * task_columns_, last = std::min(first + task_columns_, columns_);
      const int64_t group = task / chunks_ / row_tasks_, row = task / chunks_ % row_tasks_ * task_rows_;
      for (int64_t column = first; column < last; column += chunk_) {
        FewPlaces f = part(bindings, group, row, column, workspace, values_of(group, workspace));
        f.rows = std::min(task_rows_, rows_ - row);
        f.columns = std::min(chunk_, last - column);
        kernels::cpu::store_weight_rows(f);
      }
    };
    run_over_x(bindings, workspace, context, pass_.groups * row_tasks_ * chunks_, multiply);
  }

 private:
  int64_t chunk_;                  // columns whose values stay in L1
  int64_t chunks_, task_columns_;  // columns of tasks
};

class FewPlacesForwardStep final : public UnfoldedStep {
 public:
  FewPlacesForwardStep(const ConvPass& pass, const Machine& machine)
      : UnfoldedStep(pass, machine, dense_gather()), chunk_(std::max(kMostSums / places_, kMostColumns)) {}

  std::string describe() const override {
    return fmt::format("{} places; {} groups, {} blocks of {} rows", places_, pass_.groups, row_tasks_,
                       task_rows_);
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    float* const sums = factors(workspace);
    std::fill_n(sums, pass_.y_channels, 0.0F);
    load_bias(pass_, bindings, 0, pass_.y_channels, sums);
    for (int64_t p = 1; p < places_; ++p) std::copy_n(sums, pass_.y_channels, sums + p * factor_pitch_);
    std::atomic<bool> finite{true};
    const auto multiply = [&](int64_t task, int64_t) {
      const int64_t group = task / row_tasks_, row = task % row_tasks_ * task_rows_;
      const int64_t channel = group * rows_ + row, rows = std::min(task_rows_, rows_ - row);
      for (int64_t column = 0; column < columns_; column += chunk_) {
        FewPlaces f = part(bindings, group, row, column, workspace, values_of(group, workspace));
        f.rows = rows;
        f.columns = std::min(chunk_, columns_ - column);
        f.sums = sums + channel;
        f.sum_stride = factor_pitch_;
        kernels::cpu::add_weight_dots(f);
      }
      for (int64_t p = 0; p < places_; ++p) {
        const float* const row_of_sums = sums + p * factor_pitch_ + channel;
        if (fallback_ && !all_finite(row_of_sums, rows)) finite.store(false, std::memory_order_relaxed);
        store_row(pass_.y.dtype, y_at(bindings, channel, p), pass_.y.strides[1], row_of_sums, 1, rows);
      }
    };
    run_over_x(bindings, workspace, context, pass_.groups * row_tasks_, multiply);
    if (!finite) fallback_->run(bindings, workspace, context);
  }

 private:
  std::byte* y_at(const Bindings& bindings, int64_t channel, int64_t place) const {
    return static_cast<std::byte*>(bindings[pass_.y.operand]) +
           (offset_of(pass_, false, place) + channel * pass_.y.strides[1]) *
               static_cast<int64_t>(size_of(pass_.y.dtype));
  }

  int64_t chunk_;  // columns whose values stay in L1
};

std::optional<Reason> unfit(const ConvPass& p, const Machine& /*machine*/) {
  if (p.rounding != OperandRounding::kNone) return "operands are rounded";
  Checked y = p.batch, x = p.batch;
  for (const Window& w : p.axes) {
    y = y * w.y;
    x = x * w.x;
  }
  if (y.get().value_or(INT64_MAX) > kMostPlaces) return "more than 16 places of y";
  if ((y * taps_of(p)).get().value_or(INT64_MAX) > kMostPairs)
    return "more than 2^16 pairs of a place of y and a tap";
  if (x.get().value_or(INT64_MAX) > kMostXPlaces) return "more than 2^16 places of x";
  if (!has_dense_rows(p)) return "channels or taps of the weight do not fill memory side by side";
  return std::nullopt;
}

Effort effort_of_few(const problem::Pass& pass, const Machine& /*machine*/) {
  const auto& p = std::get<ConvPass>(pass);
  const auto x = static_cast<double>(p.x_channels), taps = static_cast<double>(taps_of(p));
  const auto places = static_cast<double>(places_of(p, false));
  Effort effort = effort_of(pass);
  effort.operations =
      2 * places * taps * x * static_cast<double>(p.y_channels_per_group());  // those on padding included
  // What is unfolded, or gathered, one number at a time.
  const auto x_places = static_cast<double>(places_of(p, true)), groups = static_cast<double>(p.groups);
  effort.calls = x * (places * taps + x_places) / 16 + groups * (8 + 2 * x_places);
  return effort;
}

}  // namespace

const Candidate& few_places_gather() {
  static const ConvCandidate instance(
      {"cpu.few_places_gather", kGradInputs, unfit, effort_of_few, make<FewPlacesGatherStep>});
  return instance;
}

const Candidate& few_places_forward() {
  static const ConvCandidate instance(
      {"cpu.few_places_forward", kForwards, unfit, effort_of_few, make<FewPlacesForwardStep>});
  return instance;
}

const Candidate& few_places_grad_weight() {
  static const ConvCandidate instance(
      {"cpu.few_places_grad_weight", kGradWeights, unfit, effort_of_few, make<FewPlacesGradWeightStep>});
  return instance;
}

}  // namespace retrograd::engines::cpu
