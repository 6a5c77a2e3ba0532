// SPDX-License-Identifier: Apache-2.0
// Rows are listed one by one, then what is alike becomes one run.
#include "engines/cpu/pooling/pool_runs.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::PoolRun;
using kernels::cpu::PoolTerms;
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

PoolTermLists::PoolTermLists(const std::array<PoolWindow, 3>& axes, int64_t width, int64_t most) {
  const auto& [d, h, w] = axes;
  const int64_t size = d.x * h.x * w.x, windows = d.y * h.y * w.y;
  // The windows of each result of a volume, in the order in which they are added.
  std::vector<int64_t> listed;
  std::vector<size_t> ends{0};
  for (int64_t i = 0; i < d.x; ++i)
    for (int64_t j = 0; j < h.x; ++j)
      for (int64_t k = 0; k < w.x; ++k) {
        const Range over_d = outputs_pooling(d, i), over_h = outputs_pooling(h, j),
                    over_w = outputs_pooling(w, k);
        for (int64_t z = over_d.begin; z < over_d.end; ++z)
          for (int64_t y = over_h.begin; y < over_h.end; ++y)
            for (int64_t x = over_w.begin; x < over_w.end; ++x) listed.push_back((z * h.y + y) * w.y + x);
        ends.push_back(listed.size());
      }
  volumes = width / std::gcd(size, width);
  int64_t volume = 0;
  size_t place = 0;  // the next result
  for (int64_t vector = 0; vector < volumes * size / width; ++vector) {
    struct Lane {
      size_t next, end;
      int64_t first;  // window of its volume
    };
    std::array<Lane, kernels::cpu::kMostPoolLanes> all;
    for (Lane& lane : std::span(all).first(static_cast<size_t>(width))) {
      lane = {ends[place], ends[place + 1], volume * windows};
      if (++place < static_cast<size_t>(size)) continue;
      place = 0;
      ++volume;
    }
    const size_t before = from.size();
    for (;;) {
      // Each lane's next window, where a vector from the first of them on holds it.
      int64_t lowest = INT64_MAX;
      for (const Lane& lane : std::span(all).first(static_cast<size_t>(width)))
        if (lane.next < lane.end) lowest = std::min(lowest, lane.first + listed[lane.next]);
      const bool none = lowest == INT64_MAX;
      if (none && from.size() > before) break;
      if (static_cast<int64_t>(from.size()) == most) {
        *this = {};
        return;
      }
      from.push_back(none ? 0 : static_cast<int32_t>(lowest));
      for (Lane& lane : std::span(all).first(static_cast<size_t>(width))) {
        const int64_t at = lane.next < lane.end ? lane.first + listed[lane.next] - lowest : width;
        lanes.push_back(at < width ? PoolTerms::kTaken + static_cast<int32_t>(at) : PoolTerms::kNone);
        lane.next += at < width ? 1 : 0;
      }
    }
    counts.push_back(static_cast<int32_t>(from.size() - before));
  }
}

}  // namespace retrograd::engines::cpu
