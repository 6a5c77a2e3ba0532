// SPDX-License-Identifier: Apache-2.0
// A thread adds what its result is the sum of, rows of pixels first, then rows, then depths: for windows
// that shared memory has no room for, channels that lie at odd addresses, and tiny problems.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pooling/pool_kernels.h"
#include "kernels/cuda/pooling/pool_sources.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

struct Any {
  PoolAxes axes;
  uint32_t threads;
  FastDiv channels, columns, rows, depths;  // of a place; of the result
  int s_depths, s_rows, s_width;            // of the source
};

template <class T, bool kForward>
__global__ void __launch_bounds__(kThreads)
    any_kernel(const __grid_constant__ Any p, const T* __restrict__ source, T* __restrict__ result) {
  const uint32_t number = blockIdx.x * kThreads + threadIdx.x;
  if (number >= p.threads) return;
  uint32_t channel = number;
  uint32_t w = p.channels.split(channel);
  uint32_t h = p.columns.split(w);
  uint32_t d = p.rows.split(h);
  const int64_t image = p.depths.split(d);
  const auto at = [](uint32_t n) { return static_cast<int>(n); };
  const Places depths = sources_of<kForward>(p.axes, 0, at(d)), rows = sources_of<kForward>(p.axes, 1, at(h)),
               columns = sources_of<kForward>(p.axes, 2, at(w));
  const int step = at(p.channels.divisor);  // of a place
  const T* const from = source + image * p.s_depths * p.s_rows * p.s_width * step + channel;
  const bool divide = !p.axes.windows.uniform;
  float sum = 0;
  for (int z = depths.begin; z < depths.end; ++z)
    for (int y = rows.begin; y < rows.end; ++y) {
      const T* const row = from + (z * p.s_rows + y) * p.s_width * step;
      float across = 0;
#pragma unroll 4
      for (int x = columns.begin; x < columns.end; ++x) {
        const float value = to_float(row[x * step]);
        across += !kForward && divide ? value / counted(p.axes, z, y, x) : value;
      }
      sum += across;
    }
  const float average =
      kForward && divide ? sum / counted(p.axes, at(d), at(h), at(w)) : fmaf(sum, p.axes.windows.scale, 0.0f);
  result[number] = from_float<T>(average);  // no negative zeros
}

template <class T, bool kForward>
void run(const Pool& pool, bool last, Stream stream) {
  const auto& [d, h, w] = pool.axes;
  const int64_t channels = last ? pool.channels : 1, images = last ? pool.batch : pool.batch * pool.channels;
  const auto source = [](const PoolAxis& a) { return static_cast<int>(kForward ? a.x : a.y); };
  const auto size = [](const PoolAxis& a) { return kForward ? a.y : a.x; };
  Any p;
  p.axes = axes_of(pool);
  p.threads = static_cast<uint32_t>(images * size(d) * size(h) * size(w) * channels);
  p.channels = FastDiv(channels);
  p.columns = FastDiv(size(w));
  p.rows = FastDiv(size(h));
  p.depths = FastDiv(size(d));
  p.s_depths = source(d);
  p.s_rows = source(h);
  p.s_width = source(w);
  const void* const from = kForward ? pool.x.data : pool.y.data;
  void* const to = kForward ? pool.y.data : pool.x.data;
  start(any_kernel<T, kForward>, (p.threads + kThreads - 1) / kThreads, kThreads, 0, stream, p, from, to);
}

}  // namespace

void pool_any(const Pool& pool, bool channels_last, bool forward, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) {
    using T = decltype(type);
    forward ? run<T, true>(pool, channels_last, stream) : run<T, false>(pool, channels_last, stream);
  });
}

}  // namespace retrograd::kernels::cuda
