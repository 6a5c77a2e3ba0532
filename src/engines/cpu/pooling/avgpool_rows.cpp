// SPDX-License-Identifier: Apache-2.0
// grad_input[q] = Σ_{p : q in window p} grad_output[p] / divisor(p), row by row:
// kernels/cpu/pooling/row_pool.h.
//
// A volume is one (n, c); an axis of windows of 1 makes more volumes of it. A task is some volumes
// that lie at equal distances, or a band of rows of one. Small volumes side by side are made across their
// ends, by a list of terms. A window that holds its whole volume fills it with one quotient.
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "base/checked.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/machine_vectors.h"
#include "engines/cpu/pooling/pool_runs.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/pooling/row_pool.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::PoolRun;
using kernels::cpu::PoolVolumes;
using kernels::cpu::PoolWay;
using kernels::cpu::PoolWindows;
using problem::AvgPoolPass;
using problem::PoolWindow;
using problem::Range;

// Small volumes are handed out together: 64 KiB of results take a core longer than waking another. Less where
// a few cores would not find work of the same size.
constexpr int64_t kMostPerTask = 16384, kFewestPerTask = 4096, kFewestTasks = 16;
constexpr int64_t kExpandedFloats = 4096;  // half of L1: results and quotients pass through the other half
// Results of volumes that are made at once. Where a volume is one run of rows, as much as pays for finding it
// out; where its runs come one after the other, what stays in L1 until the last; sliding windows, which read
// as much as they write, least.
constexpr int64_t kAtOnce = 6144, kAtOnceInRuns = 3072, kAtOnceSliding = 1536;
// Fewer results than this are not worth waking a second thread, which takes 10 µs and more.
constexpr int64_t kAlone = 131072;
constexpr int64_t kMostScratchFloats = int64_t{1} << 26;

int64_t volume_of(const AvgPoolPass& p) { return p.axes[0].x * p.axes[1].x * p.axes[2].x; }

// Threads to wake for a pass: none for a small one.
int64_t slots_for(const AvgPoolPass& p, const Machine& machine) {
  return p.batch * p.channels * volume_of(p) < kAlone ? 1 : machine.cpu.threads;
}

// Equal problems side by side.
struct OuterAxis {
  int64_t size = 1, in = 0, out = 0;
};

// Whether windows of 2 or 3 slide by a place at a time, along rows and from row to row.
bool is_sliding(const AvgPoolPass& p) {
  const auto& [d, h, w] = p.axes;
  return d.x == 1 && d.y == 1 && h.stride == 1 && h.kernel <= 3 && w.stride == 1 && w.kernel > 1 &&
         w.kernel <= 3;
}

// Whether windows lie side by side and fill rows that follow each other in memory: results are then one
// stream of vectors, each of which lies in a line of the cache.
bool is_stream(const AvgPoolPass& p) {
  const auto& to = p.x.strides;
  int64_t step = 1;
  for (size_t axis = 3; axis-- > 0;) {
    const PoolWindow& w = p.axes[axis];
    if (w.kernel != w.stride || w.pad != 0 || w.x != w.y * w.stride) return false;
    if (w.x > 1 && to[axis + 2] != step) return false;
    step *= w.x;
  }
  return p.axes[2].stride > 1;
}
// How the kernel makes results straight from the tensor, if it can; kExpand if not.
PoolWay fused_way(const AvgPoolPass& p, bool one_divisor) {
  const auto& [d, h, w] = p.axes;
  const auto &from = p.y, &to = p.x;
  if (!one_divisor || from.dtype != DType::kF32 || to.dtype != DType::kF32 || from.strides[4] != 1 ||
      to.strides[4] != 1)
    return PoolWay::kExpand;
  if (h.kernel == 3 && w.kernel == 3) {
    if (h.stride == 1 && w.stride == 1) return PoolWay::kThrees;
    if (h.stride == 2 && w.stride == 2 && h.pad == 1 && w.pad == 1) return PoolWay::kWoven;
  }
  const bool one_row = d.x == 1 && d.y == 1 && h.x == 1 && h.y == 1;
  return one_row && w.stride == 1 && w.kernel > 3 ? PoolWay::kLong : PoolWay::kExpand;
}
// Results of volumes whose terms are listed: where a vector is one term; where it is more, kFewTerms at most
// in the mean; where there is a fused way. And the terms of a list, 36 bytes each.
constexpr int64_t kMostListed = 256, kMostListedTerms = 64, kMostListedFused = 32, kFewTerms = 4,
                  kMostTerms = 512;
