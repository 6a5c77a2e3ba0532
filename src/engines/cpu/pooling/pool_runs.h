// SPDX-License-Identifier: Apache-2.0
// How the rows of a result lie in windows of average pooling: runs of rows that the kernel makes together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/pooling/row_pool.h"
#include "problem/window.h"

namespace retrograd::engines::cpu {

// Which runs may be made one: those that leave as whole rows only.
struct RunShapes {
  bool pairs, edges;
};

// A band of rows: its place in the two tensors, and the runs it is made of.
struct PoolBand {
  int64_t first_row = 0, rows = 0;
  int64_t first_window = 0, windows = 0;
  size_t first_run = 0, runs = 0;
};

// Rows `first` to `end` of the result; their runs are put behind `runs`.
PoolBand list_band(const problem::PoolWindow& axis, int64_t first, int64_t end, RunShapes shapes,
                   std::vector<kernels::cpu::PoolRun>& runs);

// Terms of small volumes (row_pool.h), for vectors of `width` lanes; empty where it would be longer than
// `most` terms.
struct PoolTermLists {
  PoolTermLists() = default;
  PoolTermLists(const std::array<problem::PoolWindow, 3>& axes, int64_t width, int64_t most);
  std::vector<int32_t> lanes, from, counts;
  int64_t volumes = 0;
};

}  // namespace retrograd::engines::cpu
