// SPDX-License-Identifier: Apache-2.0
// Copies for tile registers against plain loops: every count around a vector, steps, odd beginnings, and
// numbers that tiles would not multiply exactly, at every place.
#include "kernels/cpu/dense/bf16_layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/cpu/dense/bf16_tiles.h"

namespace retrograd::kernels::cpu {
namespace {

constexpr uint16_t kOne = 0x3F80, kMark = 0x4444;

const std::byte* bytes_of(const std::vector<uint16_t>& words) {
  return reinterpret_cast<const std::byte*>(words.data());
}

std::vector<uint16_t> ramp(int64_t count) {
  std::vector<uint16_t> words;
  for (int64_t i = 0; i < count; ++i) words.push_back(static_cast<uint16_t>(kOne + i % 4096));
  return words;
}

TEST(Bf16LayoutTest, CopiesPlaces) {
  if (!has_bf16_tiles()) GTEST_SKIP() << "this machine has no tiles of bf16 products";
  for (const int64_t step : {1, 2, 3})
    for (int64_t count = 0; count <= 70; ++count) {
      const std::vector<uint16_t> source = ramp(count == 0 ? 0 : (count - 1) * step + 1);
      std::vector<uint16_t> out(static_cast<size_t>(count) + 2, kMark);
      EXPECT_TRUE(copy_places(bytes_of(source), step, count, out.data() + 1));
      EXPECT_EQ(out.front(), kMark);
      EXPECT_EQ(out.back(), kMark);
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(out[static_cast<size_t>(i) + 1], source[static_cast<size_t>(i * step)]) << step;
    }
}

TEST(Bf16LayoutTest, PairsPlaces) {
  if (!has_bf16_tiles()) GTEST_SKIP() << "this machine has no tiles of bf16 products";
  constexpr int64_t kStep = 45, kPitch = 48;
  for (const int64_t channels : {1, 8, 15, 16, 17, 32, 40})
    for (const int64_t begin : {0, 1, 2})
      for (int64_t end = begin; end < begin + 6; ++end) {
        const std::vector<uint16_t> source = ramp((end - begin) * kStep);
        std::vector<float> out(5 * kPitch);
        std::vector<uint16_t> expected(out.size() * 2, kMark);
        std::memcpy(out.data(), expected.data(), out.size() * sizeof(float));
        EXPECT_TRUE(pair_places({bytes_of(source), kStep, begin, end, channels, out.data(), kPitch}));
        for (int64_t p = begin / 2 * 2; p < (end + 1) / 2 * 2 && begin < end; ++p)
          for (int64_t c = 0; c < channels; ++c) {
            const bool inside = p >= begin && p < end;
            expected[static_cast<size_t>((p / 2 * kPitch + c) * 2 + p % 2)] =
                inside ? source[static_cast<size_t>((p - begin) * kStep + c)] : uint16_t{0};
          }
        ASSERT_EQ(std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)), 0)
            << channels << " channels, " << begin << " to " << end;
      }
}

TEST(Bf16LayoutTest, FindsWhatTilesDoNotMultiplyExactly) {
  if (!has_bf16_tiles()) GTEST_SKIP() << "this machine has no tiles of bf16 products";
  // 2^-50, zeros and the largest finite number are safe; the next smaller one, the smallest, infinity, NaN
  // are not.
  for (const uint16_t safe :
       {uint16_t{0x2680}, uint16_t{0}, uint16_t{0x8000}, uint16_t{0x7F7F}, uint16_t{0xFF7F}}) {
    std::vector<uint16_t> words(40, safe), out(40);
    EXPECT_TRUE(copy_places(bytes_of(words), 1, 40, out.data())) << safe;
  }
  for (const uint16_t odd : {uint16_t{0x267F}, uint16_t{1}, uint16_t{0x8001}, uint16_t{0x7F80},
                             uint16_t{0xFF80}, uint16_t{0x7FC0}})
    for (size_t at = 0; at < 40; ++at) {
      std::vector<uint16_t> words(40, kOne), out(40);
      words[at] = odd;
      EXPECT_FALSE(copy_places(bytes_of(words), 1, 40, out.data())) << odd << " at " << at;
      EXPECT_EQ(copy_places(bytes_of(words), 2, 20, out.data()), at % 2 != 0);
      EXPECT_EQ(copy_places(bytes_of(words), 3, 13, out.data()), at % 3 != 0 || at == 39);
      std::vector<float> cells(40);
      EXPECT_FALSE(pair_places({bytes_of(words), 8, 1, 6, 8, cells.data(), 8})) << odd << " at " << at;
    }
}

}  // namespace
}  // namespace retrograd::kernels::cpu
