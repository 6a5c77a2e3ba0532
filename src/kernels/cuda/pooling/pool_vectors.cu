// SPDX-License-Identifier: Apache-2.0
// grad_input[q] = Σ_{p : q in window p} grad_output[p] / divisor(p) on channels-last tensors.
//
// A thread takes 16 bytes of channels of a column and walks down a band of rows. Each line of grad_output
// gives one sum, across the windows that hold the column and over the depths that hold the plane; the last
// few of those are kept in registers, and a place is the sum of the ones that hold it. What neighbouring
// columns have in common comes from L1. The next line is under way while one is added.
// Bytes: grad_output once, but for lines that two bands need; grad_input once.
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pooling/pool_plan.h"
#include "kernels/cuda/pooling/pool_vectors.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 128;

struct Vectors {
  Windows windows;
  FastDiv vectors, columns, bands, depths, strides[3];
  uint32_t threads;
  int reach_h, reach_w;  // windows that hold a place, at most
  int split_h;           // places of a stride that reach_h windows hold; one less holds the others
  int band;
};

// Loaded as words: halves of registers would be waited for one load at a time.
struct alignas(16) Words {
  uint32_t values[4];
};

template <class T, int kReach>
struct Line {
  static constexpr int kV = 16 / sizeof(T);
  Words words[kReach];

  // Bit j of held: the j-th window from the first holds the column.
  __device__ void load(const T* from, int step, uint32_t held) {
#pragma unroll
    for (int j = 0; j < kReach; ++j) {
      words[j] = Words{};
      if ((held >> j & 1u) != 0) words[j] = *reinterpret_cast<const Words*>(from + j * step);
    }
  }
  // Windows that do not hold it were loaded as zeros.
  __device__ void add(const Windows& windows, int rows, int first, float (&sums)[kV]) const {
#pragma unroll
    for (int j = 0; j < kReach; ++j) {
      const float factor =
          windows.uniform
              ? 1.0f
              : 1.0f / (static_cast<float>(rows) * static_cast<float>(count_of(windows.axes[2], first + j)));
      T values[kV];
      memcpy(values, &words[j], sizeof(values));
#pragma unroll
      for (int v = 0; v < kV; ++v) sums[v] = fmaf(to_float(values[v]), factor, sums[v]);
    }
  }
};

__device__ bool is_inside(int index, int size) {
  return static_cast<unsigned>(index) < static_cast<unsigned>(size);
}

