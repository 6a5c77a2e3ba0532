// SPDX-License-Identifier: Apache-2.0
// The axes of gathering passes, on the CPU and on GPUs: every result once, and through every tap what the
// window says.
#include "engines/cpu/axis_phases.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <utility>

#include "engines/cpu/boxes.h"
#include "engines/cpu/depthwise/depthwise_axes.h"
#include "engines/cuda/dense/product_axes.h"

namespace retrograd::engines {
namespace {

using problem::Range;
using problem::Window;
using Reads =
    std::map<std::pair<int64_t, int64_t>, int64_t>;  // (result, tap) → the source place that is read

void for_windows(const std::function<void(const Window&)>& check) {
  for (int64_t x = 1; x <= 11; ++x)
    for (int64_t kernel = 1; kernel <= 5; ++kernel)
      for (int64_t stride = 1; stride <= 4; ++stride)
        for (int64_t dilation = 1; dilation <= 4; ++dilation)
          for (int64_t pad = -2; pad <= 4; ++pad) {
            const auto y = problem::output_size({x, kernel, stride, dilation, pad, 1});
            if (!y || *y < 1) continue;
            SCOPED_TRACE(testing::Message() << "x " << x << " kernel " << kernel << " stride " << stride
                                            << " dilation " << dilation << " pad " << pad);
            check({x, *y, kernel, stride, dilation, pad});
            if (::testing::Test::HasFailure()) return;
          }
}

Reads forward_reads(const Window& w) {
  Reads reads;
  for (int64_t output = 0; output < w.y; ++output)
    for (int64_t tap = 0; tap < w.kernel; ++tap)
      if (const int64_t at = position(w, output, tap); at >= 0 && at < w.x) reads[{output, tap}] = at;
  return reads;
}

Reads grad_input_reads(const Window& w) {
  Reads reads;
  for (const auto& [pair, at] : forward_reads(w)) reads[{at, pair.second}] = pair.first;
  return reads;
}

Reads reads_of(const std::vector<cpu::AxisPhase>& phases, int64_t results) {
  Reads reads;
  std::set<int64_t> seen;
  for (const cpu::AxisPhase& phase : phases) {
    bool leaves = false;
    for (int64_t j = 0; j < phase.count; ++j) {
      EXPECT_TRUE(seen.insert(phase.first + j * phase.step).second);
      for (const cpu::PhaseTap& tap : phase.taps) {
        const int64_t at = j * phase.source_step + tap.offset;
        const bool inside = at >= 0 && at < phase.source_size;
        const Range live = live_positions(phase, tap);
        EXPECT_EQ(inside, j >= live.begin && j < live.end);
        if (inside) reads[{phase.first + j * phase.step, tap.tap}] = at;
        leaves |= !inside;
      }
    }
    EXPECT_EQ(phase.leaves_source() && !phase.taps.empty(), leaves);
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), results);
  EXPECT_TRUE(seen.empty() || (*seen.begin() == 0 && *seen.rbegin() == results - 1));
  return reads;
}

Reads reads_of(const kernels::cuda::ProductAxis& axis) {
  Reads reads;
  for (int64_t i = 0; i < axis.results; ++i)
    for (int64_t k = 0; k < axis.taps; ++k)
      if (const int64_t at = axis.first + i * axis.step + k * axis.tap_step; at >= 0 && at < axis.source)
        reads[{axis.result_first + i * axis.result_step, axis.tap_first + k * axis.tap_stride}] = at;
  return reads;
}

TEST(AxisPhases, GatherWhatTheWindowSays) {
  for_windows([](const Window& w) {
    EXPECT_EQ(reads_of({cpu::forward_phase(w)}, w.y), forward_reads(w));
    EXPECT_EQ(reads_of(cpu::grad_input_phases(w), w.x), grad_input_reads(w));
  });
}

// The range of sources holds all that some neighbouring results gather, and is no wider than promised.
TEST(AxisPhases, KnowWhatSomeResultsRead) {
  for_windows([](const Window& w) {
    const cpu::GatherAxis axis{cpu::grad_input_phases(w), w.x};
    const Reads reads = grad_input_reads(w);
    for (int64_t begin = 0; begin < w.x; ++begin)
      for (int64_t end = begin + 1; end <= w.x; ++end) {
        const Range sources = axis.sources(begin, end);
        EXPECT_LE(sources.size(), axis.most_sources(end - begin));
        for (const auto& [pair, at] : reads)
          if (pair.first >= begin && pair.first < end) {
            EXPECT_TRUE(at >= sources.begin && at < sources.end) << begin << " to " << end;
          }
      }
  });
}

TEST(ProductAxes, GatherWhatTheWindowSays) {
  for_windows([](const Window& w) {
    problem::ConvPass pass;
    pass.axes = {Window{}, Window{}, w};
    pass.kind = problem::ConvPassKind::kForward;
    const auto forward = cuda::product_axes(pass);
    ASSERT_EQ(forward.size(), 1U);
    EXPECT_EQ(reads_of(forward.front()[2]), forward_reads(w));
    pass.kind = problem::ConvPassKind::kGradInput;
    Reads all;
    int64_t results = 0;
    for (const auto& axes : cuda::product_axes(pass)) {
      all.merge(reads_of(axes[2]));
      results += axes[2].results;
      EXPECT_EQ(cuda::has_no_tap(axes), axes[2].taps == 0);
    }
    EXPECT_EQ(all, grad_input_reads(w));
    EXPECT_EQ(results, w.x);
  });
}

TEST(Boxes, HoldEveryPositionOnce) {
  for (const cpu::Positions& total : {cpu::Positions{1, 1, 1, 1}, {3, 2, 5, 7}, {2, 1, 14, 14}, {5, 4, 1, 9}})
    for (const int64_t wanted : {1, 4, 10, 33, 100, 1000}) {
      const cpu::BoxGrid grid = cpu::cut_into_boxes(total, wanted);
      std::set<cpu::Positions> seen;
      for (int64_t index = 0; index < grid.count(); ++index) {
        const cpu::BoxGrid::Box box = grid.at(index);
        EXPECT_GT(cpu::count_of(box.size), 0);
        for (size_t axis = 0; axis < 4; ++axis) EXPECT_LE(box.size[axis], grid.box[axis]);
        cpu::Positions p{};
        for (p[0] = 0; p[0] < box.size[0]; ++p[0])
          for (p[1] = 0; p[1] < box.size[1]; ++p[1])
            for (p[2] = 0; p[2] < box.size[2]; ++p[2])
              for (p[3] = 0; p[3] < box.size[3]; ++p[3]) {
                cpu::Positions at{};
                for (size_t axis = 0; axis < 4; ++axis) at[axis] = box.first[axis] + p[axis];
                EXPECT_TRUE(seen.insert(at).second);
              }
      }
      EXPECT_EQ(static_cast<int64_t>(seen.size()), cpu::count_of(total)) << to_string(grid);
    }
}

}  // namespace
}  // namespace retrograd::engines
