// SPDX-License-Identifier: Apache-2.0
// The parts of gather_in_place's kernel: where a sum is, how operands get into shared memory as they lie, how
// fragments come out of it.
//
// A stage holds 128 bytes of terms. An operand whose terms lie side by side (rows) has a line a pixel, chunks
// exchanged so that fragments read all banks; one whose pixels or columns lie side by side has a line a term,
// eight elements longer than the tile for the same reason.
#pragma once

#include "kernels/cuda/dense/gather_tiles.cuh"

namespace retrograd::kernels::cuda::in_place {

using gather::kStepBytes;
using gather::Product;
using gather::Residue;

// What Product does not say. Strides in elements.
struct Places {
  int64_t source[5], source_group;  // (N, C, D, H, W)
  int64_t weight_group, weight_term, weight_column, weight_tap[3];
  int channels;  // terms of a tap
};

template <class E, class C, bool kRows>
struct Stage {
  static constexpr int kElement = sizeof(E), kTerms = kStepBytes / kElement, kChunk = 16 / kElement;
  static constexpr int kPitchA = (C::kM + 8) * kElement, kPitchB = (C::kN + 8) * kElement;
  static constexpr int kBytesA = kRows ? C::kM * kStepBytes : kTerms * kPitchA;
  static constexpr int kBytes = kBytesA + kTerms * kPitchB;
  // Two bytes are too few for an asynchronous copy: they wait in registers, one step long.
  static constexpr int kStages = kRows ? 4 : kElement == 2 ? 2 : 3;
};

// A tap, and which of its channels are next.
struct Walk {
  uint32_t number;
  int chunk, tap[3];
  __device__ Walk(const Product& p, const Residue& r, int step) {
    auto rest = static_cast<uint32_t>(step);
    number = p.by_chunks.split(rest);
    chunk = static_cast<int>(rest);
    find(r);
  }
  __device__ void find(const Residue& r) {
    uint32_t w = number, h = r.taps[2].split(w);
    tap[0] = static_cast<int>(r.taps[1].split(h));
    tap[1] = static_cast<int>(h);
    tap[2] = static_cast<int>(w);
  }
  // Whether it came to another tap.
  __device__ bool next(const Product& p, const Residue& r) {
    if (++chunk < p.chunks) return false;
    chunk = 0;
    ++number;
    find(r);
    return true;
  }
};

// Where a tap of the window at `at` lies, as an offset by strides, or −1 beyond the edges.
__device__ inline int64_t offset_of(const Product& p, const int (&at)[3], const int (&tap)[3],
                                    const int64_t* strides) {
  int64_t offset = 0;
  bool inside = true;
#pragma unroll
  for (int a = 0; a < 3; ++a) {
    const int place = at[a] + tap[a] * p.tap_step[a];
    inside = inside && static_cast<unsigned>(place) < static_cast<unsigned>(p.source[a]);
    offset += place * strides[a];
  }
  return inside ? offset : -1;
}

__device__ inline void copy_word(uint32_t target, const void* source, bool live) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(target), "l"(source), "r"(live ? 4 : 0));
}
__device__ inline void store_word(uint32_t target, uint32_t word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(target), "r"(word));
}
__device__ inline uint32_t load_word(uint32_t address) {
  uint32_t word;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address));
  return word;
}

// A line a term: kLong elements, of which a thread copies the same ones of every kDown-th term: 16 bytes
// (kWide) or a word, that is one element of 32 bits or two of 16.
template <class E, int kLong, int kThreads, bool kWide>
struct Lines {
  static constexpr int kElement = sizeof(E), kTerms = kStepBytes / kElement;
  static constexpr int kPitch = (kLong + 8) * kElement;
  static constexpr bool kStaged = !kWide && kElement == 2;
  static constexpr int kBytes = kWide ? 16 : 4, kTogether = kBytes / kElement;
  static constexpr int kPointers = kStaged ? 2 : 1;
  static constexpr int kAcross = kLong / kTogether, kDown = kThreads / kAcross, kCount = kTerms / kDown;
  static_assert(kThreads % kAcross == 0 && kTerms % kDown == 0);
  const E* at[kPointers];  // a tap's first term; null: there is none
  uint32_t words[kStaged ? kCount : 1];