// kReach: p.reach_h where it is exact, else at least that; p.reach_w or more.
template <class T, int kReach, bool kExact, bool kDeep>
__global__ void __launch_bounds__(kThreads, kReach <= 4 ? 5 : 2)
    vectors_kernel(const __grid_constant__ Vectors p, const T* __restrict__ y, T* __restrict__ x) {
  constexpr int kV = 16 / sizeof(T);
  uint32_t vector = blockIdx.x * kThreads + threadIdx.x;
  if (vector >= p.threads) return;
  uint32_t column = p.vectors.split(vector);
  uint32_t band = p.columns.split(column);
  uint32_t depth = p.bands.split(band);
  const int64_t image = p.depths.split(depth);
  const auto& [ad, ah, aw] = p.windows.axes;
  const int step = static_cast<int>(p.vectors.divisor) * kV;  // of a place
  const int reach = kExact ? kReach : p.reach_h;

  uint32_t within_w = column + static_cast<uint32_t>(aw.pad);
  const int first = static_cast<int>(p.strides[2].split(within_w)) - (kReach - 1);
  uint32_t held = 0;
#pragma unroll
  for (int j = 0; j < kReach; ++j)
    if (j < p.reach_w && static_cast<int>(within_w) + j * aw.stride < aw.kernel &&
        is_inside(first + kReach - 1 - j, aw.y))
      held |= 1u << (kReach - 1 - j);

  int first_depth = 0, end_depth = 1;
  if constexpr (kDeep) {
    const int shifted = static_cast<int>(depth) + ad.pad;
    first_depth = shifted < ad.kernel ? 0 : static_cast<int>(p.strides[0].quotient(shifted - ad.kernel)) + 1;
    end_depth = min(static_cast<int>(p.strides[0].quotient(shifted)) + 1, ad.y);
  }

  const int row = static_cast<int>(band) * p.band;
  uint32_t within = static_cast<uint32_t>(row + ah.pad);
  int window = static_cast<int>(p.strides[1].split(within));
  const int64_t pitch = static_cast<int64_t>(aw.y) * step, layer = pitch * ah.y;
  const T* line = y + (image * ad.y + (kDeep ? 0 : static_cast<int>(depth))) * layer + window * pitch +
                  static_cast<int64_t>(first) * step + vector * kV;
  const auto sum_line = [&](int number, const T* from, float(&sums)[kV]) {
    const uint32_t live = is_inside(number, ah.y) ? held : 0;
    const int rows = p.windows.uniform ? 1 : count_of(ah, number);
    for (int od = first_depth; od < end_depth; ++od) {
      Line<T, kReach> values;
      values.load(from + od * layer, step, live);
      values.add(p.windows, rows * (kDeep && !p.windows.uniform ? count_of(ad, od) : 1), first, sums);
    }
  };
  float sums[kReach][kV] = {};  // of the window that begins here or just before, of the one before that, …
#pragma unroll
  for (int j = 1; j < kReach; ++j)
    if (j < reach) sum_line(window - j, line - j * pitch, sums[j]);

  T* out = x +
           ((image * static_cast<int>(p.depths.divisor) + static_cast<int>(depth)) * ah.x + row) *
               (static_cast<int64_t>(aw.x) * step) +
           static_cast<int64_t>(column) * step + vector * kV;
  const int64_t out_pitch = static_cast<int64_t>(aw.x) * step;
  int left = min(p.band, ah.x - row);
  Line<T, kReach> next;
  if constexpr (!kDeep) next.load(line, step, is_inside(window, ah.y) ? held : 0);
  for (;;) {
#pragma unroll
    for (int v = 0; v < kV; ++v) sums[0][v] = 0;
    if constexpr (kDeep) {
      sum_line(window, line, sums[0]);
    } else {
      const Line<T, kReach> now = next;
      const bool more = left > ah.stride - static_cast<int>(within);
      next.load(line + pitch, step, more && is_inside(window + 1, ah.y) ? held : 0);
      now.add(p.windows, p.windows.uniform ? 1 : count_of(ah, window), first, sums[0]);
    }
    float less[kV] = {}, all[kV] = {};
#pragma unroll
    for (int j = kReach - 1; j >= 0; --j)
#pragma unroll
      for (int v = 0; v < kV; ++v) {
        if (j < reach - 1) less[v] += sums[j][v];
        if (!kExact && j < reach) all[v] += sums[j][v];
      }
#pragma unroll
    for (int v = 0; v < kV; ++v) {
      if (kExact) all[v] = less[v] + sums[kReach - 1][v];
      all[v] = fmaf(all[v], p.windows.scale, 0.0f);  // no negative zeros
      less[v] = fmaf(less[v], p.windows.scale, 0.0f);
    }
    int rows = min(ah.stride - static_cast<int>(within), left);
    left -= rows;
    int held_by_all = max(min(p.split_h - static_cast<int>(within), rows), 0);
    rows -= held_by_all;
    for (; held_by_all > 0; --held_by_all, out += out_pitch) store_pack<T, kV>(out, all);
    for (; rows > 0; --rows, out += out_pitch) store_pack<T, kV>(out, less);
    if (left == 0) return;
    within = 0;
    ++window;
    line += pitch;
#pragma unroll
    for (int j = kReach - 1; j > 0; --j)
#pragma unroll
      for (int v = 0; v < kV; ++v) sums[j][v] = sums[j - 1][v];
  }
}

template <class T, int kReach, bool kExact, bool kDeep>
void launch(const Pool& pool, const Vectors& p, Stream stream) {
  vectors_kernel<T, kReach, kExact, kDeep><<<(p.threads + kThreads - 1) / kThreads, kThreads, 0, stream>>>(
      p, static_cast<const T*>(pool.y.data), static_cast<T*>(pool.x.data));
}

template <class T>
void run(const Pool& pool, Stream stream) {
  const auto& [d, h, w] = pool.axes;
  const VectorsCut cut = vectors_cut(pool);
  const int64_t vectors = pool.channels * static_cast<int64_t>(sizeof(T)) / 16,
                bands = (h.x + cut.band - 1) / cut.band;
  Vectors p{};
  p.windows = windows_of(pool);
  p.vectors = FastDiv(vectors);
  p.columns = FastDiv(w.x);
  p.bands = FastDiv(bands);
  p.depths = FastDiv(d.x);
  for (int i = 0; i < 3; ++i) p.strides[i] = FastDiv(pool.axes[i].stride);
  p.threads = static_cast<uint32_t>(pool.batch * d.x * bands * w.x * vectors);
  p.reach_h = cut.reach_h;
  p.reach_w = cut.reach_w;
  p.split_h = static_cast<int>(h.kernel - (cut.reach_h - 1) * h.stride);
  p.band = cut.band;
  const bool small = cut.reach_h <= 4 && cut.reach_w <= 4;
  if (cut.deep)
    return small ? launch<T, 4, false, true>(pool, p, stream) : launch<T, 8, false, true>(pool, p, stream);
  if (cut.reach_w <= cut.reach_h) {
    if (cut.reach_h == 1) return launch<T, 1, true, false>(pool, p, stream);
    if (cut.reach_h == 2) return launch<T, 2, true, false>(pool, p, stream);
    if (cut.reach_h == 3) return launch<T, 3, true, false>(pool, p, stream);
    if (cut.reach_h == 4) return launch<T, 4, true, false>(pool, p, stream);
  }
  small ? launch<T, 4, false, false>(pool, p, stream) : launch<T, 8, false, false>(pool, p, stream);
}

}  // namespace

void pool_vectors(const Pool& pool, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) { run<decltype(type)>(pool, stream); });
}

}  // namespace retrograd::kernels::cuda
