// SPDX-License-Identifier: Apache-2.0
// What the tiles of dense_grad_weight.cpp read: panels of the operand whose channels are lanes, and the other
// in place, or a copy of it.
#pragma once

#include "engines/cpu/dense/cells.h"
#include "engines/cpu/dense/grad_weight_blocking.h"
#include "engines/engine.h"

namespace retrograd::engines::cpu {

// A block of the result, and scratch to compute it with.
struct GradWeightTask {
  int64_t group, lane_first, lane_count, row_first, row_count;  // channels within the group
  int64_t lane_block;                                           // the first that it has
  int64_t width;                                                // of its tiles
  float *panel, *raw, *copy;
  float* sums;        // of its own, where no other split adds to them
  bool sound = true;  // no number was too small for its cell
};

// Where an operand's values lie: floats from one image, channel and place to the next.
struct GradWeightLayout {
  const float* first;
  int64_t image, channel;
  std::array<int64_t, 3> axis;
  std::array<int64_t, 3> start;  // place of `first`
};

class GradWeightOperands {
 public:
  // `cut` must outlive this.
  GradWeightOperands(const CellPass& cells, const GradWeightBlocking& cut);

  // Of a task's panel, of one image of it before it is turned over, and of its copy of the rows.
  size_t panel_bytes() const { return panel_bytes_; }
  size_t raw_bytes() const { return raw_bytes_; }
  size_t copy_bytes() const { return copy_bytes_; }

  // Panels [image][place][width] of what the box reads, or where it lies.
  GradWeightLayout pack_lanes(const Bindings& bindings, GradWeightTask& task, const BoxGrid::Box& box) const;
  GradWeightLayout find_rows(const Bindings& bindings, GradWeightTask& task, const BoxGrid::Box& box) const;

 private:
  // Places of an operand that a box reads.
  struct Part {
    int64_t first_image = 0, images = 0;
    std::array<int64_t, 3> start{}, size{};
    int64_t partner = 0;  // in the image that is read, where numbers have one
    int64_t plane() const { return size[0] * size[1] * size[2]; }
  };
  const problem::ConvPass& pass() const { return cells_.pass; }
  const problem::PassTensor& lanes() const { return cut_.lanes_are_x ? pass().x : pass().y; }
  const problem::PassTensor& rows() const { return cut_.lanes_are_x ? pass().y : pass().x; }
  int64_t partner(const problem::PassTensor& t, int64_t image) const;
  const PairedPlaces& places(const problem::PassTensor& t) const {
    return &t == &pass().x ? cells_.x_places : cells_.y_places;
  }
  Part part_of(bool of_x, const BoxGrid::Box& box) const;
  bool pack_image(const problem::PassTensor& t, const std::byte* source, const Part& part,
                  const GradWeightTask& task, float* out) const;
  bool load(const problem::PassTensor& t, const std::byte* source, const Part& part, int64_t channels,
            float* out) const;
  static void turn_over(const problem::PassTensor& t, const float* source, const Part& part, int64_t channels,
                        float* out);
  static bool side_by_side(const problem::PassTensor& t, const Part& part);
  bool load_paired_strip(const problem::PassTensor& t, const std::byte* source, const Part& part,
                         int64_t channels, float* out) const;
  bool load_places(const problem::PassTensor& t, const std::byte* source, const Part& part, int64_t count,
                   int64_t pitch, float* out) const;

  CellPass cells_;
  const GradWeightBlocking& cut_;
  bool copies_rows_;
  size_t panel_bytes_, raw_bytes_, copy_bytes_;
};

}  // namespace retrograd::engines::cpu