  __device__ static int first() { return static_cast<int>(threadIdx.x) % kAcross * kTogether; }
  __device__ static int down() { return static_cast<int>(threadIdx.x) / kAcross; }
  __device__ static uint32_t target(uint32_t lines) {
    return lines + static_cast<uint32_t>(down() * kPitch + first() * kElement);
  }
  // `live` terms from `term` on; the others are zeros. any: a readable address.
  __device__ void begin(uint32_t lines, int term, int live, int64_t stride, const E* any) {
    const int64_t from = (term + down()) * stride;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool there = down() + i * kDown < live;
      const int64_t offset = from + i * kDown * stride;
      if constexpr (kStaged) {
        uint32_t word = 0;
#pragma unroll
        for (int e = 0; e < kPointers; ++e)
          if (there && at[e] != nullptr)
            word |= uint32_t{__ldg(reinterpret_cast<const unsigned short*>(at[e] + offset))} << (16 * e);
        words[i] = word;
      } else {
        const bool is_live = there && at[0] != nullptr;
        const E* const source = is_live ? at[0] + offset : any;
        if constexpr (kWide)
          copy_chunk(target(lines) + i * kDown * kPitch, source, is_live);
        else
          copy_word(target(lines) + i * kDown * kPitch, source, is_live);
      }
    }
  }
  __device__ void end(uint32_t lines) const {
    if constexpr (kStaged) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) store_word(target(lines) + i * kDown * kPitch, words[i]);
    }
  }
};

// The source, a line a term.
template <class E, class C>
struct LinesOfPlaces : Lines<E, C::kM, C::kThreads, false> {
  using Base = Lines<E, C::kM, C::kThreads, false>;
  const E* image[Base::kPointers];
  int window[Base::kPointers][3];

  __device__ LinesOfPlaces(const Product& p, const Residue& r, const Places& places, const E* source,
                           uint32_t m0, const int4*) {
#pragma unroll
    for (int e = 0; e < Base::kPointers; ++e) {
      const uint32_t m = m0 + Base::first() + e;
      const Place place = place_of(r, min(m, r.places - 1));
      image[e] = m < r.places ? source + place.n * places.source[0] : nullptr;
#pragma unroll
      for (int a = 0; a < 3; ++a) window[e][a] = place.at[a] * p.step[a] + r.first[a];
    }
  }
  __device__ void find(const Product& p, const Places& places, const int (&tap)[3]) {
#pragma unroll
    for (int e = 0; e < Base::kPointers; ++e) {
      const int64_t offset = offset_of(p, window[e], tap, places.source + 2);
      this->at[e] = image[e] != nullptr && offset >= 0 ? image[e] + offset : nullptr;
    }
  }
};

// The source, a line a place: chunks of channels, eight threads a line.
template <class E, class C>
struct RowsOfPlaces {
  static constexpr int kPass = C::kThreads / 8, kCount = C::kM / kPass, kChunk = 16 / sizeof(E);
  const E *source, *at[kCount];
  const int4* rows;
  int64_t pitch;

