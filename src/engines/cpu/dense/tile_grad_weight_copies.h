// SPDX-License-Identifier: Apache-2.0
// The copies of a box that tile registers multiply in tile_grad_weight.cpp: of x [phase][channel][pixel], or
// [folded tap][channel][pixel], and of y [panel][pair of pixels][lane], in the operands' type.
#pragma once

#include <cstdint>

#include "engines/cpu/dense/tile_grad_weight_cut.h"
#include "engines/engine.h"

namespace retrograd::engines::cpu {

// A block of the result, and scratch to compute it with.
struct TileGradWeightTask {
  int64_t group = 0, row_first = 0, row_count = 0, lane_first = 0, lane_count = 0;
  uint16_t *x = nullptr, *folded = nullptr;
  float *y = nullptr, *turned = nullptr;
  float* sums = nullptr;  // of its own, where no other split adds to them
  bool sound = true;      // all numbers were such as tiles multiply exactly

  int64_t width_at(int64_t lane) const {  // of the panel that begins with this one
    return lane_count - lane <= TileGradWeightCut::kLanes / 2 ? TileGradWeightCut::kLanes / 2
                                                              : TileGradWeightCut::kLanes;
  }
};

class TileGradWeightCopies {
 public:
  explicit TileGradWeightCopies(const TileGradWeightCut& cut);

  size_t bytes() const { return x_bytes_ + folded_bytes_ + y_bytes_ + turned_bytes_; }
  void set_scratch(std::byte* scratch, TileGradWeightTask& task) const;

  void copy_x(const Bindings& bindings, TileGradWeightTask& task, const BoxGrid::Box& box,
              const TileSpace& space) const;
  void copy_y(const Bindings& bindings, TileGradWeightTask& task, const BoxGrid::Box& box,
              const TileSpace& space) const;

 private:
  // Places of a tensor that a copy holds: along each axis [begin, end) of it, place `begin` at `first` and
  // `step` places of the tensor from one to the next.
  struct Part {
    const problem::PassTensor& tensor;
    const std::byte* base;  // of the first image and channel
    int64_t images;
    std::array<problem::Range, 3> live;
    std::array<int64_t, 3> first, step;
  };
  template <class Row>
  static void for_each_row(const Part& part, const TileSpace& space, const Row& row);
  static bool copy_channels(const Part& part, int64_t channels, const TileSpace& space, int64_t pitch,
                            uint16_t* out);
  static bool pair_channels(const Part& part, int64_t channels, const TileSpace& space, int64_t numbers,
                            int64_t pitch, float* out);
  static void turn_channels(Part part, TileGradWeightTask& task, const TileSpace& space, uint16_t* out);
  void fold(const TileGradWeightTask& task, const TileSpace& space) const;

  const TileGradWeightCut& cut_;
  size_t x_bytes_, folded_bytes_, y_bytes_, turned_bytes_;
};

}  // namespace retrograd::engines::cpu
