// SPDX-License-Identifier: Apache-2.0
// The parts of group_rows' kernel: tables of a box in shared memory, how weights and pixels get there, how
// they are multiplied.
#pragma once

#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/group_boxes/group_rows_item.h"

namespace retrograd::kernels::cuda::group_rows_tiles {

constexpr int kDown = kGroupTile / 16;

// A place of a box: where it lies in shared memory, and in chunks behind the box's first in memory.
struct alignas(16) Entry {
  int window, offset;
  uint32_t w_h, d_n;
  __device__ int w() const { return static_cast<int>(w_h & 0xffff); }
  __device__ int h() const { return static_cast<int>(w_h >> 16); }
  __device__ int d() const { return static_cast<int>(d_n & 0xffff); }
  __device__ int n() const { return static_cast<int>(d_n >> 16); }
};
__device__ inline Entry entry_of(int window, const GroupPlace& place) {
  return {window, place.offset, static_cast<uint32_t>(place.at[2]) | static_cast<uint32_t>(place.at[1]) << 16,
          static_cast<uint32_t>(place.at[0]) | static_cast<uint32_t>(place.n) << 16};
}

struct Tap {
  int staged;  // bytes behind the window
  int weight;  // elements behind the group's
};

// A quad of eights of result channels. Bit t of `fresh`: tile t begins another group.
struct Quad {
  int first;  // group
  unsigned fresh;
};

struct Shared {
  unsigned char *stages, *fragments;
  Entry *staged, *positions;
  Tap* taps;
  int* begins;  // of a residue's taps
  float* bias;  // of the block's channels
  Quad* quads;

  __device__ Shared(const GroupProduct& p, unsigned char* room)
      : stages(room),
        fragments(room + 2 * p.stage_bytes),
        staged(reinterpret_cast<Entry*>(fragments + p.weight_bytes)),
        positions(staged + p.staged),
        taps(reinterpret_cast<Tap*>(positions + p.positions)),
        begins(reinterpret_cast<int*>(taps + (p.taps + 1) / 2 * 2)),
        bias(reinterpret_cast<float*>(begins + (p.residues + 4) / 4 * 4)),
        quads(reinterpret_cast<Quad*>(bias + p.quads * kGroupQuad * 8)) {}

