// SPDX-License-Identifier: Apache-2.0
// Folds hold every place of x once, and gather through every tap what the window says.
#include "engines/cpu/axis_folds.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

namespace retrograd::engines::cpu {
namespace {

using problem::Window;

// (place, tap) → the output that is read.
std::map<std::pair<int64_t, int64_t>, int64_t> gathered(const std::vector<AxisFold>& folds, const Window& w) {
  std::map<std::pair<int64_t, int64_t>, int64_t> pairs;
  std::set<int64_t> places;
  for (const AxisFold& fold : folds)
    for (size_t r = 0; r < fold.residues.size(); ++r) {
      const FoldedResidue& residue = fold.residues[r];
      EXPECT_GE(residue.positions.begin, 0);
      EXPECT_LE(residue.positions.end, fold.count);
      for (int64_t j = residue.positions.begin; j < residue.positions.end; ++j) {
        const int64_t place = residue.first + j * fold.step;
        EXPECT_TRUE(place >= 0 && place < w.x);
        EXPECT_TRUE(places.insert(place).second) << "place " << place << " twice";
        for (size_t i = 0; i < fold.offsets.size(); ++i) {
          const int64_t output = j * fold.source_step + fold.offsets[i];
          EXPECT_GE(fold.offsets[i], fold.lowest_offset());
          EXPECT_LE(fold.offsets[i], fold.highest_offset());
          if (output < 0 || output >= fold.source_size) {
            EXPECT_TRUE(fold.leaves_source());
            continue;
          }
          const int64_t tap = fold.taps[r * fold.offsets.size() + i];
          if (tap != kNoTap) pairs[{place, tap}] = output;
        }
      }
    }
  EXPECT_EQ(static_cast<int64_t>(places.size()), w.x);
  return pairs;
}

TEST(AxisFolds, GradInputReadsWhatTheWindowSays) {
  for (int64_t x = 1; x <= 13; ++x)
    for (int64_t kernel = 1; kernel <= 5; ++kernel)
      for (int64_t stride = 1; stride <= 5; ++stride)
        for (int64_t dilation = 1; dilation <= 3; ++dilation)
          for (int64_t pad = -2; pad <= 4; ++pad) {
            const auto y = problem::output_size({x, kernel, stride, dilation, pad, 1});
            if (!y || *y < 1) continue;
            const Window w{x, *y, kernel, stride, dilation, pad};
            std::map<std::pair<int64_t, int64_t>, int64_t> want;
            for (int64_t place = 0; place < x; ++place)
              for (int64_t tap = 0; tap < kernel; ++tap)
                if (const auto output = output_reading(w, place, tap)) want[{place, tap}] = *output;
            EXPECT_EQ(gathered(grad_input_folds(w), w), want)
                << "x " << x << " kernel " << kernel << " stride " << stride << " dilation " << dilation
                << " pad " << pad;
          }
}

TEST(AxisFolds, PairsReadWhatTheirNeighboursRead) {
  for (int64_t x = 1; x <= 9; ++x)
    for (int64_t kernel = 1; kernel <= 5; ++kernel)
      for (int64_t dilation = 1; dilation <= 2; ++dilation)
        for (int64_t pad = 0; pad <= 4; ++pad) {
          const auto y = problem::output_size({x, kernel, 1, dilation, pad, 1});
          if (!y || *y < 1) continue;
          const Window w{x, *y, kernel, 1, dilation, pad};
          const auto folds = grad_input_folds(w);
          ASSERT_EQ(folds.size(), 1U);
          EXPECT_EQ(gathered({in_pairs(folds.front())}, w), gathered(folds, w))
              << "x " << x << " kernel " << kernel << " dilation " << dilation << " pad " << pad;
        }
}

TEST(AxisFolds, ResiduesAreFoldedWhereEachHasATapForEveryOffset) {
  EXPECT_EQ(grad_input_folds({224, 14, 16, 16, 1, 0}).size(), 1U);  // a patch embedding
  EXPECT_EQ(grad_input_folds({16000, 3199, 10, 5, 1, 0}).size(), 1U);
  EXPECT_EQ(grad_input_folds({64, 32, 4, 2, 1, 1}).size(), 1U);  // padding that is no multiple of the stride
  EXPECT_EQ(grad_input_folds({224, 112, 7, 2, 1, 3}).size(), 2U);  // a stem
  EXPECT_EQ(grad_input_folds({9, 9, 3, 1, 1, 1}).size(), 1U);
}

}  // namespace
}  // namespace retrograd::engines::cpu
