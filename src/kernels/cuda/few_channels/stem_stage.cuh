// SPDX-License-Identifier: Apache-2.0
// A chunk of y channels and their weights brought into shared memory as FP32: y as [channel][row][column]
// with zeros beyond its edge, weights as [channel][class][row of taps][tap][x channel], as threads read them.
//
// FP32 goes past the registers (cp.async) and is waited for a chunk later; 16-bit elements are loaded several
// at once, made wider and stored.
#pragma once

#include "kernels/cuda/copy_async.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/few_channels/stem_plan.h"

namespace retrograd::kernels::cuda {

// Box of one depth of y: `data` is its first channel's first place, row0 and column0 where the box begins.
template <class T>
struct StemBox {
  const T* data;
  int64_t channel, row, column;  // elements from one to the next
  int row0, column0;
};

// Four columns of a row, c and each `step` after it; `from` is column 0 of the box in y, live whether the row
// is inside.
template <class T>
__device__ void stage_columns(float* to, const StemPlan& p, const StemBox<T>& box, const T* from, bool live,
                              int c, int step) {
  constexpr int kCount = 4;
  const auto is_live = [&](int column) {
    return live && static_cast<unsigned>(box.column0 + column) < static_cast<unsigned>(p.w.y);
  };
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int column = c + i * step;
      if (column >= p.box_columns) break;
      float* const target = to + stem_column(column);
      if (is_live(column))
        copy_async_4(target, from + column * box.column);
      else
        *target = 0.0f;
    }
  } else {
    float values[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int column = c + i * step;
      values[i] = column < p.box_columns && is_live(column) ? to_float(from[column * box.column]) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      if (c + i * step < p.box_columns) to[stem_column(c + i * step)] = values[i];
  }
}

// Rows of y, whose neighbouring columns neighbouring threads take.
template <class T>
__device__ void stage_rows(float* target, const StemPlan& p, const StemBox<T>& box, int count) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread & (p.lanes - 1);
  const int lines = count * p.box_rows, step = static_cast<int>(blockDim.x) / p.lanes;
  for (int line = thread / p.lanes; line < lines; line += step) {
    auto row = static_cast<uint32_t>(line);
    const uint32_t o = p.by_box_rows.split(row);
    float* const to = target + static_cast<int>(o) * p.plane + static_cast<int>(row) * p.pitch;
    const int h = box.row0 + static_cast<int>(row);
    const bool inside = static_cast<unsigned>(h) < static_cast<unsigned>(p.h.y);
    const T* const from = box.data + o * box.channel + h * box.row + box.column0 * box.column;
    for (int c = lane; c < p.box_columns; c += 4 * p.lanes)
      stage_columns(to, p, box, from, inside, c, p.lanes);
  }
}

// The same four columns at a time, which lie inside together or not at all.
template <class T>
__device__ void stage_wide(float* target, const StemPlan& p, const StemBox<T>& box, int count) {
  const int lines = count * p.box_rows;
  const int vectors = lines * static_cast<int>(p.by_groups_of_four.divisor);
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < vectors; i += static_cast<int>(blockDim.x)) {
    auto group = static_cast<uint32_t>(i);
    uint32_t row = p.by_groups_of_four.split(group);
    const uint32_t o = p.by_box_rows.split(row);
    const int h = box.row0 + static_cast<int>(row), c = static_cast<int>(group) * 4;
    auto* const to = reinterpret_cast<float4*>(target + static_cast<int>(o) * p.plane +
                                               static_cast<int>(row) * p.pitch + stem_column(c));
    const T* const from = box.data + o * box.channel + h * box.row + box.column0 + c;
    const bool inside = static_cast<unsigned>(h) < static_cast<unsigned>(p.h.y) &&
                        static_cast<unsigned>(box.column0 + c) < static_cast<unsigned>(p.w.y);
    if (!inside) {
      *to = make_float4(0, 0, 0, 0);
    } else if constexpr (sizeof(T) == 4) {
      copy_async_16(to, from);
    } else {
      struct alignas(8) Four {
        T values[4];
      };
      const Four four = *reinterpret_cast<const Four*>(from);
      *to = make_float4(to_float(four.values[0]), to_float(four.values[1]), to_float(four.values[2]),
                        to_float(four.values[3]));
    }
  }
}

// Channels last: neighbouring threads take neighbouring channels, then columns; a warp a row.
template <class T>
__device__ void stage_last(float* target, const StemPlan& p, const StemBox<T>& box, int count) {
  const int warp = static_cast<int>(threadIdx.x) / 32, warps = static_cast<int>(blockDim.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32, columns_at_once = 32 / count;
  const int o = lane % count, first = lane / count;
  if (first >= columns_at_once) return;
  for (int row = warp; row < p.box_rows; row += warps) {
    const int h = box.row0 + row;
    const bool inside = static_cast<unsigned>(h) < static_cast<unsigned>(p.h.y);
    float* const to = target + o * p.plane + row * p.pitch;
    const T* const from = box.data + o * box.channel + h * box.row + box.column0 * box.column;
    for (int c = first; c < p.box_columns; c += 4 * columns_at_once)
      stage_columns(to, p, box, from, inside, c, columns_at_once);
  }
}

// `count` channels, 32 at most.
template <class T>
__device__ void stage_box(float* target, const StemPlan& p, const StemBox<T>& box, int count) {
  if (p.wide) return stage_wide(target, p, box, count);
  if (p.last) return stage_last(target, p, box, count);
  stage_rows(target, p, box, count);
}

// Where a weight of a y channel comes from and where it goes; to < 0: beyond the x channels.
struct StemEntry {
  int from, to;
};

template <int kC>
__device__ void list_weights(StemEntry* entries, const Conv& conv, const StemPlan& p, int channels) {
  for (int i = static_cast<int>(threadIdx.x); i < p.entries; i += static_cast<int>(blockDim.x)) {
    const int c = i % kC, tap = i / kC, kh = tap / p.w.kernel, kw = tap % p.w.kernel;
    const int bh = kh % p.h.stride, bw = kw % p.w.stride;
    const int row = stem_taps(p.h, bh) - 1 - kh / p.h.stride,
              column = stem_taps(p.w, bw) - 1 - kw / p.w.stride;
    entries[i] = {
        static_cast<int>(c * conv.w.strides[1] + kh * conv.w.strides[3] + kw * conv.w.strides[4]),
        c < channels ? (bh * p.w.stride + bw) * p.weight_class + row * p.weight_row + column * kC + c : -1};
  }
}

// from: the first weight of the first y channel; channel: elements from one to the next.
template <class T>
__device__ void stage_weights(float* target, const StemEntry* entries, const StemPlan& p, const T* from,
                              int64_t channel, int count) {
  constexpr int kAtOnce = 4;
  const int total = count * p.entries, step = static_cast<int>(blockDim.x);
  for (int first = static_cast<int>(threadIdx.x); first < total; first += kAtOnce * step) {
    float* to[kAtOnce];
    const T* source[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      auto index = static_cast<uint32_t>(min(first + i * step, total - 1));
      const uint32_t o = p.by_entries.split(index);
      const StemEntry entry = entries[index];
      source[i] = from + o * channel + entry.from;
      to[i] = first + i * step >= total || entry.to < 0
                  ? nullptr
                  : target + static_cast<int>(o) * p.weight_channel + entry.to;
    }
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (to[i] != nullptr) copy_async_4(to[i], source[i]);
    } else {
      float values[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) values[i] = to[i] != nullptr ? to_float(*source[i]) : 0.0f;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (to[i] != nullptr) *to[i] = values[i];
    }
  }
}

}  // namespace retrograd::kernels::cuda