  __device__ RowsOfPlaces(const Product& p, const Residue&, const Places&, const E* s, uint32_t,
                          const int4* places_of_rows)
      : source(s), rows(places_of_rows), pitch(p.pitch / sizeof(E)) {}
  __device__ static int row() { return static_cast<int>(threadIdx.x) / 8; }
  __device__ static int chunk() { return static_cast<int>(threadIdx.x) % 8; }
  __device__ void find(const Product& p, const Places&, const int (&tap)[3]) {
    const int64_t strides[3] = {int64_t{p.source[1]} * p.source[2], p.source[2], 1};
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int4 place = rows[row() + i * kPass];
      const int window[3] = {place.y, place.z, place.w};
      const int64_t offset = offset_of(p, window, tap, strides);
      at[i] =
          offset < 0 ? nullptr : source + (int64_t{place.x} * strides[0] + offset) * pitch + chunk() * kChunk;
    }
  }
  __device__ void begin(uint32_t lines, int term, int live, int64_t, const E* any) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int line = row() + i * kPass;
      const bool is_live = at[i] != nullptr && chunk() * kChunk < live;
      copy_chunk(lines + line * kStepBytes + (chunk() ^ (line & 7)) * 16, is_live ? at[i] + term : any,
                 is_live);
    }
  }
  __device__ void end(uint32_t) const {}
};

// Weights, a line a term.
template <class E, class C, bool kWide>
struct LinesOfWeights : Lines<E, C::kN, C::kThreads, kWide> {
  using Base = Lines<E, C::kN, C::kThreads, kWide>;
  const E* weights;
  int n0;

  __device__ LinesOfWeights(const E* w, int first_column) : weights(w), n0(first_column) {}
  __device__ void find(const Product& p, const Residue& r, const Places& places, const int (&tap)[3]) {
    int64_t offset = 0;
#pragma unroll
    for (int a = 0; a < 3; ++a) offset += (r.tap_first[a] + tap[a] * p.tap_stride[a]) * places.weight_tap[a];
#pragma unroll
    for (int e = 0; e < Base::kPointers; ++e) {
      const int column = n0 + Base::first() + e;
      this->at[e] = column < p.columns ? weights + offset + column * places.weight_column : nullptr;
    }
  }
};

// The fragments a warp multiplies next.
template <class E, class C, bool kRows>
struct Fragments {
  using S = Stage<E, C, kRows>;
  uint32_t a[C::kWarpM / 16][4], b[C::kWarpN / 8][2];

  // of 32 bytes: the k-th of a step
  __device__ void load(uint32_t stage, int first_row, int first_column, int k) {
    const int lane = static_cast<int>(threadIdx.x) % 32, line = lane % 8, matrix = lane / 8;
    const uint32_t lines = stage + S::kBytesA;
#pragma unroll
    for (int i = 0; i < C::kWarpM / 16; ++i) {
      const int row = first_row + i * 16;
      if constexpr (kRows) {
        load_matrices<false>(
            stage + (row + matrix % 2 * 8 + line) * kStepBytes + ((2 * k + matrix / 2) ^ line) * 16, a[i]);
      } else if constexpr (sizeof(E) == 2) {
        load_matrices<true>(
            stage + (k * 16 + matrix / 2 * 8 + line) * S::kPitchA + (row + matrix % 2 * 8) * 2, a[i]);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
          a[i][e] = load_word(stage + (k * 8 + lane % 4 + e / 2 * 4) * S::kPitchA +
                              (row + lane / 4 + e % 2 * 8) * 4);
      }
    }
#pragma unroll
    for (int j = 0; j < C::kWarpN / 16; ++j) {
      const int column = first_column + j * 16;
      if constexpr (sizeof(E) == 2) {
        uint32_t r[4];
        load_matrices<true>(
            lines + (k * 16 + matrix % 2 * 8 + line) * S::kPitchB + (column + matrix / 2 * 8) * 2, r);
        b[2 * j][0] = r[0], b[2 * j][1] = r[1], b[2 * j + 1][0] = r[2], b[2 * j + 1][1] = r[3];
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
          b[2 * j + e / 2][e % 2] = load_word(lines + (k * 8 + lane % 4 + e % 2 * 4) * S::kPitchB +
                                              (column + lane / 4 + e / 2 * 8) * 4);
      }
    }
  }
};

}  // namespace retrograd::kernels::cuda::in_place
