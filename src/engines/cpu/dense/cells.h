// SPDX-License-Identifier: Apache-2.0
// Passes over BF16 or FP16 numbers in pairs, for machines that multiply pairs natively
// (kernels/cpu/dense/cell_pairs.h, and cell_tiles.h for FP16).
//
// Two numbers that the pass adds over, two source channels or two images, share a cell of 32 bits. The pass
// over cells is the same pass with half as many of them; dense_gather.cpp and dense_grad_weight.cpp run it,
// with cells where they else have floats. Of an odd number of source channels the last has no partner. An odd
// number of images is cut in two along an axis of space: a place of the first half shares a cell with the one
// as far into the second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engines/cpu/rows.h"
#include "engines/engine.h"
#include "kernels/cpu/dense/cell_pairs.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// One operand of a pass whose places are paired along an axis: the number at `index` of the axis shares a
// cell with the one at index + shift; what lies outside of 0 to size is zero.
struct PairedPlaces {
  size_t axis = 0;    // of space
  int64_t shift = 0;  // 0: places are not paired
  int64_t size = 0;
  int64_t pad = 0;  // the axis of the pass over cells begins so far in front of index 0
};

struct CellPass {
  problem::ConvPass pass;
  // Elements from a number to the one that shares its cell; 0: numbers are not paired.
  int64_t x = 0, y = 0, w = 0;
  // Numbers that share a cell lie side by side: the source of a gather, or its weight, is a tensor of cells
  // as it is, with floats' strides.
  bool together = false, weights_together = false;
  bool tiles = false;  // for the tile registers of kernels/cpu/dense/cell_tiles.h
  kernels::cpu::CellType type{};
  bool rest = false;  // the numbers of the last image, or source channel of a group, have no partner
  // Where places are paired. Zeros meet numbers then, which is right as long as those are finite.
  PairedPlaces x_places{}, y_places{};
};
// Why vectors do not multiply the operands as pairs of BF16; nullopt where they do.
std::optional<Reason> unfit_for_bf16_pairs(const problem::ConvPass& pass, const Machine& machine);
// Why the machine or the pass has no use for pairs; nullopt where it has.
std::optional<Reason> unfit_for_cells(const problem::ConvPass& pass, const Machine& machine);
// The same of tile registers.
std::optional<Reason> unfit_for_tiles(const problem::ConvPass& pass, const Machine& machine);
// Of the numbers of an operand.
inline kernels::cpu::CellType cell_type(DType dtype) {
  return dtype == DType::kF16 ? kernels::cpu::CellType::kF16 : kernels::cpu::CellType::kBf16;
}
// Why tile registers do not multiply what the operands hold; nullopt where they do.
std::optional<Reason> unfit_for_tile_types(const problem::ConvPass& pass, const Machine& machine);
CellPass pass_over_cells(const problem::ConvPass& pass, bool tiles = false);

// The partner of a number that has none: zero.
inline constexpr int64_t kNoPartner = INT64_MIN;
// out[i] = the cell of source[i·stride] and its partner. False where the instruction would lose a number.
bool load_cells(DType dtype, const std::byte* source, int64_t partner, int64_t stride, int64_t count,
                float* out);
// out[r·pitch + i] = the cell of source[r·step + i], r < rows, i < count.
bool load_cell_rows(DType dtype, const std::byte* source, int64_t partner, int64_t step, int64_t rows,
                    int64_t count, float* out, int64_t pitch);
// As load_strip.
bool load_cell_strip(const problem::PassTensor& tensor, int64_t partner, const std::byte* source,
                     const StripShape& shape, float* out);
// Cells of paired places of `channels` channels: out[c·pitch + i] for `count` numbers that are `stride`
// apart, of which the first is at `index` of the axis, and the next at index + step (0 or 1). False where one
// is not finite, too.
bool load_paired(const problem::PassTensor& tensor, const PairedPlaces& places, const std::byte* source,
                 int64_t index, int64_t step, int64_t stride, int64_t count, int64_t channels, float* out,
                 int64_t pitch);
// The same of `rows` places along W whose `count` channels lie side by side; the first is at `index` of the
// axis, the next at index + step.
bool load_paired_rows(const problem::PassTensor& tensor, const PairedPlaces& places, const std::byte* source,
                      int64_t index, int64_t step, int64_t rows, int64_t count, float* out, int64_t pitch);

}  // namespace retrograd::engines::cpu