constexpr int64_t kMostStreamVectors = 64;  // 8 KiB
constexpr int64_t kLineFloats = 16;

// How the work is cut: `band` rows of the result.
struct PoolCut {
  int64_t band = 1, bands = 1;
  int64_t row_windows = 1;  // at most, for a band
  int64_t at_once = 1;      // volumes, where a band is a volume
};

// `count` volumes, or a few less that end with a line of the cache: the next stream begins with one.
int64_t in_whole_lines(const AvgPoolPass& p, int64_t count) {
  const int64_t few = kLineFloats / std::gcd(volume_of(p), kLineFloats);
  return count > few && is_stream(p) ? count / few * few : count;
}

PoolCut cut_pool(const AvgPoolPass& p) {
  const auto& [d, h, w] = p.axes;
  PoolCut cut;
  // A band expands the windows again that it shares with the next: a few times the kernel keeps that small.
  const int64_t line = d.y * w.x;
  const int64_t stride = std::clamp<int64_t>(h.x, 1, h.stride);  // a legal one may be enormous
  const int64_t rows = std::max(ceil_div(2 * kExpandedFloats, line), ceil_div(4 * h.kernel, stride));
  cut.bands = ceil_div(h.x, std::min(h.x, rows * stride));
  cut.band = std::min(h.x, ceil_div(ceil_div(h.x, cut.bands), stride) * stride);
  cut.bands = ceil_div(h.x, cut.band);
  cut.row_windows = std::min(h.y, (cut.band + h.kernel) / h.stride + 2);
  if (cut.bands == 1) {
    cut.row_windows = h.y;
    const int64_t results = is_sliding(p) ? kAtOnceSliding : h.kernel > h.stride ? kAtOnceInRuns : kAtOnce;
    cut.at_once = std::max<int64_t>(1, results / volume_of(p));
    cut.at_once = in_whole_lines(p, cut.at_once);
  }
  return cut;
}

// The pass with an outermost axis of windows of 1 moved to `outer`: its places are volumes of their own.
AvgPoolPass split_depth(AvgPoolPass pass, OuterAxis& outer) {
  PoolWindow& d = pass.axes[0];
  if (d.kernel != 1 || d.stride != 1 || d.pad != 0 || d.x != d.y) return pass;
  outer = {d.x, pass.y.strides[2], pass.x.strides[2]};
  d.x = d.y = 1;
  return pass;
}

// Whether one window holds every place, and the places lie in a line.
bool is_fill(const AvgPoolPass& p) {
  const auto& s = p.x.strides;
  int64_t step = 1;
  for (size_t axis = 3; axis-- > 0;) {
    const PoolWindow& w = p.axes[axis];
    const Range places = w.y == 1 ? pooled_positions(w, 0) : Range{};
    if (places.begin != 0 || places.end != w.x) return false;
    if (w.x > 1 && s[axis + 2] != step) return false;
    step *= w.x;
  }
  return true;
}

// What each window of an axis counts.
struct AxisCounts {
  AxisCounts(const AvgPoolPass& p, size_t axis) {
    const PoolWindow& w = p.axes[axis];
    const auto count_of = [&](int64_t output) {
      // A window that covers no place is read by nobody; 1 keeps it from dividing by zero.
      return static_cast<float>(std::max<int64_t>(pooled_count(w, output, p.count_include_pad), 1));
    };
    if (p.divisor_override != 0) {
      count = axis == 0 ? static_cast<float>(p.divisor_override) : 1.0F;
    } else if (count_of(0) == count_of(w.y - 1) &&
               (w.y == 1 || count_of(0) == static_cast<float>(w.kernel))) {
      count = count_of(0);  // no window counts more than its kernel, and none less than the first or last
    } else {
      for (int64_t o = 0; o < w.y; ++o) counts.push_back(count_of(o));
    }
  }
  kernels::cpu::PoolCounts view() const { return {counts.empty() ? nullptr : counts.data(), count}; }
  std::vector<float> counts;
  float count = 1;
};

class AvgPoolFillStep final : public Step {
 public:
  AvgPoolFillStep(const AvgPoolPass& pass, const Machine& machine)
      : pass_(pass), slots_(slots_for(pass, machine)) {
    fill_.in_type = pass.y.dtype;
    fill_.out_type = pass.x.dtype;
    fill_.in_stride = pass.y.strides[1];
    fill_.size = volume_of(pass);
    for (size_t axis = 0; axis < 3; ++axis) fill_.divisor *= AxisCounts(pass, axis).count;
  }

