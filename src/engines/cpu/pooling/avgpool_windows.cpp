// SPDX-License-Identifier: Apache-2.0
// y[p] = Σ_{q in window p} x[q] / divisor(p), some rows of results at a time:
//
// The rows of a window are added first, place by place, into sums of a whole row; then windows along the row
// are added and divided. That is kernel_d·kernel_h + kernel_w additions for a result where stride_w is 1,
// and what is read in each is one row after the other. Places outside are zeros among the sums, never read.
//
// An item is a few rows of results of one plane, or of several small ones, or of a block of channels where
// those lie side by side: as many as have sums that stay in L1. Divisors are multiplied by where that rounds
// the same. Where one window holds a whole plane of places that lie side by side, it is one sum. Where the
// channels of a place do, and windows that share no places are too wide for such sums, places are added one
// after the other.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/bias/row_reduce.h"
#include "kernels/cpu/pooling/pool_windows.h"

namespace retrograd::engines::cpu {
namespace {

using problem::AvgPoolPass;
using problem::PoolWindow;
using problem::Range;

constexpr int64_t kSumFloats = 8192;  // 32 KiB
constexpr int64_t kFewestUnits = 64;  // channels of a block, where they lie side by side
constexpr int64_t kElementsPerTask = 65536;
constexpr int64_t kFewestItems = 16, kFewestBeside = 128;  // and channels of a block that make more of them
constexpr int64_t kPlacesAtOnce = 8;                       // that are added before sums are taken up again
constexpr int64_t kStoreCost = 2;                          // of sums, in places that are added
constexpr int64_t kMostListed = 4096;                      // rows of results whose windows a plan lists

struct Cut {
  int64_t unit = 1, units = 1;         // elements of a place, and blocks of them
  int64_t segment = 1, segments = 1;   // results along W
  int64_t lines = 1, line_blocks = 1;  // results along H
  int64_t planes = 1;                  // that are computed together, where they are small
  int64_t extent = 0;                  // places that a segment reads, or its windows
  bool by_place = false;               // sums are of windows, place by place
  int64_t items = 0, per_task = 1;

