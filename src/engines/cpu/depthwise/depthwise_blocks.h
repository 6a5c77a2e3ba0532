// SPDX-License-Identifier: Apache-2.0
// Blocks of planes for engines whose vectors lie along W: read in place, or converted into FP32 first.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engines/cpu/axis_phases.h"
#include "engines/cpu/rows.h"
#include "engines/engine.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// Of x, or of y.
std::array<int64_t, 3> sizes_of(const problem::ConvPass& pass, bool of_x);
// Why a pass cannot have vectors along W, whatever its window, or nothing.
std::optional<Reason> unfit_for_planes(const problem::ConvPass& pass);

// Some channels of some images.
struct ImageBlock {
  int64_t image = 0, images = 0;
  int64_t channel = 0, channels = 0;
};

// How planes are cut into tasks, and a task into parts whose planes stay in L2.
struct ImageCut {
  int64_t batch = 0, channels = 0;
  int64_t images_per_task = 1, channels_per_task = 1;
  int64_t channels_per_part = 1;  // of one image

  int64_t channel_blocks() const;
  int64_t image_blocks() const;
  ImageBlock task(int64_t channel_block, int64_t image_block) const;
};
// What a task does for a plane, and what it keeps for a channel from one image to the next.
struct PlaneWork {
  int64_t vectors = 1;  // of multiply-adds
  int64_t floats = 1;   // read and written
  int64_t kept = 1;     // floats of a channel: packed weights, or sums
  int64_t setup = 0;    // of a channel, once a task: vectors of multiply-adds that take as long
};
// A task takes so many neighbouring channels of an image that memory is read in long runs, and what it keeps
// for them stays in L1, then so many images that its set-up does not count.
ImageCut cut_into_image_blocks(int64_t batch, int64_t channels, const PlaneWork& work);

// The planes of a block as the kernels take them; strides along (N, C, D, H), and 1 along W.
struct PlaneView {
  float* at = nullptr;  // of the first plane
  std::array<int64_t, 4> strides{};
};

// One of the two tensors of places.
class BlockTensor {
 public:
  BlockTensor() = default;
  BlockTensor(const problem::PassTensor& tensor, OperandRounding rounding,
              const std::array<int64_t, 3>& sizes);
  bool in_place() const { return in_place_; }
  int64_t plane_floats() const { return sizes_[0] * sizes_[1] * sizes_[2]; }
  // In memory where the tensor is FP32, else in `buffer` of plane_floats() a plane, which load() fills and
  // store() empties.
  PlaneView view(void* address, const ImageBlock& block, float* buffer) const;
  void load(const void* address, const ImageBlock& block, float* buffer) const;
  void store(void* address, const ImageBlock& block, const float* buffer) const;

 private:
  // body(element offset in the tensor, float offset in the buffer, count) for runs along W, the longest that
  // there are.
  template <class Body>
  void for_each_run(const ImageBlock& block, const Body& body) const;

  problem::PassTensor tensor_;
  OperandRounding rounding_ = OperandRounding::kNone;
  std::array<int64_t, 3> sizes_{};
  bool in_place_ = true;
};

// Positions of a phase whose taps read neighbouring rows of every `step`th row of the source: position
// `position` + step·m reads, with tap h, row `source` + step·(m + first + h).
struct RowClass {
  int64_t position = 0, positions = 0;
  int64_t source = 0, source_rows = 0;
  int64_t first = 0;
};
struct RowPhase {
  int64_t first = 0, result_step = 1;  // place of position 0 in the result, and from one position to the next
  int64_t step = 1;
  std::vector<int64_t> taps;  // by growing source row
  std::vector<RowClass> classes;
};
// False where the taps are not the same distance apart. Without taps there is one class that reads nothing.
bool make_row_phase(const AxisPhase& phase, RowPhase& result);

}  // namespace retrograd::engines::cpu
