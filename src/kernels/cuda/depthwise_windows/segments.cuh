// SPDX-License-Identifier: Apache-2.0
// Lines of any alignment, from memory into shared memory in vectors of 16 bytes.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/depthwise_windows/segments_item.h"
#include "kernels/cuda/pack.cuh"

namespace retrograd::kernels::cuda {

template <class T>
inline constexpr int kSegmentWide = 16 / static_cast<int>(sizeof(T));

// A dense tensor of lines.
template <class T>
struct SegmentLines {
  const T* data;
  int64_t total;       // elements
  int length, phase;   // elements of a line, and from the boundary of 16 bytes before the tensor
  int span;            // staged elements of a line
  FastDiv by_vectors;  // vectors that they touch, at most
};
template <class T>
SegmentLines<T> segment_lines(const void* data, int64_t total, int length, int span) {
  const auto phase = static_cast<int>(reinterpret_cast<uintptr_t>(data) % 16 / sizeof(T));
  return {
      static_cast<const T*>(data), total, length, phase, span, FastDiv(most_vectors(span, kSegmentWide<T>))};
}

// A vector of a line's span, on its way into shared memory.
template <class T>
struct VectorInFlight {
  Pack<T, kSegmentWide<T>> values;
  StagedVector at;
  int base;  // of the line
  bool live;
};

// What is staged: spans of `lines` lines from `first` on, each from place `lowest`, one behind the other as
// `padded` says.
struct StagedLines {
  int64_t first;
  int lines, lowest;
};

template <class T>
__device__ int vectors_of(const SegmentLines<T>& s, const StagedLines& staged) {
  return staged.lines * static_cast<int>(s.by_vectors.divisor);
}

template <class T>
__device__ VectorInFlight<T> fetch(const SegmentLines<T>& s, const StagedLines& staged, int number) {
  constexpr int kWide = kSegmentWide<T>;
  VectorInFlight<T> vector;
  vector.live = number < vectors_of(s, staged);
  auto of_line = static_cast<uint32_t>(number);
  const auto line = static_cast<int>(s.by_vectors.split(of_line));
  vector.base = line * s.span;
  vector.at = staged_vector(kWide, s.phase, static_cast<int>(of_line), staged.first + line, s.length,
                            staged.lowest, s.total);
  const StagedVector& at = vector.at;
  *reinterpret_cast<uint4*>(&vector.values) = make_uint4(0, 0, 0, 0);
  if (!vector.live || !at.any) return vector;
  if (at.whole) {
    vector.values = *reinterpret_cast<const Pack<T, kWide>*>(s.data + at.from);
    return vector;
  }
#pragma unroll
  for (int i = 0; i < kWide; ++i)
    if (static_cast<uint32_t>(at.place + i) < static_cast<uint32_t>(s.length))
      vector.values.values[i] = s.data[at.from + i];
  return vector;
}

template <class T>
__device__ void put(const SegmentLines<T>& s, const VectorInFlight<T>& vector, float* shared) {
  if (!vector.live) return;
  stage<kSegmentWide<T>>(vector.at, s.span, s.length, [&](int index, int i, bool inside) {
    shared[padded(vector.base + index)] = inside ? to_float(vector.values.values[i]) : 0.0f;
  });
}

// Vectors of a thread that are on their way while it does something else: about 16 KiB a block.
template <class T>
inline constexpr int kVectorsAhead = static_cast<int>(sizeof(T)) / 2;

template <class T>
__device__ void fetch_ahead(const SegmentLines<T>& s, const StagedLines& staged,
                            VectorInFlight<T> (&ahead)[kVectorsAhead<T>]) {
#pragma unroll
  for (int j = 0; j < kVectorsAhead<T>; ++j)
    ahead[j] = fetch(s, staged, static_cast<int>(threadIdx.x + j * blockDim.x));
}
// Those ahead, and the others.
template <class T>
__device__ void put_all(const SegmentLines<T>& s, const StagedLines& staged,
                        const VectorInFlight<T> (&ahead)[kVectorsAhead<T>], float* shared) {
#pragma unroll
  for (int j = 0; j < kVectorsAhead<T>; ++j) put(s, ahead[j], shared);
  for (int i = static_cast<int>(threadIdx.x + kVectorsAhead<T> * blockDim.x); i < vectors_of(s, staged);
       i += static_cast<int>(blockDim.x))
    put(s, fetch(s, staged, i), shared);
}

}  // namespace retrograd::kernels::cuda