  void run(const Bindings& bindings, std::byte*, runtime::ExecutionContext& context) const override {
    const auto& from = pass_.y;
    const auto& to = pass_.x;
    const auto* in = static_cast<const std::byte*>(bindings[from.operand]);
    auto* out = static_cast<std::byte*>(bindings[to.operand]);
    const auto in_bytes = static_cast<int64_t>(size_of(from.dtype));
    const auto out_bytes = static_cast<int64_t>(size_of(to.dtype));
    const int64_t volumes = pass_.batch * pass_.channels;
    const int64_t grain = slots_ == 1 ? volumes : std::max<int64_t>(1, kMostPerTask / fill_.size);
    context.pool->parallel_for(volumes, grain, [&](int64_t begin, int64_t end) {
      // Volumes of one image, which lie `size` apart, or one alone.
      while (begin < end) {
        const int64_t n = begin / pass_.channels, c = begin % pass_.channels;
        const bool adjacent = to.strides[1] == fill_.size;
        const int64_t count = adjacent ? std::min(end - begin, pass_.channels - c) : 1;
        pool_fill(fill_, in + (n * from.strides[0] + c * from.strides[1]) * in_bytes,
                  out + (n * to.strides[0] + c * to.strides[1]) * out_bytes, count);
        begin += count;
      }
    });
  }

 private:
  AvgPoolPass pass_;
  int64_t slots_;
  kernels::cpu::PoolFill fill_;
};

class AvgPoolRowsStep final : public Step {
 public:
  AvgPoolRowsStep(const AvgPoolPass& whole, const Machine& machine)
      : pass_(split_depth(whole, outer_[2])),
        cut_(cut_pool(pass_)),
        slots_(slots_for(whole, machine)),
        counts_{AxisCounts(pass_, 0), AxisCounts(pass_, 1), AxisCounts(pass_, 2)} {
    list_windows();
    list_stream(vectors_of(machine).pool_lanes());
    list_outer_axes();
    list_terms(vectors_of(machine).pool_lanes());
    describe_volumes(vectors_of(machine));
    const int64_t volumes = outer_[2].size;
    const int64_t size = volume_of(pass_), all = size * outer_[0].size * outer_[1].size * volumes;
    const int64_t elements = std::clamp(all / kFewestTasks, kFewestPerTask, kMostPerTask);
    per_task_ = cut_.bands > 1 ? 1 : std::max<int64_t>(1, elements / size);
    per_task_ = in_whole_lists(in_whole_lines(pass_, per_task_));
    tasks_per_line_ = cut_.bands > 1 ? volumes * cut_.bands : ceil_div(volumes, per_task_);
    tasks_ = outer_[0].size * outer_[1].size * tasks_per_line_;
    slot_bytes_ = part_bytes<float>(whole_.scratch_floats());
  }

  size_t workspace_bytes() const override {
    return static_cast<size_t>(std::min(slots_, tasks_)) * slot_bytes_;
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    run_tasks_nearby(*context.pool, tasks_, slots_, [&](int64_t task, int64_t slot) {
      run_task(bindings, task, reinterpret_cast<float*>(workspace + static_cast<size_t>(slot) * slot_bytes_));
    });
  }

 private:
  void list_windows() {
    const PoolWindow& h = pass_.axes[1];
    for (int64_t d = 0; d < pass_.axes[0].x; ++d) {
      const Range range = outputs_pooling(pass_.axes[0], d);
      over_depth_.push_back({range.begin, range.end});
    }
    const bool whole_rows = pass_.x.strides[4] == 1;
    const RunShapes shapes{whole_rows && h.stride > 1, whole_rows && is_sliding(pass_)};
    whole_.slides = shapes.edges;
    for (int64_t row = 0; row < h.x; row += cut_.band)
      bands_.push_back(list_band(h, row, std::min(row + cut_.band, h.x), shapes, runs_));
    const PoolWindow& w = pass_.axes[2];
    if (w.stride > kernels::cpu::kMostPoolPhases) return;
    phases_.resize(static_cast<size_t>(w.stride));
    kernels::cpu::list_pool_phases(w.stride, w.kernel, phases_.data());
  }

  void list_stream(int64_t lanes) {
    if (!is_stream(pass_)) return;
    const PoolWindow &h = pass_.axes[1], &w = pass_.axes[2];
    const int64_t period = kernels::cpu::pool_stream_period(lanes, w.y, w.stride, h.stride);
    if (period > kMostStreamVectors) return;
    stream_.resize(static_cast<size_t>(period));
    const int64_t advance =
        kernels::cpu::list_pool_stream(lanes, w.y, w.stride, h.stride, period, stream_.data());
    if (advance > 0) whole_.stream = {stream_.data(), period, advance};
  }

