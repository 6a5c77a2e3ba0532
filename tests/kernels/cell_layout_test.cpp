// SPDX-License-Identifier: Apache-2.0
// Copies for tile registers against plain loops: every count around a vector, steps, odd beginnings, and
// numbers that tiles would not multiply exactly, at every place.
#include "kernels/cpu/dense/cell_layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/cpu/dense/cell_tiles.h"

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

TEST(CellLayoutTest, CopiesPlaces) {
  if (!has_tiles(CellType::kBf16)) GTEST_SKIP() << "this machine has no tiles of bf16 products";
  for (const int64_t step : {1, 2, 3})
    for (int64_t count = 0; count <= 70; ++count) {
      const std::vector<uint16_t> source = ramp(count == 0 ? 0 : (count - 1) * step + 1);
      std::vector<uint16_t> out(static_cast<size_t>(count) + 2, kMark);
      EXPECT_TRUE(copy_places(bytes_of(source), step, count, out.data() + 1, CellType::kBf16));
      EXPECT_EQ(out.front(), kMark);
      EXPECT_EQ(out.back(), kMark);
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(out[static_cast<size_t>(i) + 1], source[static_cast<size_t>(i * step)]) << step;
    }
}

TEST(CellLayoutTest, PairsPlaces) {
  if (!has_tiles(CellType::kBf16)) GTEST_SKIP() << "this machine has no tiles of bf16 products";
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

TEST(CellLayoutTest, FindsWhatTilesDoNotMultiplyExactly) {
  if (!has_tiles(CellType::kBf16)) GTEST_SKIP() << "this machine has no tiles of bf16 products";
  struct Numbers {
    CellType type;
    std::vector<uint16_t> safe, odd;
  };
  // BF16: 2^-50, zeros and the largest finite number are safe; the next smaller one, the smallest, infinity,
  // NaN are not. FP16: all that is finite is safe.
  const Numbers all[] = {
      {CellType::kBf16, {0x2680, 0, 0x8000, 0x7F7F, 0xFF7F}, {0x267F, 1, 0x8001, 0x7F80, 0xFF80, 0x7FC0}},
      {CellType::kF16, {1, 0x8001, 0x03FF, 0, 0x8000, 0x7BFF, 0xFBFF}, {0x7C00, 0xFC00, 0x7E00}}};
  for (const Numbers& numbers : all) {
    for (const uint16_t safe : numbers.safe) {
      std::vector<uint16_t> words(40, safe), out(40);
      EXPECT_TRUE(copy_places(bytes_of(words), 1, 40, out.data(), numbers.type)) << safe;
    }
    for (const uint16_t odd : numbers.odd)
      for (size_t at = 0; at < 40; ++at) {
        std::vector<uint16_t> words(40, 0x3C00), out(40);
        words[at] = odd;
        const auto copy = [&](int64_t step, int64_t count) {
          return copy_places(bytes_of(words), step, count, out.data(), numbers.type);
        };
        EXPECT_FALSE(copy(1, 40)) << odd << " at " << at;
        EXPECT_EQ(copy(2, 20), at % 2 != 0);
        EXPECT_EQ(copy(3, 13), at % 3 != 0 || at == 39);
        std::vector<float> cells(40);
        EXPECT_FALSE(pair_places({bytes_of(words), 8, 1, 6, 8, cells.data(), 8, numbers.type}))
            << odd << " at " << at;
      }
  }
}

}  // namespace
}  // namespace retrograd::kernels::cpu
