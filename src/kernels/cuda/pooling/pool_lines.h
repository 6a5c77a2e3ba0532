// SPDX-License-Identifier: Apache-2.0
// Tiles of a tensor on their way into shared memory and back. What neighbours in memory is a run, and is
// moved in chunks of 16 bytes wherever it begins: it lies as far behind 16 bytes in shared memory as in the
// tensor.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pooling/pool_words.h"

namespace retrograd::kernels::cuda {

struct PoolRuns {
  int outer, inner, length;                  // outer x inner runs of `length` elements
  int first, outer_step, inner_step, total;  // in the tensor: the first element, distances, all elements
  int at, outer_pitch, inner_pitch;          // in shared memory
  FastDiv inners, chunks;                    // inner runs, and chunks of a run, at most
};

// Calls function(from, at, n) for the thread's chunks: where they begin in the tensor, in shared memory and
// in the run, of which the first may begin before it and the last end behind it.
template <int kV, class Function>
RG_DEVICE void for_chunks(const PoolRuns& r, uint32_t thread, uint32_t threads, const Function& function) {
  if (r.outer * r.inner == 1) {
    const int before = r.at & (kV - 1);
    RG_UNROLL_BY(4)
    for (int n = static_cast<int>(thread) * kV - before; n < r.length; n += static_cast<int>(threads) * kV)
      function(r.first + n, r.at + n, n);
    return;
  }
  const uint32_t all = static_cast<uint32_t>(r.outer) * r.inners.divisor * r.chunks.divisor;
  RG_UNROLL_BY(1)
  for (uint32_t i = thread; i < all; i += threads) {
    uint32_t chunk = i;
    uint32_t inner = r.chunks.split(chunk);
    const auto outer = static_cast<int>(r.inners.split(inner)), run = static_cast<int>(inner);
    const int at = r.at + outer * r.outer_pitch + run * r.inner_pitch;
    const int n = static_cast<int>(chunk) * kV - (at & (kV - 1));
    if (run < r.inner && n < r.length)
      function(r.first + outer * r.outer_step + run * r.inner_step + n, at + n, n);
  }
}

// Neighbours in the same 16 bytes may be read, too, but nothing outside the tensor.
template <class T>
RG_DEVICE void stage_runs(const PoolRuns& r, uint32_t thread, uint32_t threads, const T* tensor, T* staged) {
  constexpr int kV = 16 / sizeof(T);
  for_chunks<kV>(r, thread, threads, [&](int from, int at, int n) {
    if (from >= 0 && from <= r.total - kV) return copy_words(staged + at, tensor + from);
    RG_UNROLL_BY(1)
    for (int i = 0; i < kV; ++i)
      if (n + i >= 0 && n + i < r.length) staged[at + i] = tensor[from + i];
  });
}

template <class T>
RG_DEVICE void flush_runs(const PoolRuns& r, uint32_t thread, uint32_t threads, const T* results, T* tensor) {
  constexpr int kV = 16 / sizeof(T);
  for_chunks<kV>(r, thread, threads, [&](int to, int at, int n) {
    const PoolWords words = *reinterpret_cast<const PoolWords*>(results + at);
    if (n >= 0 && n <= r.length - kV) {
      *reinterpret_cast<PoolWords*>(tensor + to) = words;
      return;
    }
    T values[kV];
    memcpy(values, &words, sizeof(values));
    RG_UNROLL
    for (int i = 0; i < kV; ++i)
      if (n + i >= 0 && n + i < r.length) tensor[to + i] = values[i];
  });
}

}  // namespace retrograd::kernels::cuda