  // Where volumes are small and lie side by side, and so do their windows.
  void list_terms(int64_t lanes) {
    const auto& [d, h, w] = pass_.axes;
    const auto &from = pass_.y.strides, &to = pass_.x.strides;
    const int64_t size = volume_of(pass_), windows = d.y * h.y * w.y;
    const bool dense = to[4] == 1 && (h.x == 1 || to[3] == w.x) && (d.x == 1 || to[2] == h.x * w.x) &&
                       (w.y == 1 || from[4] == 1) && (h.y == 1 || from[3] == w.y) &&
                       (d.y == 1 || from[2] == h.y * w.y) && outer_[2].in == windows && outer_[2].out == size;
    const bool overlap = d.kernel > d.stride || h.kernel > h.stride || w.kernel > w.stride;
    if (!dense || is_stream(pass_) || outer_[2].size == 1) return;
    if (size > (overlap && windows > 1 ? kMostListedTerms : kMostListed)) return;
    lists_ = PoolTermLists(pass_.axes, lanes, kMostTerms);
    const auto vectors = static_cast<int64_t>(lists_.counts.size()),
               terms = static_cast<int64_t>(lists_.from.size());
    const bool alike = counts_[0].counts.empty() && counts_[1].counts.empty() && counts_[2].counts.empty();
    const int64_t most = terms == vectors                              ? kMostListed
                         : fused_way(pass_, alike) != PoolWay::kExpand ? kMostListedFused
                                                                       : kMostListedTerms;
    if (vectors == 0 || terms > kFewTerms * vectors || size > most) return;
    whole_.listed = {.lanes = lists_.lanes.data(),
                     .from = lists_.from.data(),
                     .counts = lists_.counts.data(),
                     .ones = terms == vectors,
                     .volumes = lists_.volumes,
                     .vectors = vectors};
    cut_.at_once = in_whole_lists(cut_.at_once);
    // Volumes side by side keep the rows of windows, too, that hold no place.
    bands_[0].first_window = 0;
    bands_[0].windows = h.y;
    if (alike) return;
    whole_.listed.divided = std::lcm(windows, lanes);
    for (int64_t i = 0; i < whole_.listed.divided; ++i)
      divisors_.push_back(counts_[0].view()[i / w.y / h.y % d.y] * counts_[1].view()[i / w.y % h.y] *
                          counts_[2].view()[i % w.y]);
    whole_.listed.divisors = divisors_.data();
  }
  int64_t in_whole_lists(int64_t volumes) const {
    const int64_t some = std::max<int64_t>(whole_.listed.volumes, 1);
    return std::max(volumes / some * some, some);
  }

  void describe_volumes(const VectorShape& vectors) {
    const auto& [d, h, w] = pass_.axes;
    whole_.depths = d.x;
    whole_.depth_windows = d.y;
    whole_.over_depth = over_depth_.data();
    whole_.depth_counts = counts_[0].view();
    whole_.row_windows = cut_.row_windows;
    whole_.row_counts = counts_[1].view();
    whole_.x = w.x;
    whole_.y = w.y;
    whole_.kernel = w.kernel;
    whole_.stride = w.stride;
    whole_.pad = w.pad;
    whole_.phases = phases_.data();
    whole_.counts = counts_[2].view();
    whole_.at_once = cut_.at_once;
    int64_t depth_windows = 0, row_windows = 0;
    for (const PoolWindows& windows : over_depth_)
      depth_windows = std::max(depth_windows, windows.end - windows.begin);
    for (const PoolRun& run : runs_) row_windows = std::max(row_windows, run.windows.end - run.windows.begin);
    whole_.most_rows = depth_windows * row_windows;
    const auto& from = pass_.y;
    const auto& to = pass_.x;
    whole_.in = {from.dtype, outer_[2].in, from.strides[2], from.strides[3], from.strides[4]};
    whole_.out = {to.dtype, outer_[2].out, to.strides[2], to.strides[3], to.strides[4]};
    const auto one = [](const AxisCounts& axis) { return axis.counts.empty(); };
    whole_.fused = fused_way(pass_, one(counts_[0]) && one(counts_[1]) && one(counts_[2]));
    whole_.derive(vectors);
  }

