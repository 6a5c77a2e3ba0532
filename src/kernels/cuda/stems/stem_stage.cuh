// SPDX-License-Identifier: Apache-2.0
// A chunk of y channels and their weights brought into shared memory as FP32: y as [channel][row][column]
// with zeros beyond its edge, weights as [channel][class][row of taps][tap][x channel], as threads read them.
//
// FP32 goes past the registers (cp.async) and is waited for a chunk later; 16-bit elements are loaded several
// at once, made wider and stored.
#pragma once

#include "kernels/cuda/copy_async.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/stems/stem_plan.h"

namespace retrograd::kernels::cuda {

// Box of one depth of y: `data` is its first channel's first place, row0 and column0 where the box begins.
template <class T>
struct StemBox {
  const T* data;
  int64_t channel, row, column;  // elements from one to the next
  int row0, column0;
};

// Lines first, first + line_step, … of `lines`, of each the columns c, c + column_step, …; line_of(i) says
// which channel and row a line is.
template <class T, class LineOf>
__device__ void stage_lines(float* target, const StemPlan& p, const StemBox<T>& box, int first, int line_step,
                            int lines, int first_column, int column_step, LineOf&& line_of) {
  // 16-bit loads are waited for here, so as many as registers allow are on their way together.
  constexpr int kLines = sizeof(T) == 4 ? 1 : 3, kColumns = sizeof(T) == 4 ? 4 : 5;
  const int64_t hop = column_step * box.column;
  const T* const data = box.data + (box.column0 + first_column) * box.column;
  for (int at = first; at < lines; at += kLines * line_step) {
    float* to[kLines];
    const T* from[kLines];  // the thread's first column; null: beyond the edge
#pragma unroll
    for (int k = 0; k < kLines; ++k) {
      const int2 line = line_of(min(at + k * line_step, lines - 1));
      const int h = box.row0 + line.y;
      to[k] = target + line.x * p.plane + line.y * p.pitch;
      from[k] = static_cast<unsigned>(h) < static_cast<unsigned>(p.h.y)
                    ? data + line.x * box.channel + h * box.row
                    : nullptr;
    }
    const auto is_live = [&](int k, int column) {
      return from[k] != nullptr && static_cast<unsigned>(box.column0 + column) < static_cast<unsigned>(p.w.y);
    };
    int64_t ahead = 0;
    for (int c = first_column; c < p.box_columns; c += kColumns * column_step, ahead += kColumns * hop) {
      if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < kColumns; ++i) {
          const int column = c + i * column_step;
          if (column >= p.box_columns) break;
          float* const place = to[0] + stem_column(column);
          if (is_live(0, column))
            copy_async_4(place, from[0] + ahead + i * hop);
          else
            *place = 0.0f;
        }
      } else {
        float values[kLines][kColumns];
#pragma unroll
        for (int k = 0; k < kLines; ++k)
#pragma unroll
          for (int i = 0; i < kColumns; ++i) {
            const int column = c + i * column_step;
            values[k][i] = column < p.box_columns && at + k * line_step < lines && is_live(k, column)
                               ? to_float(from[k][ahead + i * hop])
                               : 0.0f;
          }
#pragma unroll
        for (int k = 0; k < kLines; ++k)
#pragma unroll
          for (int i = 0; i < kColumns; ++i)
            if (c + i * column_step < p.box_columns && at + k * line_step < lines)
              to[k][stem_column(c + i * column_step)] = values[k][i];
      }
    }
  }
}

// Rows of y, whose neighbouring columns neighbouring threads take.
template <class T>
__device__ void stage_rows(float* target, const StemPlan& p, const StemBox<T>& box, int count) {
  const auto thread = static_cast<int>(threadIdx.x);
  stage_lines(target, p, box, thread / p.lanes, static_cast<int>(blockDim.x) / p.lanes, count * p.box_rows,
              thread & (p.lanes - 1), p.lanes, [&](int line) {
                auto row = static_cast<uint32_t>(line);
                const uint32_t o = p.by_box_rows.split(row);
                return make_int2(static_cast<int>(o), static_cast<int>(row));
              });
}

// Channels last: neighbouring threads take neighbouring channels, then columns; a warp a row.
template <class T>
__device__ void stage_last(float* target, const StemPlan& p, const StemBox<T>& box, int count) {
  const auto thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32, at_once = 32 / count, o = lane % count;
  if (lane / count < at_once)
    stage_lines(target, p, box, thread / 32, static_cast<int>(blockDim.x) / 32, p.box_rows, lane / count,
                at_once, [&](int row) { return make_int2(o, row); });
}

// Rows four columns at a time, which lie inside together or not at all.
template <class T>
__device__ void stage_wide(float* target, const StemPlan& p, const StemBox<T>& box, int count) {
  struct alignas(4 * sizeof(T)) Four {
    T values[4];
  };
  constexpr int kAtOnce = sizeof(T) == 4 ? 1 : 6;
  const int vectors = count * p.box_rows * static_cast<int>(p.by_groups_of_four.divisor);
  const auto step = static_cast<int>(blockDim.x);
  for (int first = static_cast<int>(threadIdx.x); first < vectors; first += kAtOnce * step) {
    float4* to[kAtOnce];
    Four fours[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      auto group = static_cast<uint32_t>(min(first + k * step, vectors - 1));
      uint32_t row = p.by_groups_of_four.split(group);
      const uint32_t o = p.by_box_rows.split(row);
      const int h = box.row0 + static_cast<int>(row), c = static_cast<int>(group) * 4;
      to[k] = reinterpret_cast<float4*>(target + static_cast<int>(o) * p.plane +
                                        static_cast<int>(row) * p.pitch + stem_column(c));
      const T* const from = box.data + o * box.channel + h * box.row + box.column0 + c;
      const bool inside = static_cast<unsigned>(h) < static_cast<unsigned>(p.h.y) &&
                          static_cast<unsigned>(box.column0 + c) < static_cast<unsigned>(p.w.y);
      if constexpr (sizeof(T) == 4) {
        if (inside)
          copy_async_16(to[k], from);
        else
          *to[k] = make_float4(0, 0, 0, 0);
      } else {
        fours[k] = Four{};
        if (inside) fours[k] = *reinterpret_cast<const Four*>(from);
      }
    }
    if constexpr (sizeof(T) == 2) {
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (first + k * step < vectors)
          *to[k] = make_float4(to_float(fours[k].values[0]), to_float(fours[k].values[1]),
                               to_float(fours[k].values[2]), to_float(fours[k].values[3]));
    }
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
