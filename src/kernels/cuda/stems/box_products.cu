// SPDX-License-Identifier: Apache-2.0
// y[n,o,p] = Σ_{t,c} x[n,c,position(p,t)] · w[o,c,t] for the few c of a group (box_plan.h)
//
// Four warps take 32 pixels each, by all columns of the block. A fragment of two times 16 pixels is gathered
// from the staged box, 2 bytes a read (4 where two channels lie side by side, and of FP32) and serves up to
// 16 products of tensor cores; fragments of weights are one read each. FP32 is made of three TF32 products.
//
// Values of x beyond the edge are zeros; a result that is NaN, where a zero may have met an infinity or an
// infinity was split, is taken from the formula.
#include "kernels/cuda/copy_async.cuh"
#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/stems/box_plan.h"
#include "kernels/cuda/stems/box_results.cuh"

namespace retrograd::kernels::cuda {
namespace {

template <class T>
struct MathOf;
template <>
struct MathOf<float> {
  using Type = InF32;
};
template <>
struct MathOf<__half> {
  using Type = InF16;
};
template <>
struct MathOf<__nv_bfloat16> {
  using Type = InBF16;
};

constexpr int kDown = 2;    // fragments of places of a warp
constexpr int kSettle = 4;  // fragments of a sum between additions in FP32 (tile_mma.cuh)

template <class T>
__device__ void stage_box(const Conv& conv, const BoxProduct& p, const BoxPlace& at, const T* x, T* box) {
  constexpr int kAtOnce = 4;
  const int total = p.channels * static_cast<int>(p.by_volume.divisor);
  x += at.n * conv.x.strides[0];
  for (int first = static_cast<int>(threadIdx.x); first < total; first += kAtOnce * kBoxThreads) {
    T values[kAtOnce];
    int to[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      to[i] = -1;
      if (first + i * kBoxThreads >= total) continue;
      const BoxElement e = box_element(p, at, first + i * kBoxThreads);
      const T* const from = x + e.c * conv.x.strides[1] + e.d * conv.x.strides[2] + e.h * conv.x.strides[3] +
                            e.w * conv.x.strides[4];
      if constexpr (sizeof(T) == 4) {
        if (e.inside)
          copy_async_4(box + e.to, from);
        else
          box[e.to] = from_float<T>(0.0f);
      } else {
        to[i] = e.to;
        values[i] = e.inside ? *from : from_float<T>(0.0f);
      }
    }
    if constexpr (sizeof(T) == 2) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (to[i] >= 0) box[to[i]] = values[i];
    }
  }
}

// Those of terms `begin` to `begin` + chunk, zeros beyond the last term and the last channel.
template <class T>
__device__ void stage_weights(const Conv& conv, const BoxProduct& p, const T* w, int begin, int channels,
                              const int* terms, T* weights) {
  constexpr int kAtOnce = 4;
  const int total = p.chunk * p.columns;
  for (int first = static_cast<int>(threadIdx.x); first < total; first += kAtOnce * kBoxThreads) {
    T values[kAtOnce];
    int to[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      auto term = static_cast<uint32_t>(min(first + i * kBoxThreads, total - 1));
      const auto column = static_cast<int>(p.by_chunk.split(term));
      const int at = begin + static_cast<int>(term);
      to[i] = weight_place(p, static_cast<int>(term), column);
      values[i] =
          at < p.terms && column < channels ? w[column * conv.w.strides[0] + terms[at]] : from_float<T>(0.0f);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (first + i * kBoxThreads < total) weights[to[i]] = values[i];
  }
}

__device__ inline uint32_t bits_of(float value) { return __float_as_uint(value); }
template <class T>
__device__ uint32_t bits_of(T value) {
  return *reinterpret_cast<const uint16_t*>(&value);
}

// kGuard: terms may lie beyond the last, whose offset is negative; they are zeros.
template <bool kGuard, class T>
__device__ uint32_t term_bits(const T* window, int offset) {
  if constexpr (kGuard)
    if (offset < 0) return 0;
  return bits_of(window[offset]);
}

// The fragments of 32 places: of 16 bits, two terms a word; windows: of rows g and g + 8 of each.
template <bool kGuard, class T>
__device__ void gather_fragments(const T* box, const int (&windows)[kDown][2], const int* terms, bool pairs,
                                 uint32_t (&a)[kDown][4]) {
  const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if constexpr (sizeof(T) == 4) {
      const int offset = terms[t + half * 4];
#pragma unroll
      for (int i = 0; i < kDown * 2; ++i)
        a[i / 2][half * 2 + i % 2] = term_bits<kGuard>(box + windows[i / 2][i % 2], offset);
    } else {
      const int2 offsets = *reinterpret_cast<const int2*>(terms + 2 * t + half * 8);
#pragma unroll
      for (int i = 0; i < kDown * 2; ++i) {
        const T* const window = box + windows[i / 2][i % 2];
        uint32_t& word = a[i / 2][half * 2 + i % 2];
        if (pairs)  // both terms are there, or neither: their number is even
          word = kGuard && offsets.x < 0 ? 0 : *reinterpret_cast<const uint32_t*>(window + offsets.x);
        else
          word = term_bits<kGuard>(window, offsets.x) | term_bits<kGuard>(window, offsets.y) << 16;
      }
    }
  }
}

template <class T, int kColumns>
__global__ void __launch_bounds__(kBoxThreads, 4)
    box_kernel(const __grid_constant__ Conv conv, const __grid_constant__ BoxProduct p) {
  constexpr int kTerms = 32 / static_cast<int>(sizeof(T)), kAcross = kColumns / 8;
  extern __shared__ __align__(16) unsigned char shared[];
  T* const box = reinterpret_cast<T*>(shared);
  T* const weights = reinterpret_cast<T*>(shared + p.box_bytes);
  int* const terms = reinterpret_cast<int*>(shared + p.box_bytes + p.weight_bytes);  // staged
  int* const weight_terms = terms + p.filled;
  const auto lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const auto group = static_cast<int64_t>(blockIdx.y) / p.column_tiles;
  const int first_column = static_cast<int>(blockIdx.y) % p.column_tiles * kColumns;
  const int64_t channel = group * p.outputs + first_column;
  const int channels = min(kColumns, p.outputs - first_column);
  const T* const x = static_cast<const T*>(conv.x.data) + group * p.channels * conv.x.strides[1];
  const T* const w = static_cast<const T*>(conv.w.data) + channel * conv.w.strides[0];

  for (int i = static_cast<int>(threadIdx.x); i < p.filled; i += kBoxThreads) {
    const BoxTerm term = box_term(p, i);
    terms[i] = i < p.terms ? term.staged : -1;
    weight_terms[i] = i < p.terms
                          ? static_cast<int>(term.channel * conv.w.strides[1] + term.d * conv.w.strides[2] +
                                             term.h * conv.w.strides[3] + term.w * conv.w.strides[4])
                          : 0;
  }
  int windows[kDown][2];
#pragma unroll
  for (int i = 0; i < kDown * 2; ++i) {
    const int place = warp * 32 + i * 8 + lane / 4;
    windows[i / 2][i % 2] = place < p.places ? window_of(p, in_box(p, place)) : 0;
  }
  __syncthreads();

#pragma unroll 1
  for (int round = 0; round < p.rounds; ++round) {
    const uint32_t number = blockIdx.x * static_cast<uint32_t>(p.rounds) + static_cast<uint32_t>(round);
    if (number >= p.boxes) return;
    const BoxPlace at = box_place(p, number);
    stage_box(conv, p, at, x, box);
    WarpSums<typename MathOf<T>::Type, kDown * 16, kColumns> sums;
    for (int begin = 0; begin < p.filled; begin += p.chunk) {
      if (begin > 0) __syncthreads();  // the chunk before is multiplied
      if (round == 0 || p.chunk < p.filled) stage_weights(conv, p, w, begin, channels, weight_terms, weights);
      copy_async_wait();
      __syncthreads();
      const int fragments = min(p.chunk, p.filled - begin) / kTerms;
#pragma unroll 1
      for (int f = 0; f < fragments; ++f) {
        const int first = begin + f * kTerms;
        uint32_t a[kDown][4], b[kAcross][2];
        if (first + kTerms <= p.terms)
          gather_fragments<false>(box, windows, terms + first, p.pairs, a);
        else
          gather_fragments<true>(box, windows, terms + first, p.pairs, a);
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
          const uint2 words = reinterpret_cast<const uint2*>(weights)[(f * kAcross + j) * 32 + lane];
          b[j][0] = words.x, b[j][1] = words.y;
        }
        sums.add(a, b);
        if (f % kSettle == kSettle - 1) sums.settle();
      }
      sums.settle();
    }
    __syncthreads();  // the box is free
    const BoxResults<T, kColumns> results{conv, p, at, channel, channels, reinterpret_cast<float*>(shared)};
    results.put(sums.sums);
    __syncthreads();
    if (__syncthreads_or(results.store() ? 1 : 0) != 0) results.repair();
    __syncthreads();
  }
}

template <class T, int kColumns>
void launch(const Conv& conv, const BoxPlan& plan, Stream stream) {
  const auto bytes = static_cast<int>(plan.shared);
  start(box_kernel<T, kColumns>, {plan.blocks, conv.groups * plan.product.column_tiles}, kBoxThreads, bytes,
        stream, conv, plan.product);
}

}  // namespace

void box_products(const Conv& conv, const BoxPlan& plan, Stream stream) {
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    if (plan.product.columns == 16) return launch<T, 16>(conv, plan, stream);
    if (plan.product.columns == 32) return launch<T, 32>(conv, plan, stream);
    if constexpr (sizeof(T) == 2) launch<T, 64>(conv, plan, stream);
  });
}

}  // namespace retrograd::kernels::cuda