  __device__ uint32_t stage(const GroupProduct& p, int number) const {
    return shared_address(stages) + static_cast<uint32_t>(number * p.stage_bytes);
  }
  __device__ void set_tables(const GroupProduct& p, const InPlaceWeights& strides) const {
    const int thread = static_cast<int>(threadIdx.x);
    for (int i = thread; i < p.staged; i += kGroupThreads)
      staged[i] = entry_of(i * p.pitch, group_staged(p, i));
    for (int i = thread; i < p.positions; i += kGroupThreads) {
      const GroupPlace place = group_position(p, i);
      positions[i] = entry_of(group_window(p, place) * p.pitch, place);
    }
    for (int i = thread; i < p.quads; i += kGroupThreads) {
      Quad quad{i * kGroupQuad / p.columns, 0};
      for (int t = 1; t < kGroupQuad; ++t) {
        const int eight = i * kGroupQuad + t;
        if (eight % p.columns == 0 && eight < p.tiles) quad.fresh |= 1u << t;
      }
      quads[i] = quad;
    }
    int begin = 0;
    for (int number = 0; number < p.residues; ++number) {
      int residue[3];
      group_residue(p, number, residue);
      const int count = group_taps(p, residue);
      for (int i = thread; i < count; i += kGroupThreads) {
        const GroupTap tap = group_tap(p, residue, i);
        taps[begin + i] = {tap.staged * p.pitch,
                           static_cast<int>(tap.at[0] * strides.tap[0] + tap.at[1] * strides.tap[1] +
                                            tap.at[2] * strides.tap[2])};
      }
      if (thread == 0) begins[number] = begin;
      begin += count;
    }
    if (thread == 0) begins[p.residues] = begin;
  }
  // [tap][quad][eight of source channels][lane][tile]: a thread takes the same word of several taps.
  template <class E>
  __device__ void load_weights(const GroupProduct& p, const InPlaceWeights& strides, const E* weights,
                               int first_group, int groups) const {
    const auto* const bits = reinterpret_cast<const unsigned short*>(weights);
    auto* const words = reinterpret_cast<uint32_t*>(fragments);
    const int a_tap = p.quads * p.terms * 32 * kGroupQuad, thread = static_cast<int>(threadIdx.x);
    const int step = max(1, kGroupThreads / a_tap), first = step == 1 ? 0 : thread / a_tap;
    for (int i = step == 1 ? thread : thread % a_tap; first < step && i < a_tap; i += kGroupThreads) {
      const int tile = i % kGroupQuad, lane = i / kGroupQuad % 32, rest = i / (kGroupQuad * 32);
      const GroupWeight w = group_weight(p, rest / p.terms, rest % p.terms, lane, tile);
      const bool there = w.group < groups * p.joined, low = there && w.live[0], high = there && w.live[1];
      const unsigned short* const from =
          bits + (int64_t{first_group} * p.joined + (there ? w.group : 0)) * strides.group +
          w.column * strides.column;
      const int64_t low_term = w.term[0] * strides.term, high_term = w.term[1] * strides.term;
#pragma unroll 4
      for (int tap = first; tap < p.taps; tap += step) {
        const unsigned short* const at = from + taps[tap].weight;
        const uint32_t a = low ? __ldg(at + low_term) : 0, b = high ? __ldg(at + high_term) : 0;
        words[tap * a_tap + i] = a | b << 16;
      }
    }
  }
  template <int kDowns>
  __device__ void add_bias(int quad, float (&sums)[kDowns][kGroupQuad][4]) const {
#pragma unroll
    for (int t = 0; t < kGroupQuad; ++t) {
      const float2 two = reinterpret_cast<const float2*>(
          bias)[(quad * kGroupQuad + t) * 4 + static_cast<int>(threadIdx.x) % 4];
#pragma unroll
      for (int m = 0; m < kDowns; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) sums[m][t][2 * half] += two.x, sums[m][t][2 * half + 1] += two.y;
    }
  }
};

// Copies the block's channels of every place of a box: neighbouring threads, neighbouring chunks.
template <class E>
struct Loader {
  const Shared& room;
  const E* source;  // of the block's first channel
  int chunk, first, step;

