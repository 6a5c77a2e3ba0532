// SPDX-License-Identifier: Apache-2.0
// A task of dense_gather.cpp while it runs, and where it reads its source.
#pragma once

#include <array>
#include <cstdint>

#include "engines/cpu/boxes.h"

namespace retrograd::engines::cpu {

struct DenseTask {
  int64_t group, m_first, m_count;  // channels within the group
  BoxGrid::Box box;
  std::array<int64_t, 3> start;  // place of the strip in the source
  float *begins, *sums, *strip, *turned, *row, *block, *pack;
  const float* bias = nullptr;  // of the task's channels and zeros behind them; null: none is added
  bool sound = true;            // no number was too small for its cell
  bool masked = false;  // a weight is not finite: no tile may multiply it by the zeros around the source
};

// Where a task's sums, or its results, lie: elements from one image and place to the next.
struct SumPlaces {
  int64_t image;
  std::array<int64_t, 3> axis;
};

// Where a source value lies: floats from one image, channel and place to the next.
struct DenseSource {
  const float* first;
  int64_t image, channel;
  std::array<int64_t, 3> axis;
};

}  // namespace retrograd::engines::cpu
