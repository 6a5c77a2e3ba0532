// SPDX-License-Identifier: Apache-2.0
// grad_input[q] = Σ_{p : q in window p} grad_output[p] / divisor on channels-last tensors, where every window
// divides by the same number. Neighbouring threads take neighbouring vectors of channels.
// Windows lie side by side, without padding: a thread writes one window's row, or every so many places of a
// long one.
// Bytes: grad_output once, grad_input once.
#include <algorithm>

#include "base/checked.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pooling/pool_kernels.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kLongestRun = 8;

__device__ uint32_t thread_number() { return blockIdx.x * kThreads + threadIdx.x; }

template <class T>
constexpr int kWide = 16 / sizeof(T);

struct SideBySide {
  uint32_t threads;
  FastDiv vectors, runs, of_window, h, d, sd, sh;  // runs: of a row of x, with those of a window cut off
  int sw, xw, yd, yh, yw;
  float scale;
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    side_by_side_kernel(const __grid_constant__ SideBySide p, const T* y, T* x) {
  uint32_t vector = thread_number();
  if (vector >= p.threads) return;
  uint32_t run = p.vectors.split(vector);
  const uint32_t row = p.runs.split(run);
  const uint32_t ow = p.of_window.split(run);
  uint32_t h = row;
  uint32_t d = p.h.split(h);
  const uint32_t image = p.d.split(d);
  const int od = static_cast<int>(p.sd.quotient(d)), oh = static_cast<int>(p.sh.quotient(h));
  const int64_t step = static_cast<int64_t>(p.vectors.divisor) * kWide<T>;  // of a place
  float values[kWide<T>] = {};
  if (od < p.yd && oh < p.yh && static_cast<int>(ow) < p.yw)
    load_pack<T, kWide<T>>(
        y + (((static_cast<int64_t>(image) * p.yd + od) * p.yh + oh) * p.yw + ow) * step + vector * kWide<T>,
        values);
#pragma unroll
  for (float& value : values) value = fmaf(value, p.scale, 0.0f);  // no negative zeros
  // Neighbouring threads write neighbouring places.
  const int begin = static_cast<int>(ow) * p.sw, count = min(p.sw, p.xw - begin),
            runs = static_cast<int>(p.of_window.divisor);
  T* const out = x + (static_cast<int64_t>(row) * p.xw + begin) * step + vector * kWide<T>;
  for (int i = static_cast<int>(run); i < count; i += runs) store_pack<T, kWide<T>>(out + i * step, values);
}

template <class T>
void launch_side_by_side(const Pool& pool, float scale, Stream stream) {
  const auto& [d, h, w] = pool.axes;
  const int64_t vectors = pool.channels / kWide<T>, windows = ceil_div(w.x, w.stride),
                covered = std::min(w.stride, w.x), of_window = ceil_div(covered, kLongestRun);
  SideBySide p;
  p.threads = static_cast<uint32_t>(pool.batch * d.x * h.x * windows * of_window * vectors);
  p.vectors = FastDiv(vectors);
  p.runs = FastDiv(windows * of_window);
  p.of_window = FastDiv(of_window);
  p.h = FastDiv(h.x);
  p.d = FastDiv(d.x);
  p.sd = FastDiv(d.stride);
  p.sh = FastDiv(h.stride);
  p.sw = static_cast<int>(w.stride);
  p.xw = static_cast<int>(w.x);
  p.yd = static_cast<int>(d.y);
  p.yh = static_cast<int>(h.y);
  p.yw = static_cast<int>(w.y);
  p.scale = scale;
  start(side_by_side_kernel<T>, ceil_div(p.threads, kThreads), kThreads, 0, stream, p, pool.y.data,
        pool.x.data);
}

}  // namespace

void pool_last_side_by_side(const Pool& pool, float scale, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) { launch_side_by_side<decltype(type)>(pool, scale, stream); });
}

}  // namespace retrograd::kernels::cuda
