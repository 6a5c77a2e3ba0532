// SPDX-License-Identifier: Apache-2.0
// Rows are listed one by one, then what is alike becomes one run.
#include "engines/cpu/pooling/pool_runs.h"

#include <algorithm>
#include <numeric>

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::PoolRun;
using kernels::cpu::PoolWeave;
using kernels::cpu::PoolWindows;
using problem::PoolWindow;
using problem::Range;

// Rows `first` to `end` of the result, by the windows they lie in, which count from `window` on.
void list_runs(const PoolWindow& axis, int64_t first, int64_t end, int64_t window,
               std::vector<PoolRun>& runs) {
  const size_t before = runs.size();
  for (int64_t row = first; row < end; ++row) {
    const Range range = outputs_pooling(axis, row);
    const PoolWindows windows =
        range.size() == 0 ? PoolWindows{} : PoolWindows{range.begin - window, range.end - window};
    if (runs.size() > before) {
      PoolRun& run = runs.back();
      const PoolWindows& last = run.windows;
      const bool same = !run.slides && windows == last;
      const bool slides = last.begin < last.end && (run.slides || run.rows == 1) &&
                          windows == PoolWindows{last.begin + run.rows, last.end + run.rows};
      if (same || slides) {
        run.slides = slides;
        ++run.rows;
        continue;
      }
    }
    runs.push_back({row - first, 1, windows});
  }
}

// Two windows, then the second of them alone: how rows lie in windows that overlap by less than a stride.
void pair_runs(size_t begin, std::vector<PoolRun>& runs) {
  size_t kept = begin;
  for (size_t i = begin; i < runs.size(); ++i) {
    PoolRun run = runs[i];
    const PoolWindows two = run.windows;
    if (i + 1 < runs.size() && !run.slides && !runs[i + 1].slides && two.end - two.begin == 2 &&
        runs[i + 1].windows == PoolWindows{two.begin + 1, two.end}) {
      run.alone = runs[++i].rows;
    }
    runs[kept++] = run;
  }
  runs.resize(kept);
}

// Runs that follow each other and are the same, a window later each time, become one.
void fold_runs(size_t begin, std::vector<PoolRun>& runs) {
  size_t kept = begin;
  for (size_t i = begin; i < runs.size(); ++i) {
    const PoolRun run = runs[i];
    if (kept > begin && !run.slides && !runs[kept - 1].slides) {
      PoolRun& last = runs[kept - 1];
      const PoolWindows& w = last.windows;
      if (last.rows == run.rows && last.alone == run.alone && w.begin < w.end &&
          run.windows == PoolWindows{w.begin + last.repeats, w.end + last.repeats}) {
        ++last.repeats;
        last.step = last.rows + last.alone;
        continue;
      }
    }
    runs[kept++] = run;
  }
  runs.resize(kept);
}

// Three windows that slide take with them the row before and the row behind that lie in two of theirs.
void join_edges(size_t begin, std::vector<PoolRun>& runs) {
  size_t kept = begin;
  const auto is_edge = [](const PoolRun& run) { return run.rows == 1 && run.repeats == 1 && !run.slides; };
  for (size_t i = begin; i < runs.size(); ++i) {
    PoolRun run = runs[i];
    const auto& [first, end] = run.windows;
    const int64_t last = end + run.rows - 1;
    if (run.slides && end - first == 3) {
      if (i + 1 < runs.size() && is_edge(runs[i + 1]) && runs[i + 1].windows == PoolWindows{last - 2, last}) {
        run.trails = true;
        ++run.rows;
        ++i;
      }
      if (kept > begin && is_edge(runs[kept - 1]) &&
          runs[kept - 1].windows == PoolWindows{first, first + 2}) {
        run.leads = true;
        ++run.rows;
        --run.first;
        --kept;
      }
    }
    runs[kept++] = run;
  }
  runs.resize(kept);
}

}  // namespace

PoolBand list_band(const PoolWindow& axis, int64_t first, int64_t end, RunShapes shapes,
                   std::vector<PoolRun>& runs) {
  PoolBand band{first, end - first, axis.y, 0, runs.size(), 0};
  int64_t last = 0;
  for (int64_t row = first; row < end; ++row) {
    const Range range = outputs_pooling(axis, row);
    if (range.size() == 0) continue;
    band.first_window = std::min(band.first_window, range.begin);
    last = std::max(last, range.end);
  }
  band.windows = std::max<int64_t>(last - band.first_window, 0);
  list_runs(axis, first, end, band.first_window, runs);
  if (shapes.pairs) pair_runs(band.first_run, runs);
  if (shapes.edges) join_edges(band.first_run, runs);
  fold_runs(band.first_run, runs);
  band.runs = runs.size() - band.first_run;
  return band;
}

PoolWeaveList::PoolWeaveList(const std::array<PoolWindow, 3>& axes, int64_t width, int64_t most) {
  const auto& [d, h, w] = axes;
  const int64_t size = d.x * h.x * w.x, windows = d.y * h.y * w.y;
  // Of each result of a volume, in the order in which they are added.
  std::vector<std::vector<int64_t>> places;
  for (int64_t i = 0; i < size; ++i) {
    const Range along_d = outputs_pooling(d, i / w.x / h.x), along_h = outputs_pooling(h, i / w.x % h.x),
                along_w = outputs_pooling(w, i % w.x);
    places.emplace_back();
    for (int64_t z = along_d.begin; z < along_d.end; ++z)
      for (int64_t y = along_h.begin; y < along_h.end; ++y)
        for (int64_t x = along_w.begin; x < along_w.end; ++x)
          places.back().push_back((z * h.y + y) * w.y + x);
  }
  volumes = width / std::gcd(size, width);
  for (int64_t first = 0; first < volumes * size; first += width) {
    std::array<size_t, kernels::cpu::kMostPoolLanes> taken{};
    const size_t before = from.size();
    for (;;) {
      // Each lane's next window, where a vector from the first of them on holds it.
      constexpr int64_t kNone = INT64_MAX;
      std::array<int64_t, kernels::cpu::kMostPoolLanes> next{};
      int64_t lowest = kNone;
      for (int64_t lane = 0; lane < width; ++lane) {
        const auto l = static_cast<size_t>(lane);
        const std::vector<int64_t>& list = places[static_cast<size_t>((first + lane) % size)];
        next[l] = taken[l] == list.size() ? kNone : (first + lane) / size * windows + list[taken[l]];
        lowest = std::min(lowest, next[l]);
      }
      if (lowest == kNone && from.size() > before) break;
      if (static_cast<int64_t>(from.size()) == most) {
        *this = {};
        return;
      }
      from.push_back(lowest == kNone ? 0 : static_cast<int32_t>(lowest));
      for (size_t l = 0; l < static_cast<size_t>(width); ++l) {
        const bool takes = next[l] != kNone && next[l] - lowest < width;
        lanes.push_back(takes ? PoolWeave::kTaken + static_cast<int32_t>(next[l] - lowest)
                              : PoolWeave::kNone);
        taken[l] += takes ? 1 : 0;
      }
    }
    counts.push_back(static_cast<int32_t>(from.size() - before));
  }
}

}  // namespace retrograd::engines::cpu
