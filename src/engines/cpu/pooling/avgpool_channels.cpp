// SPDX-License-Identifier: Apache-2.0
// grad_input[q] = Σ_{p : q in window p} grad_output[p] / divisor(p) where the channels of a place lie side by
// side (NHWC): kernels/cpu/pooling/pool_channels.h.
//
// An item is some places of some rows of the result that lie in the same rows of windows, and all channels
// or a block of them: what it needs of the windows is added across rows into sums that stay in the first
// caches, then spread over the places, row after row. Windows that do not overlap need no sums: their
// quotients go straight to their places. Of small images several have their turn together; results that the
// last cache cannot hold go past the caches.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/pooling/pool_channels.h"
#include "kernels/cpu/pooling/pool_windows.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::PoolQuotientRow;
using problem::AvgPoolPass;
using problem::PoolWindow;
using problem::Range;

constexpr int64_t kSumFloats = 8192;        // 32 KiB: what a segment of windows may have of the caches
constexpr int64_t kMostItemFloats = 32768;  // results of an item
constexpr int64_t kMostPerTask = 32768, kFewestPerTask = 4096, kFewestTasks = 16;
constexpr int64_t kStageFloats = 8192;   // of a row that goes past the caches
constexpr int64_t kSmallImage = 4096;    // results of which several images are made together
constexpr int64_t kMostChannels = 8192;  // of a block
constexpr int64_t kMostRows = 128;       // of windows, listed on the stack: a workspace holds no addresses
constexpr int64_t kMostListed = 65536;   // rows of results, and depths
constexpr int64_t kAlone = 49152;  // fewer results are not worth waking a second thread, which takes 10 µs

// Neighbouring rows of the result that lie in the same rows of windows; windows that count as many places.
struct Rows {
  int64_t first, count;
  Range windows;
};
struct Counts {
  Range windows;
  float count;
  PoolQuotientRow common;  // of most rows
};

int64_t results_of(const AvgPoolPass& p) {
  return p.batch * p.channels * p.axes[0].x * p.axes[1].x * p.axes[2].x;
}

struct Cut {
  bool streams = false;              // results, which the caches would not keep, go past them
  int64_t images = 1;                // made together, all of them by one task
  int64_t block = 1, blocks = 1;     // channels
  int64_t places = 1, segments = 1;  // of a row
  int64_t depths = 1, rows = 1;      // at most, of an item
  int64_t windows = 1;               // at most, of a segment
};

Cut cut_channels(const AvgPoolPass& p, const Caches& caches) {
  const PoolWindow& w = p.axes[2];
  Cut cut;
  cut.blocks = ceil_div(p.channels, kMostChannels);
  cut.block = ceil_div(p.channels, cut.blocks);
  // Segments share the windows that reach over their border: some times as many places as a window is wide.
  const int64_t stride = std::clamp<int64_t>(w.x, 1, w.stride), kernel = std::min(w.kernel, w.x);
  const int64_t few = std::max<int64_t>(kSumFloats / cut.block, ceil_div(4 * kernel, stride)) * stride;
  const int64_t bytes = results_of(p) * static_cast<int64_t>(size_of(p.x.dtype));
  cut.streams = bytes > caches.level[2].bytes / 4 * 3 && cut.blocks == 1 && p.x.strides[4] == p.channels;
  const int64_t most = std::max<int64_t>((cut.streams ? kStageFloats : kMostItemFloats) / cut.block,
                                         kernel > w.stride ? 4 * kernel : 1);
  cut.segments = ceil_div(w.x, std::min(few, most));
  cut.places = ceil_div(w.x, cut.segments);
  if (cut.places > stride) cut.places = ceil_div(cut.places, stride) * stride;
  cut.segments = ceil_div(w.x, cut.places);
  cut.rows = std::max<int64_t>(1, kMostItemFloats / (cut.places * cut.block));
  cut.depths = std::max<int64_t>(1, cut.rows / p.axes[1].x);
  cut.windows = std::min(w.y, (cut.places + w.kernel) / w.stride + 2);
  if (results_of(p) / p.batch <= kSmallImage)
    cut.images = std::clamp<int64_t>(kSumFloats / (cut.windows * cut.block), 1,
                                     results_of(p) < kAlone ? p.batch : ceil_div(p.batch, kFewestTasks));
  return cut;
}

