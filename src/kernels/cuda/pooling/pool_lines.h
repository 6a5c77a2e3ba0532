// SPDX-License-Identifier: Apache-2.0
// Tiles of a tensor on their way into shared memory, as FP32, and back. What neighbours in memory is a run,
// and is moved in chunks of 16 bytes wherever it begins: it lies as far behind 16 bytes in shared memory as
// in the tensor.
#pragma once

#include "kernels/cuda/pooling/pool_words.h"

namespace retrograd::kernels::cuda {

// 16 bytes in a tensor, or one element where kV is 1.
template <class T, int kV>
struct alignas(sizeof(T) * kV) PoolChunk {
  T values[kV];
};

// Runs of neighbouring elements in a tensor and in shared memory, `pitch` apart. One run is shared by all
// threads, several by warps: neighbouring lanes take neighbouring chunks.
struct PoolRuns {
  int count, length;
  uint32_t run, run_step, chunk, chunk_step;
};
RG_DEVICE inline PoolRuns runs_of(int count, int length, uint32_t thread, uint32_t threads) {
  if (count == 1) return {count, length, 0, 1, thread, threads};
  return {count, length, thread / 32, threads / 32, thread % 32, 32};
}

// Neighbours in the same 16 bytes may be read, too, but nothing outside the tensor.
template <int kV>
RG_DEVICE inline bool is_inside(int from, int total) {
  return from >= 0 && from <= total - kV;
}

template <class Codec>
RG_DEVICE void put_words(const PoolWords& words, float* staged) {
  using T = typename Codec::Type;
  constexpr int kV = 16 / sizeof(T), kFloats = 4;
  T values[kV];
  memcpy(values, &words, 16);
  RG_UNROLL
  for (int v = 0; v < kV; v += kFloats) {
    PoolChunk<float, kFloats> floats;
    RG_UNROLL
    for (int i = 0; i < kFloats; ++i) floats.values[i] = Codec::load(values[v + i]);
    *reinterpret_cast<PoolChunk<float, kFloats>*>(staged + v) = floats;
  }
}

// Lines of one or more planes: one run where they are whole, else a run a line.
struct PoolLines {
  bool whole;
  int planes, rows, columns;  // columns: elements of a line
  int first, line, total;     // in the tensor: its first element, the distance of lines, all elements
  int at, pitch;              // in shared memory: the first one, the distance of lines
};

RG_DEVICE inline PoolRuns runs_of(const PoolLines& t, uint32_t thread, uint32_t threads) {
  return t.whole ? runs_of(1, t.planes * t.rows * t.line, thread, threads)
                 : runs_of(t.rows, t.columns, thread, threads);
}

// A few chunks are under way together.
template <class Codec>
RG_DEVICE void stage_lines(const PoolLines& t, uint32_t thread, uint32_t threads,
                           const typename Codec::Type* tensor, float* staged) {
  using T = typename Codec::Type;
  constexpr int kV = 16 / sizeof(T), kEach = 4;
  const PoolRuns runs = runs_of(t, thread, threads);
  for (auto run = static_cast<int>(runs.run); run < runs.count; run += static_cast<int>(runs.run_step)) {
    const int at = t.at + run * t.pitch, before = at & (kV - 1);
    const int from = t.first + run * t.line - before, all = runs.length + before;
    const auto step = static_cast<int>(runs.chunk_step) * kV;
    for (int i = static_cast<int>(runs.chunk) * kV; i < all; i += kEach * step) {
      PoolWords read[kEach];
      RG_UNROLL
      for (int e = 0; e < kEach; ++e)
        if (i + e * step < all && is_inside<kV>(from + i + e * step, t.total))
          read[e] = *reinterpret_cast<const PoolWords*>(tensor + from + i + e * step);
      RG_UNROLL
      for (int e = 0; e < kEach; ++e) {
        const int n = i + e * step;
        if (n >= all) break;
        float* const to = staged + (at - before + n);
        if (is_inside<kV>(from + n, t.total)) {
          put_words<Codec>(read[e], to);
          continue;
        }
        RG_UNROLL_BY(1)
        for (int v = 0; v < kV; ++v)
          if (n + v >= before && n + v < all) to[v] = Codec::load(tensor[from + n + v]);
      }
    }
  }
}

template <class T>
RG_DEVICE void flush_lines(const PoolLines& t, uint32_t thread, uint32_t threads, const T* results,
                           T* tensor) {
  constexpr int kV = 16 / sizeof(T);
  const PoolRuns runs = runs_of(t, thread, threads);
  for (auto run = static_cast<int>(runs.run); run < runs.count; run += static_cast<int>(runs.run_step)) {
    const int at = t.at + run * t.pitch, before = at & (kV - 1);
    for (int n = static_cast<int>(runs.chunk) * kV - before; n < runs.length;
         n += static_cast<int>(runs.chunk_step) * kV) {
      T* const to = tensor + (t.first + run * t.line + n);
      const T* const from = results + at + n;
      if (n >= 0 && n + kV <= runs.length) {
        *reinterpret_cast<PoolWords*>(to) = *reinterpret_cast<const PoolWords*>(from);
        continue;
      }
      RG_UNROLL_BY(1)
      for (int i = 0; i < kV; ++i)
        if (n + i >= 0 && n + i < runs.length) to[i] = from[i];
    }
  }
}

}  // namespace retrograd::kernels::cuda