  int64_t sums_line() const { return extent * unit; }
  int64_t tasks() const { return ceil_div(items, per_task); }
};

bool channels_together(const AvgPoolPass& p) {
  return p.channels > 1 && is_channels_last(p.x) && is_channels_last(p.y);
}

// The same pass: where y has one place, its stride says nothing, and its channels lie as those of x.
AvgPoolPass with_alike_channels(AvgPoolPass p) {
  const auto& [d, h, w] = p.axes;
  if (d.y * h.y * w.y == 1 && p.y.strides[1] == 1 && is_channels_last(p.x)) p.y.strides[4] = p.channels;
  return p;
}

// Wide windows of many channels, which share no places.
Cut cut_by_place(const AvgPoolPass& p) {
  const auto& [d, h, w] = p.axes;
  Cut cut;
  cut.by_place = true;
  const int64_t most = std::max(p.channels * p.batch * d.y * h.y * w.y / kFewestItems, kFewestBeside);
  cut.units = ceil_div(p.channels, std::min(most, kSumFloats));
  cut.unit = ceil_div(p.channels, cut.units);
  cut.segment = cut.extent = std::clamp<int64_t>(kSumFloats / cut.unit, 1, w.y);
  cut.segments = ceil_div(w.y, cut.segment);
  cut.line_blocks = h.y;
  cut.items = p.batch * cut.units * d.y * cut.segments * h.y;
  const double item = static_cast<double>(cut.sums_line()) * static_cast<double>(d.kernel) *
                      static_cast<double>(h.kernel) * static_cast<double>(w.kernel);
  cut.per_task = std::clamp<int64_t>(static_cast<int64_t>(kElementsPerTask / item), 1, cut.items);
  return cut;
}

Cut cut_windows(const AvgPoolPass& p) {
  const PoolWindow &h = p.axes[1], &w = p.axes[2];
  if (channels_together(p) && (w.y == 1 || w.stride >= w.kernel) &&
      std::min(w.kernel, w.x) * p.channels > kSumFloats)
    return cut_by_place(p);
  Cut cut;
  if (channels_together(p))
    cut.unit = std::clamp(kSumFloats / w.kernel, std::min(kFewestUnits, p.channels), p.channels);
  cut.units = channels_together(p) ? ceil_div(p.channels, cut.unit) : p.channels;
  const int64_t places = std::max(kSumFloats / cut.unit, w.kernel);
  cut.segment = std::min((places - w.kernel) / w.stride + 1, w.y);
  cut.segments = ceil_div(w.y, cut.segment);
  cut.segment = ceil_div(w.y, cut.segments);
  cut.extent = (cut.segment - 1) * w.stride + w.kernel;
  cut.lines = std::clamp<int64_t>(kSumFloats / cut.sums_line(), 1, h.y);
  cut.line_blocks = ceil_div(h.y, cut.lines);
  if (!channels_together(p) && cut.line_blocks * cut.segments == 1 && p.x.strides[4] == 1 &&
      p.y.strides[4] == 1) {
    cut.planes = std::clamp<int64_t>(kSumFloats / (cut.lines * cut.sums_line()), 1, p.channels);
    cut.units = ceil_div(p.channels, cut.planes);
  }
  cut.items = p.batch * cut.units * p.axes[0].y * cut.segments * cut.line_blocks;
  const double item = static_cast<double>(cut.planes * cut.lines) * static_cast<double>(cut.sums_line()) *
                      static_cast<double>(p.axes[0].kernel) *
                      static_cast<double>(std::min(h.stride, h.kernel));
  cut.per_task = std::clamp<int64_t>(static_cast<int64_t>(kElementsPerTask / item), 1, cut.items);
  return cut;
}

// Whether each plane is one window, of places that lie side by side.
bool is_whole(const AvgPoolPass& p) {
  int64_t places = 1;
  for (size_t axis = 3; axis-- > 0;) {
    const PoolWindow& w = p.axes[axis];
    if (w.y != 1 || pooled_positions(w, 0).size() != w.x) return false;
    if (w.x > 1 && p.x.strides[axis + 2] != places) return false;
    places *= w.x;
  }
  return true;
}

// Whether reading the places of each window, four vectors of channels at a time, takes less than adding rows
// first, which stores sums beside.
bool reads_in_place(const AvgPoolPass& p, const Cut& cut) {
  const auto& [d, h, w] = p.axes;
  const int64_t rows = d.kernel * h.kernel;
  return channels_together(p) && p.channels >= kFewestUnits && !cut.by_place && p.x.dtype == p.y.dtype &&
         rows * w.kernel <= rows * std::min(w.stride, w.kernel) + w.kernel + kStoreCost;
}

class AvgPoolWindowsStep final : public Step {
 public:
  AvgPoolWindowsStep(const AvgPoolPass& pass, const Machine& machine)
      : pass_(with_alike_channels(pass)),
        cut_(cut_windows(pass_)),
        whole_(is_whole(pass_)),
        in_place_(reads_in_place(pass_, cut_)),
        slots_(machine.cpu.threads) {
    for (int64_t o = 0; o < pass.axes[2].y; ++o) divisors_.push_back(count_of(2, o));
    list_reciprocals();
    for (int64_t h = 0; pass.axes[1].y <= kMostListed && h < pass.axes[1].y; h += cut_.lines) list_groups(h);
    sum_bytes_ = part_bytes<float>(cut_.planes * cut_.lines * cut_.sums_line() + kernels::cpu::kPoolOverrun);
    const bool converts = pass.x.strides[4] != 1 || pass.y.strides[4] != 1;
    slot_bytes_ = sum_bytes_ + part_bytes<float>(converts ? std::max(cut_.extent, cut_.segment) : 0);
  }

  std::string describe() const override {
    if (whole_) return "a sum a plane";
    return fmt::format("{} tasks of {} x {} rows of {} results of {}", cut_.tasks(), cut_.per_task,
                       cut_.lines, cut_.segment, cut_.unit);
  }
  size_t workspace_bytes() const override {
    return whole_ ? 0 : static_cast<size_t>(std::min(slots_, cut_.tasks())) * slot_bytes_;
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const auto* x = static_cast<const std::byte*>(bindings[pass_.x.operand]);
    auto* y = static_cast<std::byte*>(bindings[pass_.y.operand]);
    if (whole_) return run_whole(x, y, context);
    run_tasks_nearby(*context.pool, cut_.tasks(), slots_, [&](int64_t task, int64_t slot) {
      std::byte* memory = workspace + static_cast<size_t>(slot) * slot_bytes_;
      const int64_t end = std::min((task + 1) * cut_.per_task, cut_.items);
      for (int64_t item = task * cut_.per_task; item < end; ++item) run_item(x, y, item, memory);
    });
  }