// Of rows of windows that a place lies in.
int64_t most_rows(const AvgPoolPass& p) {
  int64_t rows = 1;
  for (size_t axis = 0; axis < 2; ++axis)
    rows *= std::min(p.axes[axis].y, p.axes[axis].kernel / p.axes[axis].stride + 1);
  return rows;
}

// The same pass: where there is one window, its stride says nothing, and with its kernel for it, windows do
// not overlap.
AvgPoolPass with_long_strides(AvgPoolPass pass) {
  for (PoolWindow& w : pass.axes)
    if (w.y == 1) w.stride = std::max(w.stride, w.kernel);
  return pass;
}

class AvgPoolChannelsStep final : public Step {
 public:
  AvgPoolChannelsStep(const AvgPoolPass& pass, const Machine& machine)
      : pass_(with_long_strides(pass)),
        cut_(cut_channels(pass_, machine.cpu.caches)),
        depths_(list_rows(0, cut_.depths)),
        rows_(list_rows(1, cut_.rows)) {
    list_counts();
    apart_ = are_apart();
    alike_ = static_cast<int64_t>(depths_.size() * rows_.size()) * cut_.segments * cut_.blocks;
    items_ = cut_.images == 1 ? pass.batch * alike_ : ceil_div(pass.batch, cut_.images);
    const int64_t all = results_of(pass);
    const int64_t task = std::clamp(all / kFewestTasks, kFewestPerTask, kMostPerTask);
    per_task_ = std::clamp<int64_t>(task / std::max<int64_t>(all / items_, 1), 1, items_);
    slots_ = all < kAlone ? 1 : machine.cpu.threads;
    sum_bytes_ = part_bytes<float>(cut_.images * cut_.windows * cut_.block);
    slot_bytes_ = sum_bytes_ + (cut_.streams ? part_bytes<float>(cut_.places * cut_.block) : 0);
  }

  std::string describe() const override {
    return fmt::format("{} tasks of {} x up to {} rows of {} places of {} channels", tasks(), per_task_,
                       cut_.rows, cut_.places, cut_.block);
  }
  size_t workspace_bytes() const override {
    return static_cast<size_t>(std::min(slots_, tasks())) * slot_bytes_;
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const auto* in = static_cast<const std::byte*>(bindings[pass_.y.operand]);
    auto* out = static_cast<std::byte*>(bindings[pass_.x.operand]);
    run_tasks_nearby(*context.pool, tasks(), slots_, [&](int64_t task, int64_t slot) {
      std::byte* memory = workspace + static_cast<size_t>(slot) * slot_bytes_;
      const int64_t end = std::min((task + 1) * per_task_, items_);
      for (int64_t item = task * per_task_; item < end; ++item) {
        if (cut_.images == 1) {
          run_item(in, out, item % alike_, item / alike_, 1, memory);
          continue;
        }
        const int64_t n = item * cut_.images, images = std::min(cut_.images, pass_.batch - n);
        for (int64_t place = 0; place < alike_; ++place) run_item(in, out, place, n, images, memory);
      }
    });
  }

 private:
  int64_t tasks() const { return ceil_div(items_, per_task_); }

  // A window that covers no place is read by nobody; 1 keeps it from dividing by zero.
  float count_of(size_t axis, int64_t window) const {
    if (pass_.divisor_override != 0) return axis == 2 ? static_cast<float>(pass_.divisor_override) : 1.0F;
    const int64_t count = pooled_count(pass_.axes[axis], window, pass_.count_include_pad);
    return static_cast<float>(std::max<int64_t>(count, 1));
  }

  // Whether windows lie apart from each other, and what they give to their places needs no sums.
  bool are_apart() const {
    for (const PoolWindow& w : pass_.axes)
      if (w.kernel > w.stride) return false;
    PoolQuotientRow row{};
    float divisor = 1;
    for (const PoolWindow& w : pass_.axes) divisor *= static_cast<float>(w.kernel);
    if (pass_.divisor_override != 0) divisor = static_cast<float>(pass_.divisor_override);
    return pass_.x.dtype == pass_.y.dtype && kernels::cpu::pool_reciprocal(divisor, row.high, row.low);
  }

