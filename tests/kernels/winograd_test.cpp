// SPDX-License-Identifier: Apache-2.0
// The transforms against direct correlations of the same tiles in double.
#include "kernels/cpu/winograd/winograd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/cpu/vector_shape.h"

namespace retrograd::kernels::cpu {
namespace {

// What is asked for lies between guards; vectors want aligned memory.
class Floats {
 public:
  explicit Floats(int64_t count) : storage_(static_cast<size_t>(count) + 64, kGuard), count_(count) {}
  float* data() {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    return storage_.data() + (64 - address % 64) % 64 / sizeof(float);
  }
  float& operator[](int64_t i) { return data()[i]; }
  void fill(std::mt19937& random) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < count_; ++i) data()[i] = normal(random);
  }
  static constexpr float kGuard = 12345;

 private:
  std::vector<float> storage_;
  int64_t count_;
};

// An error of FP32 may grow by the 1-norms of the transforms' rows, which are below 12 for a tile.
double bound(double magnitude) { return std::ldexp(12 * 12, -24) * magnitude; }

class WinogradTest : public testing::TestWithParam<int64_t> {
 protected:
  const int64_t tiles_ = GetParam(), lanes_ = vector_shape().winograd_lanes();
  std::mt19937 random_{static_cast<uint32_t>(GetParam())};

  // [6 rows][4·tiles + 2][lane] to [36][tile][lane]
  Floats data_of(Floats& strip) const {
    Floats out(36 * tiles_ * lanes_);
    const int64_t row = (4 * tiles_ + 2) * lanes_, point = tiles_ * lanes_;
    winograd_data({strip.data(), row, lanes_, 4 * lanes_, out.data(), 6 * point, point, lanes_, tiles_});
    return out;
  }
};

TEST_P(WinogradTest, ResultIsTheCorrelationOfDataAndKernel) {
  const int64_t columns = 4 * tiles_ + 2, point = tiles_ * lanes_;
  Floats strip(6 * columns * lanes_), taps(9 * lanes_), kernel(36 * lanes_);
  strip.fill(random_);
  taps.fill(random_);
  winograd_kernel({taps.data(), 3 * lanes_, lanes_, 0, kernel.data(), 6 * lanes_, lanes_, 0, 1});
  for (int64_t last = 1; last <= 4; ++last) {
    Floats products = data_of(strip);
    for (int64_t p = 0; p < 36; ++p)
      for (int64_t i = 0; i < point; ++i) products[p * point + i] *= kernel[p * lanes_ + i % lanes_];
    const int64_t width = 4 * (tiles_ - 1) + last;
    Floats out(4 * width * lanes_ + 1);
    winograd_result(
        {products.data(), 6 * point, point, lanes_, out.data(), width * lanes_, lanes_, 4 * lanes_, tiles_},
        last);
    for (int64_t y = 0; y < 4; ++y)
      for (int64_t x = 0; x < width; ++x)
        for (int64_t lane = 0; lane < lanes_; ++lane) {
          double exact = 0, magnitude = 0;
          for (int64_t t = 0; t < 9; ++t) {
            const double term = static_cast<double>(taps[t * lanes_ + lane]) *
                                strip[((y + t / 3) * columns + x + t % 3) * lanes_ + lane];
            exact += term;
            magnitude += std::abs(term);
          }
          ASSERT_NEAR(out[(y * width + x) * lanes_ + lane], exact, bound(magnitude + 1))
              << "row " << y << ", column " << x << ", lane " << lane;
        }
    EXPECT_EQ(out[4 * width * lanes_], Floats::kGuard);
  }
}

TEST_P(WinogradTest, GradientIsTheSumOverTilesOfDataAndWindow) {
  const int64_t columns = 4 * tiles_ + 2, point = tiles_ * lanes_;
  Floats strip(6 * columns * lanes_), y(4 * 4 * tiles_ * lanes_), window(36 * point), sums(36 * lanes_),
      out(9 * lanes_ + 1);
  strip.fill(random_);
  y.fill(random_);
  Floats data = data_of(strip);
  winograd_window(
      {y.data(), 4 * tiles_ * lanes_, lanes_, 4 * lanes_, window.data(), 6 * point, point, lanes_, tiles_});
  for (int64_t p = 0; p < 36; ++p)
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      sums[p * lanes_ + lane] = 0;
      for (int64_t t = 0; t < tiles_; ++t)
        sums[p * lanes_ + lane] +=
            data[p * point + t * lanes_ + lane] * window[p * point + t * lanes_ + lane];
    }
  winograd_gradient({sums.data(), 6 * lanes_, lanes_, 0, out.data(), 3 * lanes_, lanes_, 0, 1});
  for (int64_t t = 0; t < 9; ++t)
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      double exact = 0, magnitude = 0;
      for (int64_t i = 0; i < 4; ++i)
        for (int64_t j = 0; j < 4 * tiles_; ++j) {
          const double term = static_cast<double>(y[(i * 4 * tiles_ + j) * lanes_ + lane]) *
                              strip[((i + t / 3) * columns + j + t % 3) * lanes_ + lane];
          exact += term;
          magnitude += std::abs(term);
        }
      ASSERT_NEAR(out[t * lanes_ + lane], exact, bound(magnitude + 1)) << "tap " << t << ", lane " << lane;
    }
  EXPECT_EQ(out[9 * lanes_], Floats::kGuard);
}

// Around the number of tiles that `data` works on at once.
INSTANTIATE_TEST_SUITE_P(Tiles, WinogradTest, testing::Values(1, 2, 7, 8, 9, 17));

}  // namespace
}  // namespace retrograd::kernels::cpu
