// SPDX-License-Identifier: Apache-2.0
// Drawn problems of average pooling, and elements that the code of GPU threads takes on the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// 16-bit integers stand for the 16-bit types, in units of 1/1024 so that quotients show.
struct Floats {
  using Type = float;
  static float load(float value) { return value; }
  static float store(float value) { return value; }
  static float add_product(float a, float b, float sum) { return std::fma(a, b, sum); }
  static float reciprocal(float value) { return 1 / value; }
};
struct Shorts {
  using Type = int16_t;
  static float load(int16_t value) { return static_cast<float>(value) / 1024; }
  static int16_t store(float value) { return static_cast<int16_t>(std::lround(value * 1024)); }
  static float add_product(float a, float b, float sum) { return std::fma(a, b, sum); }
  static float reciprocal(float value) { return 1 / value; }
};

struct Sizes {
  int64_t images, depth, height, width, channels;  // channels: innermost ones
  int64_t count() const { return images * depth * height * width * channels; }
};

struct alignas(16) Line {
  float values[4];
};

class PoolDraw {
 public:
  explicit PoolDraw(unsigned seed) : random(seed) {}
  int64_t operator()(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
  }
  Pool pool(int trial, int64_t most_windows) {
    PoolDraw& draw = *this;
    Pool pool{};
    pool.batch = draw(1, 3);
    pool.channels = draw(1, 5);
    const bool small = trial % 2 == 0;
    for (int i = 0; i < 3; ++i) {
      PoolAxis& a = pool.axes[i];
      a = {1, 1, 1, 1, 0};
      if (i == 0 && trial % 3 != 0) {
        a.x = a.y = draw(1, 2);
        continue;
      }
      a.x = i == 0 ? draw(1, 4) : draw(1, small ? 9 : 40);
      a.kernel = draw(1, i == 0 ? 3 : trial % 5 == 0 ? most_windows : 4);
      a.stride = draw(1, 5);
      draw.pad(a);
    }
    pool.count_include_pad = draw(0, 1) != 0;
    pool.divisor_override = draw(0, 3) == 0 ? draw(1, 9) : 0;
    pool.x.dtype = pool.y.dtype = draw(0, 1) != 0 ? DType::kF32 : DType::kF16;
    return pool;
  }
  // Windows of networks, for which kernels have code of their own.
  void common_windows(Pool& pool) {
    PoolDraw& draw = *this;
    constexpr int64_t kCommon[][2] = {{2, 2}, {3, 1}, {3, 2}, {3, 3}, {4, 2}, {4, 4}, {5, 1}, {7, 2}, {7, 7}};
    const auto& [kernel, stride] = kCommon[draw(0, 8)];
    for (int i = 1; i < 3; ++i) {
      PoolAxis& a = pool.axes[i];
      a.kernel = kernel;
      a.stride = stride;
      draw.pad(a);
    }
    if (draw(0, 3) == 0) pool.axes[1] = {pool.axes[1].x, pool.axes[1].x, 1, 1, 0};
  }
  std::mt19937 random;

 private:
  void pad(PoolAxis& a) {
    PoolDraw& draw = *this;
    a.pad = draw(0, a.kernel / 2);
    const int64_t room = std::max<int64_t>(a.x + 2 * a.pad - a.kernel, 0);
    a.y = room / a.stride + 1 + (room % a.stride != 0 ? draw(0, 1) : 0);  // ceil windows
  }
};

}  // namespace retrograd::kernels::cuda