  // Along D or H, `most` at a time.
  std::vector<Rows> list_rows(size_t axis, int64_t most) const {
    std::vector<Rows> list;
    for (int64_t row = 0; row < pass_.axes[axis].x; ++row) {
      const Range windows = outputs_pooling(pass_.axes[axis], row);
      const bool same = !list.empty() && list.back().windows.begin == windows.begin &&
                        list.back().windows.end == windows.end && list.back().count < most;
      same ? void(++list.back().count) : list.push_back({row, 1, windows});
    }
    return list;
  }

  // Windows count as many places as the kernel has, but for the first and the last ones.
  void list_counts() {
    const PoolWindow& w = pass_.axes[2];
    const auto full = static_cast<float>(w.kernel);
    int64_t last = w.y;
    while (last > 0 && pass_.divisor_override == 0 && count_of(2, last - 1) != full) --last;
    for (int64_t j = 0; j < w.y; ++j) {
      const float count = count_of(2, j);
      if (counts_.empty() || counts_.back().count != count) counts_.push_back({{j, j}, count, {}});
      if ((count == full || pass_.divisor_override != 0) && j < last) j = last - 1;
      counts_.back().windows.end = j + 1;
    }
    for (size_t axis = 0; axis < 2; ++axis)
      for (int64_t j = 0; j < pass_.axes[axis].y; ++j) row_counts_[axis].push_back(count_of(axis, j));
    const float factor =
        row_counts_[0][row_counts_[0].size() / 2] * row_counts_[1][row_counts_[1].size() / 2];
    for (Counts& counts : counts_) counts.common = quotient_row(counts, factor);
    common_factor_ = factor;
  }