  __device__ Loader(const GroupProduct& p, const Shared& shared, const E* from, int chunks)
      : room(shared), source(from) {
    auto rest = static_cast<uint32_t>(threadIdx.x);
    first = static_cast<int>(p.by_chunks.split(rest));
    chunk = static_cast<int>(rest);
    step = kGroupThreads / p.chunks;
    if (chunk >= chunks || first >= step) first = p.staged;
  }
  __device__ void load(const GroupProduct& p, uint32_t number, int stage) const {
    const GroupBoxAt box = group_box_at(p, number);
    int at[3];
#pragma unroll
    for (int a = 0; a < 3; ++a) at[a] = box.at[a] * p.axes[a].step + p.axes[a].low;
    const E* const from = source + (group_source_offset(p, box) + chunk) * 8;
    const uint32_t to = room.stage(p, stage) + chunk * 16;
    for (int i = first; i < p.staged; i += step) {
      const Entry e = room.staged[i];
      const bool live = static_cast<unsigned>(at[0] + e.d()) < static_cast<unsigned>(p.axes[0].source) &&
                        static_cast<unsigned>(at[1] + e.h()) < static_cast<unsigned>(p.axes[1].source) &&
                        static_cast<unsigned>(at[2] + e.w()) < static_cast<unsigned>(p.axes[2].source) &&
                        box.n + e.n() < p.batch;
      copy_chunk(to + e.window, live ? from + int64_t{e.offset} * 8 : source, live);
    }
    close_copies();
  }
};

// kTerms eights of channels of 16 places.
template <int kTerms>
__device__ void load_terms(uint32_t address, uint32_t (&a)[kTerms][2]) {
#pragma unroll
  for (int k = 0; k + 1 < kTerms; k += 2) {
    uint32_t r[4];
    load_matrices<false>(address + k * 16, r);
    a[k][0] = r[0], a[k][1] = r[1], a[k + 1][0] = r[2], a[k + 1][1] = r[3];
  }
  if constexpr (kTerms % 2 == 1)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(a[kTerms - 1][0]), "=r"(a[kTerms - 1][1])
                 : "r"(address + (kTerms - 1) * 16));
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
template <class Math, int kTerms>
__device__ void multiply_terms(float (&c)[4], const uint32_t (&a)[kTerms][2], const uint32_t (&b)[kTerms]) {
#pragma unroll
  for (int k = 0; k + 1 < kTerms; k += 2) {
    const uint32_t sixteen[4] = {a[k][0], a[k][1], a[k + 1][0], a[k + 1][1]}, weights[2] = {b[k], b[k + 1]};
    multiply(c, sixteen, weights, Math{});
  }
  if constexpr (kTerms % 2 == 1) multiply_eight(c, a[kTerms - 1], b[kTerms - 1], Math{});
}

using Sums = float[kDown][kGroupQuad][4];

// One tap. rows: of the source, of the quad's first group; weights: of its kTerms first eights. Channels of
// the next group lie `group` bytes further.
template <class Math, int kTerms>
__device__ void multiply_tap(const uint32_t (&rows)[kDown], uint32_t weights, unsigned fresh, int group,
                             Sums& sums) {
  uint32_t b[kGroupQuad][kTerms], a[kDown][kTerms][2];
#pragma unroll
  for (int k = 0; k < kTerms; ++k) {
    uint32_t r[4];
    load_words(weights + k * 512, r);
#pragma unroll
    for (int t = 0; t < kGroupQuad; ++t) b[t][k] = r[t];
  }
  int offset = -group;
#pragma unroll
  for (int t = 0; t < kGroupQuad; ++t) {
    if (t == 0 || (fresh >> t & 1) != 0) {
      offset += group;
#pragma unroll
      for (int m = 0; m < kDown; ++m) load_terms<kTerms>(rows[m] + offset, a[m]);
    }
#pragma unroll
    for (int m = 0; m < kDown; ++m) multiply_terms<Math, kTerms>(sums[m][t], a[m], b[t]);
  }
}
// The same for groups of one eight of channels on both sides: two of them are read at once.
template <class Math>
__device__ void multiply_eights(const uint32_t (&rows)[kDown], uint32_t weights, Sums& sums) {
  uint32_t b[4];
  load_words(weights, b);
#pragma unroll
  for (int m = 0; m < kDown; ++m)
#pragma unroll
    for (int t = 0; t < kGroupQuad; t += 2) {
      uint32_t a[2][2];
      load_terms<2>(rows[m] + t * 16, a);
      multiply_eight(sums[m][t], a[0], b[t], Math{});
      multiply_eight(sums[m][t + 1], a[1], b[t + 1], Math{});
    }
}

template <class Math, int kTerms>
__device__ void multiply_steps(const GroupProduct& p, const Shared& room, int quad, int begin, int end,
                               const uint32_t (&rows)[kDown], Sums& sums) {
  const auto [first, fresh] = room.quads[quad];
  const int group = p.terms * 16, passes = p.terms / kTerms;
  const uint32_t lane = threadIdx.x % 32;
  uint32_t weights = shared_address(room.fragments) + (begin * p.quads + quad) * p.terms * 512 + lane * 16;
#pragma unroll 1
  for (int tap = begin; tap < end; ++tap, weights += p.quads * p.terms * 512) {
    const int behind = room.taps[tap].staged + first * group;
#pragma unroll 1
    for (int pass = 0; pass < passes; ++pass) {
      uint32_t at[kDown];
#pragma unroll
      for (int m = 0; m < kDown; ++m) at[m] = rows[m] + behind + pass * kTerms * 16;
      multiply_tap<Math, kTerms>(at, weights + pass * kTerms * 512, fresh, group, sums);
    }
  }
}

// All taps of a residue. rows: of 16 positions each, a lane's share of the addresses that matrices are read
// from.
template <class Math>
__device__ void multiply_taps(const GroupProduct& p, const Shared& room, int quad, int begin, int end,
                              const uint32_t (&rows)[kDown], Sums& sums) {
  if (p.terms % 2 == 0) return multiply_steps<Math, 2>(p, room, quad, begin, end, rows, sums);
  if (p.terms % 3 == 0) return multiply_steps<Math, 3>(p, room, quad, begin, end, rows, sums);
  if (p.terms > 1 || p.columns > 1) return multiply_steps<Math, 1>(p, room, quad, begin, end, rows, sums);
  const uint32_t lane = threadIdx.x % 32;
  uint32_t weights = shared_address(room.fragments) + (begin * p.quads + quad) * 512 + lane * 16;
#pragma unroll 2
  for (int tap = begin; tap < end; ++tap, weights += p.quads * 512) {
    const int behind = room.taps[tap].staged + quad * kGroupQuad * 16;
    uint32_t at[kDown];
#pragma unroll
    for (int m = 0; m < kDown; ++m) at[m] = rows[m] + behind;
    multiply_eights<Math>(at, weights, sums);
  }
}

template <class E>
__device__ uint32_t pair_of(float low, float high);
template <>
__device__ inline uint32_t pair_of<__half>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
template <>
__device__ inline uint32_t pair_of<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// Of the low 16 bits.
template <class E>
__device__ bool is_nan(uint32_t bits);
template <>
__device__ inline bool is_nan<__half>(uint32_t bits) {
  return (bits & 0x7fffu) > 0x7c00u;
}
template <>
__device__ inline bool is_nan<__nv_bfloat16>(uint32_t bits) {
  return (bits & 0x7fffu) > 0x7f80u;
}
// Whether one of the pairs may hold a NaN: infinities of both signs look like it, too.
template <class E>
__device__ bool sum_is_nan(const uint32_t (&words)[4]);
template <>
__device__ inline bool sum_is_nan<__half>(const uint32_t (&words)[4]) {
  const auto* const pairs = reinterpret_cast<const __half2*>(words);
  const __half2 sum = __hadd2(__hadd2(pairs[0], pairs[1]), __hadd2(pairs[2], pairs[3]));
  return __hisnan(__hadd(__low2half(sum), __high2half(sum)));
}
template <>
__device__ inline bool sum_is_nan<__nv_bfloat16>(const uint32_t (&words)[4]) {
  const auto* const pairs = reinterpret_cast<const __nv_bfloat162*>(words);
  const __nv_bfloat162 sum = __hadd2(__hadd2(pairs[0], pairs[1]), __hadd2(pairs[2], pairs[3]));
  return __hisnan(__hadd(__low2bfloat16(sum), __high2bfloat16(sum)));
}

// Word i of lane 4n + j becomes word j of lane 4n + i.
__device__ inline void transpose(uint32_t (&words)[4], int lane) {
#pragma unroll
  for (int distance = 1; distance <= 2; distance *= 2) {
    const bool upper = (lane & distance) != 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int low = distance == 1 ? 2 * i : i, high = low + distance;
      const uint32_t got = __shfl_xor_sync(~0u, upper ? words[low] : words[high], distance);
      words[low] = upper ? got : words[low];
      words[high] = upper ? words[high] : got;
    }
  }
}

}  // namespace retrograd::kernels::cuda::group_rows_tiles
