// SPDX-License-Identifier: Apache-2.0
// The parts of gather_product's kernel: what it is told, how its tiles get into shared memory, how fragments
// come out of it.
#pragma once

#include <algorithm>

#include "kernels/cuda/dense/gather_product.h"
#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/places.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda::gather {

constexpr int kStepBytes = 128;  // of a row

// What a residue of the strides has of its own.
struct Residue {
  FastDiv results[3], taps[3];  // of an axis
  int first[3], tap_first[3], result_first[3];
  uint32_t places;
  int steps;
};

// The columns of a folded product.
struct Fold {
  bool on, taps_fast, checked;  // checked: some lie beyond an edge of x
  FastDiv inner, kw, kh;        // inner: taps or channels, whichever are fast
  int dilation[3], x[3];
};

struct Product {
  Conv conv;
  bool forward, repair;
  int step[3], tap_step[3], source[3];  // of an axis
  int result_step[3], tap_stride[3], kernel[3];
  int columns, chunks;  // chunks: of a tap
  FastDiv by_chunks;
  uint32_t pitch;        // bytes from place to place
  uint32_t filled;       // bytes of a group's channels
  int64_t weight_group;  // bytes of a group's weights
  Tensor result;
  int parts;        // of a sum, each a block; more than one: their sums go to `partial`
  float* partial;   // [parts of residues][tiles][threads' sums]
  bool by_columns;  // neighbouring lanes store neighbouring columns, not places
  int run;          // that many of them lie side by side and aligned
  Fold fold;
  Residue residues[kMostResidues];
};

template <int kM, int kN, int kWarpM, int kWarpN, int kStages, int kBlocks>
struct Cut : TileCut<kM, kN, kWarpM, kWarpN, kStages, kBlocks> {
  static constexpr int kStageBytes = (kM + kN) * kStepBytes;
  // Of results in shared memory, places or columns side by side: fragments go to different banks.
  static constexpr int kPlacesPitch = kM + 4, kColumnsPitch = kN + 8;
  static constexpr int kFinishBytes = 4 * std::max(int{kPlacesPitch} * kN, int{kColumnsPitch} * kM);
  static constexpr int kBytes = std::max(int{kStages} * kStageBytes, kFinishBytes);
};

// What a thread copies: one chunk of every kPass-th row of both tiles.
template <class C>
struct Loader {
  static constexpr int kPass = C::kThreads / 8, kRowsA = C::kM / kPass, kRowsB = C::kN / kPass;
  const Product& p;
  const Residue& residue;
  const int4* rows;  // of the tile: image, then where its first tap is
  const char *source, *weights, *weight_at;
  int n0, row0, c, tap[3];
  uint32_t chunk_number;  // among those of all taps
  int places[kRowsA];     // −1: beyond the edge
  uint32_t target;

  __device__ Loader(const Product& product, const Residue& r, const int4* places_of_rows, const char* s,
                    const char* w, int first_column, int first_step, uint32_t base)
      : p(product), residue(r), rows(places_of_rows), source(s), weights(w), n0(first_column) {
    row0 = static_cast<int>(threadIdx.x) / 8;
    chunk_number = static_cast<uint32_t>(threadIdx.x) % 8 + 8 * static_cast<uint32_t>(first_step);
    find_tap();
    target = base + static_cast<uint32_t>(row0 * kStepBytes + (threadIdx.x % 8 ^ (row0 & 7)) * 16);
    find_rows();
  }
  __device__ void find_tap() {
    uint32_t chunk = chunk_number;
    uint32_t w = p.by_chunks.split(chunk);
    uint32_t h = residue.taps[2].split(w);
    c = static_cast<int>(chunk);
    tap[0] = static_cast<int>(residue.taps[1].split(h));
    tap[1] = static_cast<int>(h);
    tap[2] = static_cast<int>(w);
  }
  __device__ void find_rows() {
    const bool live = tap[0] < static_cast<int>(residue.taps[0].divisor);
#pragma unroll
    for (int i = 0; i < kRowsA; ++i) {
      const int4 row = rows[row0 + i * kPass];
      const int sd = row.y + tap[0] * p.tap_step[0], sh = row.z + tap[1] * p.tap_step[1],
                sw = row.w + tap[2] * p.tap_step[2];
      const bool inside = live && static_cast<unsigned>(sd) < static_cast<unsigned>(p.source[0]) &&
                          static_cast<unsigned>(sh) < static_cast<unsigned>(p.source[1]) &&
                          static_cast<unsigned>(sw) < static_cast<unsigned>(p.source[2]);
      places[i] = inside ? ((row.x + sd) * p.source[1] + sh) * p.source[2] + sw : -1;
    }
    const int number = ((residue.tap_first[0] + tap[0] * p.tap_stride[0]) * p.kernel[1] +
                        residue.tap_first[1] + tap[1] * p.tap_stride[1]) *
                           p.kernel[2] +
                       residue.tap_first[2] + tap[2] * p.tap_stride[2];
    weight_at = live ? weights + (static_cast<int64_t>(number) * p.columns + n0 + row0) * p.filled : nullptr;
  }
  __device__ void load(uint32_t stage) {
    const uint32_t at = target + stage;
#pragma unroll
    for (int i = 0; i < kRowsA; ++i)
      copy_chunk(at + i * kPass * kStepBytes,
                 source + static_cast<uint64_t>(static_cast<uint32_t>(max(places[i], 0))) * p.pitch + c * 16,
                 places[i] >= 0);
#pragma unroll
    for (int i = 0; i < kRowsB; ++i) {
      const bool there = weight_at != nullptr && n0 + row0 + i * kPass < p.columns;
      copy_chunk(at + (C::kM + i * kPass) * kStepBytes,
                 there ? weight_at + static_cast<uint64_t>(i * kPass) * p.filled + c * 16 : weights, there);
    }
    chunk_number += 8;
    c += 8;
    if (c < p.chunks) return;
    find_tap();
    find_rows();
  }
};

// The fragments a warp multiplies next.
template <class C>
struct Fragments {
  uint32_t a[C::kWarpM / 16][4], b[C::kWarpN / 8][2];

  // of 32 bytes: the k-th of a step
  __device__ void load(uint32_t stage, int first_row, int first_column, int k) {
    const int lane = static_cast<int>(threadIdx.x) % 32, line = lane % 8, matrix = lane / 8;
    const uint32_t of_a =
        stage + (first_row + matrix % 2 * 8 + line) * kStepBytes + (((2 * k + matrix / 2) ^ line) * 16);
    const uint32_t of_b = stage + (C::kM + first_column + matrix / 2 * 8 + line) * kStepBytes +
                          (((2 * k + matrix % 2) ^ line) * 16);
#pragma unroll
    for (int i = 0; i < C::kWarpM / 16; ++i) load_matrices<false>(of_a + i * 16 * kStepBytes, a[i]);
#pragma unroll
    for (int j = 0; j < C::kWarpN / 16; ++j) {
      uint32_t r[4];
      load_matrices<false>(of_b + j * 16 * kStepBytes, r);
      b[2 * j][0] = r[0], b[2 * j][1] = r[1], b[2 * j + 1][0] = r[2], b[2 * j + 1][1] = r[3];
    }
  }
};

}  // namespace retrograd::kernels::cuda::gather

namespace retrograd::kernels::cuda {

// gather_product of FP32 rows on Hopper's warpgroup products, FP32 out. False: nothing was launched, and
// gather_product is to do it. Needs a Hopper GPU.
bool f32_gather(const gather::Product& p, const GatherProduct& product, Stream stream);

}  // namespace retrograd::kernels::cuda