  // Images, channels and depths with windows of 1; the last axis is what one task takes several of, so axes
  // that continue it in memory are made part of it.
  void list_outer_axes() {
    const auto& from = pass_.y.strides;
    const auto& to = pass_.x.strides;
    const OuterAxis depth = outer_[2];
    const OuterAxis images{pass_.batch, from[0], to[0]};
    const OuterAxis channels{pass_.channels, from[1], to[1]};
    outer_ = {images, channels, depth};
    fold(1);
    fold(0);
  }
  // Makes axis `axis` part of the last one, if it can be.
  void fold(size_t axis) {
    OuterAxis &outer = outer_[axis], &last = outer_[2];
    if (outer.size == 1) return;
    if (last.size == 1) {
      std::swap(outer, last);
    } else if (outer.in == last.size * last.in && outer.out == last.size * last.out) {
      last.size *= outer.size;
      outer = {};
    }
  }

  void run_task(const Bindings& bindings, int64_t task, float* scratch) const {
    const int64_t line = task / tasks_per_line_, piece = task % tasks_per_line_;
    const int64_t first = line / outer_[1].size, second = line % outer_[1].size;
    const int64_t volume = cut_.bands > 1 ? piece / cut_.bands : piece * per_task_;
    const PoolBand& band = bands_[static_cast<size_t>(cut_.bands > 1 ? piece % cut_.bands : 0)];
    PoolVolumes part = whole_;
    clear_pool_scratch(part, scratch);
    part.rows = band.rows;
    part.row_windows = band.windows;
    part.first_row = first_window_of(band);
    part.runs = runs_.data() + band.first_run;
    part.run_count = static_cast<int64_t>(band.runs);
    if (part.row_counts.each != nullptr) part.row_counts.each += band.first_window;
    const auto& from = pass_.y;
    const auto& to = pass_.x;
    const int64_t in = first * outer_[0].in + second * outer_[1].in + volume * outer_[2].in +
                       band.first_window * from.strides[3];
    const int64_t out = first * outer_[0].out + second * outer_[1].out + volume * outer_[2].out +
                        band.first_row * to.strides[3];
    pool_volumes(part, address(bindings, from, in), address(bindings, to, out),
                 std::min(per_task_, outer_[2].size - volume), scratch);
  }

  // Of the windows that hold the first row of a band, those before the first one counted in.
  int64_t first_window_of(const PoolBand& band) const {
    const PoolWindow& h = pass_.axes[1];
    return ceil_div(band.first_row + h.pad - h.kernel + 1, h.stride) - band.first_window;
  }

  static std::byte* address(const Bindings& bindings, const problem::PassTensor& tensor, int64_t at) {
    return static_cast<std::byte*>(bindings[tensor.operand]) +
           at * static_cast<int64_t>(size_of(tensor.dtype));
  }

  std::array<OuterAxis, 3> outer_;
  AvgPoolPass pass_;
  PoolCut cut_;
  int64_t slots_;
  AxisCounts counts_[3];
  std::vector<PoolWindows> over_depth_;
  std::vector<PoolRun> runs_;
  std::vector<PoolBand> bands_;
  std::vector<kernels::cpu::PoolPhase> phases_;
  std::vector<kernels::cpu::PoolStreamVector> stream_;
  PoolTermLists lists_;
  std::vector<float> divisors_;  // of small volumes
  PoolVolumes whole_;
  int64_t per_task_ = 1, tasks_per_line_ = 0, tasks_ = 0;
  size_t slot_bytes_ = 0;
};

std::optional<Reason> unfit(const AvgPoolPass& pool, const Machine& /*machine*/) {
  if (size_of(pool.y.dtype) == 1 || size_of(pool.x.dtype) == 1) return "takes no 8-bit types";
  OuterAxis depth;
  const AvgPoolPass split = split_depth(pool, depth);
  const PoolCut cut = cut_pool(split);
  const PoolWindow& w = split.axes[2];
  const Checked line = Checked(w.x) + w.y + 2 * (w.kernel / w.stride) + 3;
  const Checked rows = Checked(split.axes[0].y) * cut.row_windows * cut.at_once + 2;
  if ((line * rows).get().value_or(INT64_MAX) > kMostScratchFloats)
    return "rows of quotients, before and after they are expanded, are more than 2^26 floats";
  return std::nullopt;
}

std::unique_ptr<const Step> step(const AvgPoolPass& pool, const Machine& machine) {
  if (is_fill(pool)) return std::make_unique<AvgPoolFillStep>(pool, machine);
  return std::make_unique<AvgPoolRowsStep>(pool, machine);
}

}  // namespace

const Candidate& avgpool_rows() {
  static const PoolCandidate instance({"cpu.avgpool_rows", kPoolBackward, unfit, nullptr, step});
  return instance;
}

}  // namespace retrograd::engines::cpu
