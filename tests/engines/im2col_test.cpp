// SPDX-License-Identifier: Apache-2.0
// What cpu.im2col and cpu.live_taps take, what they leave to others, and the copies they make. Their results
// are those of every candidate's tests.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "engines/cpu/implementations.h"
#include "engines/cpu/strided_copy.h"
#include "problem/problem.h"
#include "problem/problem_text.h"

namespace retrograd::engines::cpu {
namespace {

problem::Pass pass_of(const char* text) {
  auto request = problem::parse_request(text);
  EXPECT_TRUE(request.is_ok()) << request.status().message();
  auto problem = problem::judge(request.value());
  EXPECT_TRUE(problem.is_ok()) << problem.status().message();
  return problem.value().passes.front();
}

Support answer(const char* text) { return im2col().supports(pass_of(text), *named_machine("zen4")); }

TEST(Im2colTest, TakesWindowsInsideX) {
  for (const char* text : {
           "conv input=2x3x32x32 weight=64x3x16x16 stride=16x16 mask=i",  // patches
           "conv input=2x3x32x32 weight=64x3x16x16 stride=16x16 mask=w",
           "conv input=2x8x9x9 weight=16x8x1x1 stride=2x2 mask=i",  // one tap, with places between
           "conv input=2x8x9x9 weight=16x8x3x3 stride=1x1 mask=w",  // windows overlap: x' is larger
           "conv input=1x2x32x32x32 weight=24x2x16x16x16 stride=16x16x16 mask=i",
           "conv input=2x8x5 weight=8x4x2 stride=2 transposed=1 mask=i",  // a forward pass
           "conv input=2x3x9x9@243x1x27x3 weight=4x3x3x3@27x1x9x3 stride=3x3 mask=i",
       })
    EXPECT_TRUE(answer(text).accepted()) << text << ": " << answer(text).reason();
}

TEST(Im2colTest, DeclinesTheRest) {
  EXPECT_EQ(answer("conv input=2x8x9x9 weight=16x8x1x1 mask=i").reason(),
            "one tap at every place: nothing to unfold");
  EXPECT_EQ(answer("conv input=2x8x9x9 weight=16x8x3x3 stride=2x2 mask=i").reason(), "windows overlap");
  EXPECT_EQ(answer("conv input=2x8x9x9 weight=16x8x3x3 stride=3x3 padding=1x1 mask=i").reason(),
            "a window reaches beyond x");
  EXPECT_EQ(answer("conv input=2x8x9x9 weight=8x1x3x3 stride=3x3 groups=8 mask=i").reason(),
            "one channel a group");
  EXPECT_EQ(answer("conv input=2x8x9x9 weight=16x8x3x3@72x9x1x3 stride=3x3 mask=i").accepted(), true);
  EXPECT_EQ(answer("conv input=2x8x9x9 weight=16x8x3x3@80x10x3x1 stride=3x3 mask=i").reason(),
            "x channels and taps of the weight do not follow each other in memory");
  EXPECT_EQ(answer("conv input=1x64x512x512 weight=8x64x5x5 mask=w").reason(),
            "x' would be larger than the largest operand and 4 MB");
}

TEST(Im2colTest, LeavesAConvolutionOfOneTap) {
  const Machine machine = *named_machine("zen4");
  const auto rest =
      im2col().rest(pass_of("conv input=2x6x32x48 weight=8x3x8x16 stride=8x16 groups=2 mask=i"), machine);
  ASSERT_TRUE(rest.has_value());
  const auto& pass = std::get<problem::ConvPass>(rest->pass);
  EXPECT_EQ(pass.x_channels, 6 * 8 * 16);
  EXPECT_EQ(pass.axes[1].x, 4);
  EXPECT_EQ(pass.axes[2].x, 3);
  EXPECT_EQ(pass.axes[2].kernel, 1);
  EXPECT_EQ(pass.x.strides[1], 1);  // taps of a row lie side by side
  EXPECT_TRUE(rest->candidate->supports(rest->pass, machine).accepted());
}

TEST(LiveTapsTest, LeavesOutWhatNeverMeetsX) {
  const Machine machine = *named_machine("zen4");
  const auto rest =
      live_taps().rest(pass_of("conv input=1x8x2x5 weight=8x8x7x3 padding=3x1 mask=i"), machine);
  ASSERT_TRUE(rest.has_value());
  const auto& pass = std::get<problem::ConvPass>(rest->pass);
  EXPECT_EQ(pass.axes[1].kernel, 3);  // taps 2, 3 and 4 of 7
  EXPECT_EQ(pass.axes[1].pad_lo, 1);
  EXPECT_EQ(pass.axes[2].kernel, 3);
  EXPECT_EQ(pass.axes[2].pad_lo, 1);
  EXPECT_FALSE(live_taps().supports(rest->pass, machine).accepted());
}

TEST(LiveTapsTest, DeclinesTheRest) {
  const Machine machine = *named_machine("zen4");
  const auto reason = [&](const char* text) { return live_taps().supports(pass_of(text), machine).reason(); };
  EXPECT_EQ(reason("conv input=1x8x7x7 weight=8x8x3x3 padding=1x1 mask=i"),
            "the first and the last tap meet x");
  EXPECT_EQ(reason("conv input=1x8x1 weight=8x8x2 padding=2 dilation=3 mask=i"), "no tap meets x");
}

// Any order and any gaps on both sides, against one element at a time.
TEST(StridedCopyTest, AgreesWithElements) {
  std::mt19937 random(5);
  const auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const size_t bytes = size_t{1} << draw(0, 2);
    std::vector<CopyAxis> axes(static_cast<size_t>(draw(0, 6)));
    for (CopyAxis& axis : axes) axis.size = draw(1, 5);
    // Strides of each side: a random order of the axes, some with gaps.
    int64_t spans[2];
    for (int side = 0; side < 2; ++side) {
      std::vector<size_t> order(axes.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = i;
      if (draw(0, 1) == 1) std::shuffle(order.begin(), order.end(), random);
      int64_t step = 1;
      for (const size_t i : order) {
        (side == 0 ? axes[i].from : axes[i].to) = step;
        step = step * axes[i].size + (draw(0, 3) == 0 ? draw(0, 3) : 0);
      }
      spans[side] = step + 8;
    }
    std::vector<std::byte> from(static_cast<size_t>(spans[0]) * bytes),
        to(static_cast<size_t>(spans[1]) * bytes);
    for (std::byte& byte : from) byte = static_cast<std::byte>(draw(1, 255));
    for (std::byte& byte : to) byte = static_cast<std::byte>(draw(1, 255));
    std::vector<std::byte> copied = to, cleared = to;

    const StridedCopy copy(axes, bytes);
    const int64_t half = copy.rows() / 2;
    copy.copy(from.data(), copied.data(), half, copy.rows());
    copy.copy(from.data(), copied.data(), 0, half);
    copy.clear(cleared.data(), 0, copy.rows());

    std::vector<std::byte> right = to, zeros = to;
    int64_t count = 1;
    for (const CopyAxis& axis : axes) count *= axis.size;
    EXPECT_EQ(copy.rows() * copy.row_elements(), count);
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, source = 0, target = 0;
      for (const CopyAxis& axis : axes) {
        source += rest % axis.size * axis.from;
        target += rest % axis.size * axis.to;
        rest /= axis.size;
      }
      const auto at = static_cast<size_t>(target) * bytes;
      std::memcpy(right.data() + at, from.data() + static_cast<size_t>(source) * bytes, bytes);
      std::memset(zeros.data() + at, 0, bytes);
    }
    EXPECT_EQ(copied, right) << round;
    EXPECT_EQ(cleared, zeros) << round;
  }
}

}  // namespace
}  // namespace retrograd::engines::cpu
