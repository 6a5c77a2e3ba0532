// SPDX-License-Identifier: Apache-2.0
// Depthwise kernels with planes or channels as lanes against plain loops: lanes side by side and with gaps
// between places, every number of taps, dead taps at both ends, steps and dilation.
#include "kernels/cpu/depthwise/depthwise_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "kernels/cpu/depthwise/depthwise_dots.h"
#include "kernels/cpu/depthwise/depthwise_lanes.h"
#include "kernels/cpu/layout/row_convert.h"
#include "kernels/cpu/vector_shape.h"

namespace retrograd::kernels::cpu {
namespace {

constexpr float kUntouched = -77;

// Aligned memory of small integers: every sum is exact.
class Integers {
 public:
  Integers(std::mt19937& random, int64_t count) : memory_(static_cast<size_t>(count) + 16) {
    for (float& v : memory_) v = static_cast<float>(static_cast<int>(random() % 7) - 3);
    at_ = memory_.data();
    while (reinterpret_cast<uintptr_t>(at_) % 64 != 0) ++at_;
  }
  float* data() { return at_; }
  float operator[](int64_t i) const { return at_[i]; }

 private:
  std::vector<float> memory_;
  float* at_;
};

constexpr std::array kReadInPlace{DType::kF32, DType::kBF16, DType::kF16};
std::vector<std::byte> codes_of(DType type, const float* values, int64_t count) {
  std::vector<std::byte> codes(static_cast<size_t>(count) * size_of(type));
  encode_row(type, values, count, codes.data());
  return codes;
}

int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

// Positions of a row and the taps that gather along it.
struct Line {
  int64_t positions, places, step, dilation, start, taps, place_floats;

  int64_t offset(int64_t tap) const { return start + tap * dilation; }
  int64_t begin(int64_t tap) const { return std::clamp<int64_t>(ceil_div(-offset(tap), step), 0, positions); }
  int64_t end(int64_t tap) const {
    return std::clamp(ceil_div(places - offset(tap), step), begin(tap), positions);
  }
};

Line random_line(std::mt19937& random, int64_t taps) {
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
  };
  Line line{.positions = pick(1, 40),
            .places = pick(1, 40),
            .step = pick(0, 2) == 0 ? 2 : 1,
            .dilation = pick(1, 3),
            .start = pick(-taps, 1),
            .taps = taps,
            .place_floats = vector_shape().plane_lanes() + (pick(0, 1) == 0 ? 0 : pick(1, 9))};
  return line;
}

class DepthwiseRowsTest : public testing::TestWithParam<int> {};

TEST_P(DepthwiseRowsTest, Gathers) {
  std::mt19937 random(static_cast<uint32_t>(GetParam()));
  const int64_t lanes = vector_shape().plane_lanes(), taps = GetParam();
  for (int round = 0; round < 100 && !HasFatalFailure(); ++round) {
    Line line = random_line(random, taps);
    const DType type = kReadInPlace[static_cast<size_t>(round / 2 % 3)];
    // One block, two that may overlap, or even and odd channels.
    const bool pair = type == DType::kBF16 && round % 4 < 2 && lanes > 1;
    const int64_t last_block = pair ? lanes : round % 2 * (1 + round % lanes);
    if (last_block > 0) line.place_floats += last_block;
    const int64_t rows = 1 + round % 3, row_floats = line.places * line.place_floats;
    Integers source(random, rows * row_floats + lanes), weights(random, 2 * rows * taps * lanes);
    const int64_t out_place = line.place_floats + 2, out_step = 1 + round % 2;
    std::vector<float> out(static_cast<size_t>((line.positions * out_step + 1) * out_place), kUntouched);
    const auto bytes = static_cast<int64_t>(size_of(type));
    const std::vector<std::byte> source_codes = codes_of(type, source.data(), rows * row_floats + lanes);
    std::vector<std::byte> codes = codes_of(type, out.data(), static_cast<int64_t>(out.size()));
    std::vector<const std::byte*> sources;
    std::vector<const float*> row_weights;
    for (int64_t r = 0; r < rows; ++r) {
      sources.push_back(source_codes.data() + r * row_floats * bytes);
      row_weights.push_back(weights.data() + r * taps * lanes);
    }
    std::vector<DepthwiseTap> list;
    DepthwiseRow row;
    row.full_end = line.positions;
    for (int64_t t = 0; t < taps; ++t) {
      list.push_back({line.offset(t), line.begin(t), line.end(t)});
      row.full_begin = std::max(row.full_begin, line.begin(t));
      row.full_end = std::min(row.full_end, line.end(t));
    }
    row.type = type;
    row.sources = sources.data();
    row.weights = row_weights.data();
    row.rows = rows;
    row.blocks = last_block > 0 ? 2 : 1;
    row.last_block = last_block;
    row.pairs = pair ? 1 : 0;
    row.block_weights = rows * taps * lanes;
    row.source_place = line.place_floats;
    row.source_step = line.step;
    row.source_size = line.places;
    row.taps = list.data();
    row.tap_count = taps;
    row.count = line.positions;
    row.out = codes.data();
    row.out_step = out_step;
    row.out_place = out_place;
    Integers start(random, 2 * lanes);
    if (round % 3 == 0) row.start = start.data();
    depthwise_row(row);
    decode_row(type, codes.data(), static_cast<int64_t>(out.size()), out.data());
    for (int64_t at = 0; at < static_cast<int64_t>(out.size()); ++at) {
      const int64_t place = at / out_place, j = place / out_step, l = at % out_place;
      float expected = kUntouched;
      if (place % out_step == 0 && j < line.positions && l < last_block + lanes) {
        // Where blocks overlap, the last one has written.
        const bool second = last_block > 0 && l >= last_block;
        const int64_t block = pair ? l % 2 : second ? 1 : 0;
        const int64_t in_block = pair ? l / 2 : second ? l - last_block : l;
        const int64_t lane = block * row.block_weights + in_block;
        expected = row.start != nullptr ? start[block * lanes + in_block] : 0;
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t t = 0; t < taps; ++t)
            if (j >= line.begin(t) && j < line.end(t))
              expected += weights[lane + (r * taps + t) * lanes] *
                          source[r * row_floats + (j * line.step + line.offset(t)) * line.place_floats + l];
      }
      ASSERT_EQ(out[static_cast<size_t>(at)], expected) << "place " << place << " lane " << l;
    }
  }
}

