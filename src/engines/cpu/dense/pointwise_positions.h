// SPDX-License-Identifier: Apache-2.0
// Positions of a gathering pass whose kernel has one tap: those of all images follow each other. Where they
// lie in the source and in the result, and how results are written there.
#pragma once

#include "engines/cpu/gather_sides.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// Whether the kernel has one tap that reads inside x from every position.
bool is_pointwise(const problem::Window& window);

class PointwisePositions {
 public:
  explicit PointwisePositions(const problem::ConvPass& pass);

  int64_t count() const { return count_; }
  // Floats before a position in channel 0 of the source, and positions from there on that lie strides[4]
  // apart.
  int64_t source_at(int64_t position) const;
  int64_t source_run(int64_t position) const { return source_run_ - position % source_run_; }
  // The same of the result; a result with idle places between its positions has none that lie side by side.
  int64_t result_at(int64_t position) const;
  int64_t result_run(int64_t position) const { return result_run_ - position % result_run_; }
  bool has_idle_places() const { return has_idle_places_; }
  // Writes `count` positions, at most result_run(position), of some channels, the first of which is at
  // `base`; values of a channel are `stride` floats from those of the next. A position owns the places up to
  // the next one along every axis, and writes zeros there. `stream`: past the caches, where that can be done.
  void store(std::byte* base, int64_t position, int64_t count, const float* values, int64_t stride,
             int64_t channels, bool stream) const;

 private:
  struct Place {
    int64_t n;
    std::array<int64_t, 3> at;
  };
  Place place_of(int64_t position) const;
  void store_spaced(std::byte* row, const float* values, int64_t count, int64_t length) const;

  problem::ConvPass pass_;
  std::array<int64_t, 3> step_{1, 1, 1};  // places of the result from one position to the next
  int64_t count_, source_run_, result_run_;
  bool has_idle_places_ = false;
};

}  // namespace retrograd::engines::cpu