 private:
  // What one axis counts of a window; 1 where it holds no place, and sums nothing.
  float count_of(size_t axis, int64_t output) const {
    if (pass_.divisor_override != 0) return axis == 2 ? static_cast<float>(pass_.divisor_override) : 1.0F;
    const int64_t count = pooled_count(pass_.axes[axis], output, pass_.count_include_pad);
    return static_cast<float>(std::max<int64_t>(count, 1));
  }

  void run_whole(const std::byte* x, std::byte* y, runtime::ExecutionContext& context) const {
    const auto& [d, h, w] = pass_.axes;
    const int64_t places = d.x * h.x * w.x;
    const double divisor = double{count_of(0, 0)} * count_of(1, 0) * count_of(2, 0);
    const auto &from = pass_.x.strides, &to = pass_.y.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.x.dtype));
    context.pool->parallel_for(
        pass_.batch * pass_.channels, std::max<int64_t>(kElementsPerTask / places, 1),
        [&](int64_t begin, int64_t end) {
          for (int64_t plane = begin, some; plane < end; plane += some) {
            const int64_t n = plane / pass_.channels, c = plane % pass_.channels;
            some = 1;
            if (places <= kernels::cpu::kMostPlaneCount) {
              some = std::min(end - plane, pass_.channels - c);
              kernels::cpu::average_planes({.type = pass_.x.dtype,
                                            .source = x + (n * from[0] + c * from[1]) * bytes,
                                            .planes = some,
                                            .plane = from[1],
                                            .count = places,
                                            .divisor = static_cast<float>(divisor),
                                            .out = y + (n * to[0] + c * to[1]) * bytes,
                                            .out_stride = to[1]});
              continue;
            }
            const double sum = kernels::cpu::sum_rows(pass_.x.dtype, x + (n * from[0] + c * from[1]) * bytes,
                                                      places, 1, places);
            store_from_f32(pass_.y.dtype, y + (n * to[0] + c * to[1]) * bytes,
                           static_cast<float>(sum / divisor));
          }
        });
  }

  // Of the windows in the middle of D and H, which are most of them.
  void list_reciprocals() {
    common_factor_ = count_of(0, pass_.axes[0].y / 2) * count_of(1, pass_.axes[1].y / 2);
    float high = 0, low = 0;
    for (const float divisor : divisors_) {
      if (!kernels::cpu::pool_reciprocal(divisor * common_factor_, high, low))
        return high_.clear(), low_.clear();
      high_.push_back(high);
      low_.push_back(low);
    }
  }

  // Rows of results [h, h + lines) at depth d, of places [first, first + count) along W.
  struct Item {
    int64_t n, channel, planes, unit, d, first, count;
  };

  void run_item(const std::byte* x, std::byte* y, int64_t index, std::byte* memory) const {
    const auto take = [&](int64_t count) { return std::exchange(index, index / count) % count; };
    const int64_t begin = take(cut_.line_blocks) * cut_.lines;
    const int64_t end = std::min(begin + cut_.lines, pass_.axes[1].y);
    Item item{};
    item.first = take(cut_.segments) * cut_.segment;
    item.count = std::min(cut_.segment, pass_.axes[2].y - item.first);
    item.d = take(pass_.axes[0].y);
    item.channel = take(cut_.units) * cut_.unit * cut_.planes;
    item.unit = std::min(cut_.unit, pass_.channels - item.channel);
    item.planes = std::min(cut_.planes, pass_.channels - item.channel);
    item.n = index;
    size_t listed = groups_.empty() ? 0 : first_groups_[static_cast<size_t>(begin / cut_.lines)];
    for (int64_t h = begin; h < end;) {
      const Group group = groups_.empty() ? next_group(h, end) : groups_[listed++];
      run_lines(x, y, item, group, memory);
      h += group.lines;
    }
  }

  // Rows of results whose windows hold as many rows, and count as many.
  struct Group {
    int64_t h, lines;
    Range rows;  // of the first
    float count;
  };

