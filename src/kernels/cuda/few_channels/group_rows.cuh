// SPDX-License-Identifier: Apache-2.0
// The parts of group_rows' kernel: what a block takes, how weights and places get into shared memory, how
// they are multiplied.
#pragma once

#include "kernels/cuda/dense/gather_tiles.cuh"
#include "kernels/cuda/few_channels/group_rows.h"

namespace retrograd::kernels::cuda::group_rows_tiles {

using gather::Product;
using gather::Residue;

constexpr int kThreads = 128, kPlaces = 64, kMost = 16;  // kMost: eights of result channels of a block

// Bytes of a row of `chunks` chunks, an odd number of them: the eight rows that a warp reads at once lie in
// different banks.
RG_HOST_DEVICE inline int pitch_of(int chunks) { return (chunks | 1) * 16; }

struct Block {
  int first_group, groups, terms, columns, in_pitch, out_pitch;
  __device__ Block(const GroupRows& plan, int slab, int all)
      : first_group(slab * plan.groups),
        groups(min(plan.groups, all - first_group)),
        terms(plan.terms),
        columns(plan.columns),
        in_pitch(pitch_of(plan.groups * plan.terms)),
        out_pitch(pitch_of(plan.groups * plan.columns)) {}
  __device__ int tiles() const { return groups * columns; }
};

// [tap][eight of result channels][eight of source channels][lane]: what a lane holds of an 8 x 8 product.
template <class E>
__device__ void load_weights(const Product& p, const Residue& r, const Block& block,
                             const InPlaceWeights& strides, const E* weights, uint32_t* fragments) {
  const auto* const bits = reinterpret_cast<const unsigned short*>(weights);
  const int count = max(r.steps, 1) * block.tiles() * block.terms * 32;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const int lane = i % 32, eight = i / 32 % block.terms, column = i / 32 / block.terms % block.tiles();
    auto w = static_cast<uint32_t>(i / 32 / block.terms / block.tiles());
    uint32_t h = r.taps[2].split(w);
    const uint32_t d = r.taps[1].split(h);
    const int tap[3] = {static_cast<int>(d), static_cast<int>(h), static_cast<int>(w)};
    int64_t offset = (block.first_group + column / block.columns) * strides.group +
                     (column % block.columns * 8 + lane / 4) * strides.column +
                     (eight * 8 + lane % 4 * 2) * strides.term;
#pragma unroll
    for (int a = 0; a < 3; ++a) offset += (r.tap_first[a] + tap[a] * p.tap_stride[a]) * strides.tap[a];
    fragments[i] = r.steps == 0
                       ? 0
                       : uint32_t{__ldg(bits + offset)} | uint32_t{__ldg(bits + offset + strides.term)} << 16;
  }
}

// Copies the block's channels of 64 places, a tap at a time and tile after tile: four threads a place, two
// places a thread.
template <class E>
struct Loader {
  static constexpr int kRows = 2;
  const Product& p;
  const Residue& r;
  const Block& block;
  const E* source;  // of the block's first channel
  const E* any;
  uint32_t m0;
  int number = 0;  // of the tap
  int n[kRows], window[kRows][3];

  __device__ Loader(const Product& product, const Residue& residue, const Block& b, const E* s,
                    uint32_t first)
      : p(product), r(residue), block(b), source(s + b.first_group * b.terms * 8), any(s), m0(first) {
    find();
  }
  __device__ static int row(int i) { return static_cast<int>(threadIdx.x) / 4 + i * 32; }
  __device__ void find() {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const uint32_t m = m0 + row(i);
      const Place place = place_of(r, min(m, r.places - 1));
      n[i] = m < r.places && r.steps > 0 ? place.n : -1;
#pragma unroll
      for (int a = 0; a < 3; ++a) window[i][a] = place.at[a] * p.step[a] + r.first[a];
    }
  }
  __device__ void load(uint32_t stage) {
    auto w = static_cast<uint32_t>(number);
    uint32_t h = r.taps[2].split(w);
    const uint32_t d = r.taps[1].split(h);
    const int tap[3] = {static_cast<int>(d), static_cast<int>(h), static_cast<int>(w)};
    const int chunks = block.groups * block.terms;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      bool live = n[i] >= 0;
      int64_t place = n[i];
#pragma unroll
      for (int a = 0; a < 3; ++a) {
        const int at = window[i][a] + tap[a] * p.tap_step[a];
        live = live && static_cast<unsigned>(at) < static_cast<unsigned>(p.source[a]);
        place = place * p.source[a] + at;
      }
      const E* const from = source + place * (p.pitch / sizeof(E));
      for (int chunk = static_cast<int>(threadIdx.x) % 4; chunk < chunks; chunk += 4)
        copy_chunk(stage + row(i) * block.in_pitch + chunk * 16, live ? from + chunk * 8 : any, live);
    }
    if (++number < r.steps) return;
    number = 0;
    m0 += kPlaces;
    if (m0 < r.places) find();
  }
};

// Two 8 x 8 matrices, one below the other.
__device__ inline void load_two(uint32_t address, uint32_t (&r)[2]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(address));
}
__device__ inline uint32_t load_fragment(uint32_t address) {
  uint32_t word;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address));
  return word;
}
// 16 places by 8 channels, a sum of 8 products.
__device__ inline void multiply_eight(float (&c)[4], const uint32_t (&a)[2], uint32_t b, InF16) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}
__device__ inline void multiply_eight(float (&c)[4], const uint32_t (&a)[2], uint32_t b, InBF16) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}

// One tap of a warp's 16 places.
template <class Math>
__device__ void multiply(const Block& block, uint32_t rows, uint32_t weights, float (&sums)[kMost][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  uint32_t of_group = rows + lane % 16 * block.in_pitch, fragment = weights + lane * 4;
  int column = 0;
#pragma unroll
  for (int t = 0; t < kMost; ++t) {
    if (t >= block.tiles()) continue;
    for (int k = 0; k < block.terms; ++k, fragment += 128) {
      uint32_t a[2];
      load_two(of_group + k * 16, a);
      multiply_eight(sums[t], a, load_fragment(fragment), Math{});
    }
    if (++column < block.columns) continue;
    column = 0;
    of_group += block.terms * 16;
  }
}

}  // namespace retrograd::kernels::cuda::group_rows_tiles
