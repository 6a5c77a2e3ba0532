// SPDX-License-Identifier: Apache-2.0
// How the sums of a task of dense_gather.cpp become results.
#pragma once

#include "engines/cpu/dense/dense_blocking.h"
#include "engines/cpu/dense/dense_task.h"
#include "engines/engine.h"

namespace retrograd::engines::cpu {

class DenseResults {
 public:
  // Both must outlive this.
  DenseResults(const problem::ConvPass& pass, const DenseBlocking& cut);

  // Sums of a task, [phase][position][m_block], and what storing them takes.
  int64_t sum_floats() const { return static_cast<int64_t>(cut_.phases.size()) * phase_floats_; }
  int64_t phase_floats() const { return phase_floats_; }
  int64_t row_floats() const;

  void store(const Bindings& bindings, const DenseTask& task) const;

  // Whether sums become results where they were added up, and need no store(): channels lie side by side.
  // `cells`: sums over pairs of BF16, in vectors.
  bool are_direct(bool cells) const;
  // Where a task's results of a phase begin, and how they lie, and the sums.
  std::byte* results_of(const Bindings& bindings, const DenseTask& task, size_t phase) const;
  SumPlaces result_places(size_t phase) const;
  SumPlaces sum_places(const DenseTask& task) const;

 private:
  // A row of the result, for all channels of a task.
  struct Row {
    int64_t at, channels;
    const float* sums;
    int64_t sum_stride;  // from one position to the next
  };
  int64_t rows_together() const;
  void store_phases(const Bindings& bindings, const DenseTask& task, size_t first) const;
  void store_plain(const Bindings& bindings, const Row& row, int64_t count, float* scratch) const;
  void store_places(std::byte* base, const Row& row, int64_t step, int64_t count) const;
  void store_channels(std::byte* base, const float* rows, int64_t pitch, int64_t channels,
                      int64_t count) const;
  void store_phase_places(const Bindings& bindings, const DenseTask& task, const Row& row,
                          size_t first) const;
  void store_woven(const Bindings& bindings, const DenseTask& task, const Row& row, size_t first,
                   int64_t rows, int64_t row_step) const;

  const problem::ConvPass& pass_;
  const DenseBlocking& cut_;
  int64_t phase_floats_;
};

}  // namespace retrograd::engines::cpu