TEST_P(DepthwiseRowsTest, Dots) {
  std::mt19937 random(static_cast<uint32_t>(100 + GetParam()));
  const int64_t lanes = vector_shape().plane_lanes(), taps = GetParam();
  for (int round = 0; round < 100 && !HasFatalFailure(); ++round) {
    Line line = random_line(random, taps);
    const int64_t last_block = round % 2 * (1 + round % lanes), blocks = last_block > 0 ? 2 : 1;
    line.place_floats += last_block;
    const int64_t rows = 1 + round % 3, tap_rows = 1 + round % depthwise_tap_rows(taps);
    const int64_t row_floats = line.places * line.place_floats, y_place = line.place_floats + 1;
    Integers x(random, (rows + tap_rows) * row_floats + lanes);
    Integers y(random, rows * line.positions * y_place + lanes);
    Integers sums(random, blocks * tap_rows * taps * lanes);
    std::vector<int64_t> begin, end;
    for (int64_t t = 0; t < taps; ++t) {
      begin.push_back(line.begin(t));
      end.push_back(line.end(t));
    }
    std::vector<float> first;
    for (int64_t i = 0; i < blocks * tap_rows * taps * lanes; ++i) first.push_back(sums[i]);
    const DType type = kReadInPlace[static_cast<size_t>(round / 2 % 3)];
    const std::vector<std::byte> x_codes = codes_of(type, x.data(), (rows + tap_rows) * row_floats + lanes);
    const std::vector<std::byte> y_codes = codes_of(type, y.data(), rows * line.positions * y_place + lanes);
    DepthwiseDots dots;
    dots.type = type;
    dots.x = x_codes.data();
    dots.x_place = line.place_floats;
    dots.x_row = dots.x_tap_row = row_floats;
    dots.y = y_codes.data();
    dots.y_place = y_place;
    dots.y_row = line.positions * y_place;
    dots.rows = rows;
    dots.tap_rows = tap_rows;
    dots.taps = taps;
    dots.begin = begin.data();
    dots.end = end.data();
    dots.count = line.positions;
    dots.start = line.start;
    dots.step = line.step;
    dots.dilation = line.dilation;
    dots.sums = sums.data();
    dots.blocks = blocks;
    dots.last_block = last_block;
    dots.block_sums = tap_rows * taps * lanes;
    depthwise_dots(dots);
    for (int64_t r = 0; r < tap_rows; ++r)
      for (int64_t t = 0; t < taps; ++t)
        for (int64_t i = 0; i < blocks * lanes; ++i) {
          const int64_t l = i < lanes ? i : last_block + i - lanes;
          const int64_t sum = i / lanes * dots.block_sums + (r * taps + t) * lanes + i % lanes;
          float expected = first[static_cast<size_t>(sum)];
          for (int64_t h = 0; h < rows; ++h)
            for (int64_t j = line.begin(t); j < line.end(t); ++j)
              expected += y[(h * line.positions + j) * y_place + l] *
                          x[(h + r) * row_floats + (j * line.step + line.offset(t)) * line.place_floats + l];
          ASSERT_EQ(sums[sum], expected) << "row " << r << " tap " << t;
        }
  }
}
INSTANTIATE_TEST_SUITE_P(Taps, DepthwiseRowsTest, testing::Values(1, 2, 3, 4, 5, 7, 9, 14, 15, 31));

}  // namespace
}  // namespace retrograd::kernels::cpu
