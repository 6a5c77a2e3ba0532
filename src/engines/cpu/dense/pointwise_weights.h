// SPDX-License-Identifier: Apache-2.0
// Weights of a gathering pass whose kernel has one tap, packed for the tiles of pointwise_gather.cpp:
// weights[group][tile][k][row].
#pragma once

#include "engines/engine.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

class PointwiseWeights {
 public:
  // `pass` must outlive this.
  PointwiseWeights(const problem::ConvPass& pass, int64_t tile_rows);

  int64_t floats() const { return pass_.groups * tiles_ * tile_rows_ * k_; }
  const float* at(const float* weights, int64_t group, int64_t tile) const {
    return weights + (group * tiles_ + tile) * tile_rows_ * k_;
  }
  // Packing is so many tasks, some tiles and channels each; `scratch` holds scratch_floats().
  int64_t tasks() const;
  int64_t scratch_floats() const;
  void pack(const Bindings& bindings, int64_t task, float* scratch, float* weights) const;

 private:
  const problem::ConvPass& pass_;
  int64_t tile_rows_, m_, k_, tiles_;
};

}  // namespace retrograd::engines::cpu