  // One place in the list of what is alike, of some images.
  void run_item(const std::byte* in, std::byte* out, int64_t index, int64_t n, int64_t images,
                std::byte* memory) const {
    const auto take = [&](int64_t count) {
      return count == 1 ? 0 : std::exchange(index, index / count) % count;
    };
    const PoolWindow& w = pass_.axes[2];
    const int64_t x = take(cut_.segments) * cut_.places, places = std::min(cut_.places, w.x - x);
    const Rows& rows = rows_[static_cast<size_t>(take(static_cast<int64_t>(rows_.size())))];
    const Rows& depths = depths_[static_cast<size_t>(take(static_cast<int64_t>(depths_.size())))];
    const int64_t c = index * cut_.block, channels = std::min(cut_.block, pass_.channels - c);
    auto* sums = reinterpret_cast<float*>(memory);

    Range windows;  // none where no row of windows holds these rows
    if (depths.windows.size() * rows.windows.size() > 0) windows = windows_of(x, places);
    const auto& from = pass_.y.strides;
    const auto& to = pass_.x.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.y.dtype)),
               out_bytes = static_cast<int64_t>(size_of(pass_.x.dtype));
    kernels::cpu::PoolSpread spread{
        .sums = sums,
        .window = from[4],
        .channels = channels,
        .first = windows.begin,
        .end = windows.end,
        .x = x,
        .places = places,
        .kernel = w.kernel,
        .stride = w.stride,
        .pad = w.pad,
        .type = pass_.x.dtype,
        .out = out + (n * to[0] + c + depths.first * to[2] + rows.first * to[3] + x * to[4]) * out_bytes,
        .rows = rows.count,
        .row = to[3],
        .place = to[4],
        .stage = cut_.streams ? memory + sum_bytes_ : nullptr};
    const auto spread_images = [&](int64_t sum_step, int64_t window_step) {
      spread.derive();
      for (int64_t image = 0; image < images; ++image) {
        for (int64_t d = 0; d < depths.count; ++d) {
          kernels::cpu::spread_windows(spread);
          spread.out += to[2] * out_bytes;
        }
        spread.sums += sum_step;
        spread.row_of_windows += window_step;
        spread.out += (to[0] - depths.count * to[2]) * out_bytes;
      }
    };
    if (apart_ && windows.size() > 0) {
      const std::byte* const line =
          in + (n * from[0] + c + depths.windows.begin * from[2] + rows.windows.begin * from[3]) * bytes;
      const float factor = row_counts_[0][static_cast<size_t>(depths.windows.begin)] *
                           row_counts_[1][static_cast<size_t>(rows.windows.begin)];
      // Windows that count alike have places of their own, up to those of the next.
      std::byte* const at = spread.out;
      for (const Counts& counts : counts_) {
        const bool first = counts.windows.begin == 0, last = counts.windows.end == w.y;
        const int64_t begin = first ? x : std::max(x, counts.windows.begin * w.stride - w.pad),
                      end = last ? x + places : std::min(x + places, counts.windows.end * w.stride - w.pad);
        if (begin >= end) continue;
        spread.quotient = quotient_row(counts, factor);
        spread.first = counts.windows.begin;
        spread.end = counts.windows.end;
        spread.row_of_windows = line + counts.windows.begin * from[4] * bytes;
        spread.x = begin;
        spread.places = end - begin;
        spread.out = at + (begin - x) * to[4] * out_bytes;
        spread_images(0, from[0] * bytes);
      }
      return;
    }
    for (const Counts& counts : counts_) {
      const int64_t begin = std::max(counts.windows.begin, windows.begin),
                    end = std::min(counts.windows.end, windows.end);
      if (begin >= end) continue;
      std::array<PoolQuotientRow, kMostRows> list;
      kernels::cpu::PoolQuotients quotients{.type = pass_.y.dtype,
                                            .from = in + (n * from[0] + c + begin * from[4]) * bytes,
                                            .rows = list.data(),
                                            .multiplies = true,
                                            .windows = end - begin,
                                            .place = from[4],
                                            .channels = channels,
                                            .sums = sums + (begin - windows.begin) * channels};
      for (int64_t z = depths.windows.begin; z < depths.windows.end; ++z)
        for (int64_t y = rows.windows.begin; y < rows.windows.end; ++y) {
          PoolQuotientRow& row = list[static_cast<size_t>(quotients.row_count++)];
          row = quotient_row(counts,
                             row_counts_[0][static_cast<size_t>(z)] * row_counts_[1][static_cast<size_t>(y)]);
          quotients.multiplies = quotients.multiplies && row.high != 0;
          row.at = (z * from[2] + y * from[3]) * bytes;
        }
      for (int64_t image = 0; image < images; ++image) {
        kernels::cpu::sum_quotients(quotients);
        quotients.sums += windows.size() * channels;
        quotients.from += from[0] * bytes;
      }
    }
    spread_images(windows.size() * channels, 0);
  }

  // Windows that hold some of these places.
  Range windows_of(int64_t x, int64_t places) const {
    const PoolWindow& w = pass_.axes[2];
    if (places == w.x) return {0, w.y};
    return {outputs_pooling(w, x).begin, outputs_pooling(w, x + places - 1).end};
  }
  // Windows of a row whose depth and height count `factor`; `high` is 0 where they must be divided.
  PoolQuotientRow quotient_row(const Counts& counts, float factor) const {
    if (factor == common_factor_) return counts.common;
    PoolQuotientRow row{.at = 0, .divisor = factor * counts.count, .high = 0, .low = 0};
    if (!kernels::cpu::pool_reciprocal(row.divisor, row.high, row.low)) row.high = 0;
    return row;
  }

  AvgPoolPass pass_;
  Cut cut_;
  bool apart_ = false;
  std::vector<Rows> depths_, rows_;
  std::array<std::vector<float>, 2> row_counts_;  // of each window along D and H
  std::vector<Counts> counts_;                    // along W
  float common_factor_ = 0;                       // what most rows of windows count
  int64_t alike_ = 1, items_ = 0, per_task_ = 1, slots_ = 1;
  size_t sum_bytes_ = 0, slot_bytes_ = 0;
};

std::optional<Reason> unfit(const AvgPoolPass& pool, const Machine& /*machine*/) {
  if (size_of(pool.y.dtype) == 1 || size_of(pool.x.dtype) == 1) return "takes no 8-bit types";
  if (pool.channels < 2 || pool.y.strides[1] != 1 || pool.x.strides[1] != 1)
    return "channels must lie side by side";
  if (std::max(pool.axes[0].x, pool.axes[1].x) > kMostListed) return "there are more than 65536 rows";
  if (most_rows(pool) > kMostRows) return "a place lies in more than 128 rows of windows";
  return std::nullopt;
}

}  // namespace

const Candidate& avgpool_channels() {
  static const PoolCandidate instance(
      {"cpu.avgpool_channels", kPoolBackward, unfit, nullptr, make<AvgPoolChannelsStep>});
  return instance;
}

}  // namespace retrograd::engines::cpu
