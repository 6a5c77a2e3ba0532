// SPDX-License-Identifier: Apache-2.0
// What an instruction set's vectors are, and what follows for the kernels: widths and rows of tiles, sums in
// registers, how far whole vectors read on. Each rule is here once: kernels take their constants from it, and
// engines ask it for the machine that they plan for, which need not be this one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace retrograd::kernels::cpu {

inline constexpr int kTileRows = 6;       // of the full width, at any places
inline constexpr int kTallTileRows = 14;  // of any width, at equal distances, where registers suffice
inline constexpr int kMostTileRows = 8;   // of the smaller ones, at any places
inline constexpr int64_t kMostPlaneLanes = 16;
inline constexpr int64_t kMostPoolLanes = 16;

struct VectorShape {
  int64_t floats = 4;         // in a vector: 16, 8, 4, or 1 without vectors
  int registers = 16;         // for vectors: 32, or 16 on x86 before AVX-512
  bool masked_loads = false;  // which do not touch the lanes that they leave out: AVX2 and AVX-512

  bool operator==(const VectorShape&) const = default;
  constexpr bool few_registers() const { return registers < 32; }

  // dense/tile_product.h: floats in a row of b and c of a full tile; the widths there are, largest first;
  // rows at equal distances that a tile may have; how many of `rows` rows `stride` floats apart the next one
  // takes.
  constexpr int64_t tile_width() const { return 2 * floats; }
  constexpr std::array<int64_t, 3> tile_widths() const { return {2 * floats, floats, half()}; }
  constexpr int64_t fitting_tile_width(int64_t channels) const {
    return channels <= half() ? half() : channels <= floats ? floats : 2 * floats;
  }
  constexpr int64_t next_tile_width(int64_t channels, int64_t narrowest = 0) const {
    const bool fits = channels > floats && channels <= floats + half() && channels < 2 * floats;
    if (fits && narrowest <= half()) return floats;
    return std::max(narrowest, fitting_tile_width(channels));
  }
  constexpr int64_t covering_lanes(int64_t channels, int64_t narrowest = 0) const {
    int64_t lanes = channels / tile_width() * tile_width();
    while (lanes < channels) lanes += next_tile_width(channels - lanes, narrowest);
    return lanes;
  }
  // Of two vectors: 28 sums, 2 vectors of b and a broadcast fill 32 registers.
  constexpr int tall_tile_rows() const { return few_registers() || floats == 1 ? kTileRows : kTallTileRows; }
  constexpr int tile_rows(int64_t width) const {
    return std::max(tall_tile_rows(), width == tile_width() ? kTileRows : kMostTileRows);
  }
  constexpr int tile_rows(int64_t width, int64_t stride) const {
    constexpr int64_t kUnluckyFloats = 512;
    const int rows = tile_rows(width);
    if (stride % kUnluckyFloats != 0 || rows <= kMostTileRows) return rows;
    return width == tile_width() ? kTileRows : kMostTileRows;
  }
  constexpr int64_t next_tile_rows(int64_t rows, int64_t width, int64_t stride) const {
    const int64_t most = tile_rows(width, stride), tiles = (rows + most - 1) / most;
    return (rows + tiles - 1) / tiles;
  }

  // Sums that stay in registers beside what they are made of.
  constexpr int sums() const { return few_registers() ? 12 : 24; }

  // few_channels/row_sums.h: the most rows of a call; positions that one pass over the terms covers; rows are
  // worked on in whole vectors, so buffers end row_overrun() floats later.
  constexpr int row_results() const { return few_registers() ? 6 : 12; }
  constexpr int row_vectors(int results) const { return std::min(8, sums() / results); }
  constexpr int64_t row_positions(int results) const { return row_vectors(results) * floats; }
  constexpr int64_t row_overrun() const { return floats; }

  // few_channels/row_dots.h: the most channels of a call, and terms that are added up at once.
  constexpr int dot_channels() const { return few_registers() ? 4 : 8; }
  constexpr int dot_terms(int channels) const { return std::min(8, sums() / channels); }
  constexpr int64_t dot_lanes() const { return floats; }

  // depthwise/
  constexpr int64_t plane_lanes() const { return std::min(floats, kMostPlaneLanes); }
  // For rows of this many places; 0 where the machine has no such loads.
  constexpr int64_t wide_lanes(int64_t width) const {
    if (!masked_loads) return 0;
    return width <= 8 ? std::min<int64_t>(plane_lanes(), 8) : plane_lanes();
  }
  // Planes that share sums, 2 or 1. Two rows of half a vector share one: with more than three rows of taps
  // that was slower.
  constexpr int64_t wide_planes(int64_t lanes, int64_t tap_rows) const {
    return masked_loads && lanes < plane_lanes() && tap_rows <= 3 ? 2 : 1;
  }

  constexpr int64_t winograd_lanes() const { return floats; }

  // pooling/: lanes that are known when it is compiled, so four of vectors that have no size of their own.
  constexpr int64_t pool_lanes() const { return std::min(floats, masked_loads ? kMostPoolLanes : 4); }
  constexpr bool fuses_pooling() const { return masked_loads; }

 private:
  constexpr int64_t half() const { return std::max<int64_t>(floats / 2, 1); }
};

// That of AVX2, which RETROGRAD_BITS=portable has on every machine.
inline constexpr VectorShape kPortableShape{.floats = 8, .registers = 16, .masked_loads = true};

// Of the chosen instruction set (targets.h).
const VectorShape& vector_shape();
// Of the widest one, which kernels have whose sums do not depend on vectors; another one with portable bits
// only.
const VectorShape& widest_shape();

}  // namespace retrograd::kernels::cpu