  Group next_group(int64_t h, int64_t end) const {
    const PoolWindow& window = pass_.axes[1];
    Group group{h, 1, pooled_positions(window, h), count_of(1, h)};
    for (; h + group.lines < end && count_of(1, h + group.lines) == group.count; ++group.lines) {
      const Range next = pooled_positions(window, h + group.lines);
      if (next.size() != group.rows.size() || next.begin != group.rows.begin + group.lines * window.stride)
        break;
    }
    return group;
  }

  void list_groups(int64_t begin) {
    const int64_t end = std::min(begin + cut_.lines, pass_.axes[1].y);
    first_groups_.push_back(groups_.size());
    for (int64_t h = begin; h < end; h += groups_.back().lines) groups_.push_back(next_group(h, end));
  }

  void run_lines(const std::byte* x, std::byte* y, const Item& item, const Group& group,
                 std::byte* memory) const {
    const auto& [h, lines, rows, count] = group;
    auto* sums = reinterpret_cast<float*>(memory);
    auto* scratch = reinterpret_cast<float*>(memory + sum_bytes_);
    const PoolWindow& w = pass_.axes[2];
    const Range depths = pooled_positions(pass_.axes[0], item.d);
    if (cut_.by_place) {
      add_places(x, item, depths, rows, sums);
      return divide(y, item, h, lines, {.sums = sums, .sums_line = item.count * item.unit}, scratch,
                    count_of(0, item.d) * count);
    }
    const int64_t origin = item.first * w.stride - w.pad;
    const int64_t extent = (item.count - 1) * w.stride + w.kernel;
    const Range inside{std::clamp<int64_t>(-origin, 0, extent), std::clamp<int64_t>(w.x - origin, 0, extent)};
    const auto& s = pass_.x.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.x.dtype));
    kernels::cpu::PoolRowSums add{
        .type = pass_.x.dtype,
        .source = x + (item.n * s[0] + item.channel * s[1] + depths.begin * s[2] + rows.begin * s[3] +
                       (origin + inside.begin) * s[4]) *
                          bytes,
        .planes = item.planes,
        .source_plane = s[1],
        .sums_plane = lines * extent * item.unit,
        .lines = lines,
        .source_line = lines > 1 ? pass_.axes[1].stride * s[3] : 0,  // which may be any number otherwise
        .depths = rows.size() == 0 ? 0 : depths.size(),
        .depth_stride = s[2],
        .rows = rows.size(),
        .row_stride = s[3],
        .count = (inside.end - inside.begin) * item.unit,
        .sums = sums + inside.begin * item.unit,
        .sums_line = extent * item.unit};
    if (in_place_)
      return divide(y, item, h, lines, {.add = &add, .begin = inside.begin, .end = inside.end, .place = s[4]},
                    scratch, count_of(0, item.d) * count);
    add.padded = s[4] == item.unit && add.count > 0;
    add.before = inside.begin * item.unit;
    if (add.count > 0) sum_rows(add, scratch, item.unit);
    // Rows are summed in whole vectors, which may end in the zeros of the next line.
    for (int64_t line = 0; !add.padded && line < item.planes * lines; ++line) {
      float* row = sums + line * add.sums_line;
      std::fill_n(row, inside.begin * item.unit, 0.0F);
      std::fill(row + inside.end * item.unit, row + extent * item.unit, 0.0F);
    }
    divide(y, item, h, lines, {.sums = sums, .sums_line = add.sums_line}, scratch,
           count_of(0, item.d) * count);
  }

  // Of each window of a segment.
  void add_places(const std::byte* x, const Item& item, const Range& depths, const Range& rows,
                  float* sums) const {
    const auto& s = pass_.x.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.x.dtype));
    for (int64_t o = 0; o < item.count; ++o, sums += item.unit) {
      const Range places = pooled_positions(pass_.axes[2], item.first + o);
      kernels::cpu::PoolRowSums add{
          .type = pass_.x.dtype, .row_stride = s[4], .count = item.unit, .sums = sums};
      for (int64_t d = depths.begin; d < depths.end; ++d)
        for (int64_t h = rows.begin; h < rows.end; ++h)
          for (int64_t w = places.begin; w < places.end; w += add.rows) {
            add.source = x + (item.n * s[0] + item.channel * s[1] + d * s[2] + h * s[3] + w * s[4]) * bytes;
            add.rows = std::min(kPlacesAtOnce, places.end - w);
            kernels::cpu::sum_pool_rows(add);
            add.accumulate = true;
          }
      if (!add.accumulate) std::fill_n(sums, item.unit, 0.0F);
    }
  }

  void sum_rows(kernels::cpu::PoolRowSums add, float* scratch, int64_t unit) const {
    const int64_t stride = pass_.x.strides[4], places = add.count / unit;
    const auto bytes = static_cast<int64_t>(size_of(pass_.x.dtype));
    if (stride == unit) return kernels::cpu::sum_pool_rows(add);
    for (int64_t line = 0; line < add.lines; ++line) {
      float* const sums = add.sums + line * add.sums_line;
      if (unit > 1) {
        kernels::cpu::PoolRowSums place = add;
        place.lines = 1;
        place.count = unit;
        place.source += line * add.source_line * bytes;
        for (int64_t i = 0; i < places; ++i, place.source += stride * bytes) {
          place.sums = sums + i * unit;
          kernels::cpu::sum_pool_rows(place);
        }
        continue;
      }
      std::fill_n(sums, places, 0.0F);
      for (int64_t d = 0; d < add.depths; ++d)
        for (int64_t h = 0; h < add.rows; ++h) {
          const int64_t at = line * add.source_line + d * add.depth_stride + h * add.row_stride;
          load_row(add.type, OperandRounding::kNone, add.source + at * bytes, stride, places, scratch);
          kernels::cpu::sum_pool_rows({.source = reinterpret_cast<const std::byte*>(scratch),
                                       .count = places,
                                       .accumulate = true,
                                       .sums = sums});
        }
    }
  }

  // `division` says what is read.
  void divide(std::byte* y, const Item& item, int64_t h, int64_t lines, kernels::cpu::PoolDivision division,
              float* scratch, float factor) const {
    const auto& s = pass_.y.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.y.dtype));
    division.planes = item.planes;
    division.sums_plane = lines * division.sums_line;
    division.out_plane = s[1];
    division.lines = lines;
    division.unit = item.unit;
    division.stride = cut_.by_place ? 1 : pass_.axes[2].stride;
    division.taps = cut_.by_place ? 1 : pass_.axes[2].kernel;
    division.count = item.count;
    division.divisors = divisors_.data() + item.first;
    division.factor = factor;
    if (factor == common_factor_ && !high_.empty()) {
      division.high = high_.data() + item.first;
      division.low = low_.data() + item.first;
    }
    division.type = pass_.y.dtype;
    division.out =
        y + (item.n * s[0] + item.channel * s[1] + item.d * s[2] + h * s[3] + item.first * s[4]) * bytes;
    division.out_line = s[3];
    division.out_place = s[4];
    if (item.unit > 1 || s[4] == 1) return kernels::cpu::divide_windows(division);
    std::byte* out = std::exchange(division.out, reinterpret_cast<std::byte*>(scratch));
    division.type = DType::kF32;
    division.lines = 1;
    for (int64_t line = 0; line < lines; ++line, out += s[3] * bytes, division.sums += division.sums_line) {
      kernels::cpu::divide_windows(division);
      store_row(pass_.y.dtype, out, s[4], scratch, 1, item.count);
    }
  }

  AvgPoolPass pass_;
  Cut cut_;
  bool whole_, in_place_;
  int64_t slots_;
  std::vector<float> divisors_;  // along W
  float common_factor_ = 0;
  std::vector<float> high_, low_;  // parts of the reciprocals, with that factor; empty: there are none
  std::vector<Group> groups_;      // along H, where they are few, block after block of lines
  std::vector<size_t> first_groups_;
  size_t sum_bytes_ = 0, slot_bytes_ = 0;
};

std::optional<Reason> unfit(const AvgPoolPass& pool, const Machine& /*machine*/) {
  if (size_of(pool.x.dtype) == 1 || size_of(pool.y.dtype) == 1) return "takes no 8-bit types";
  return std::nullopt;
}

}  // namespace

const Candidate& avgpool_windows() {
  static const PoolCandidate instance(
      {"cpu.avgpool_windows", kPoolForward, unfit, nullptr, make<AvgPoolWindowsStep>});
  return instance;
}

}  // namespace retrograd::engines::cpu
