// SPDX-License-Identifier: Apache-2.0
// x[n, c, q] = Σ_{o, t} y[n, o, (q + P − t)/S] · w[o, c, t] for the few c of a group.
//
// stem_plan.h says how it is cut. A block copies the next chunk of y and of weights while it multiplies the
// one before; what its threads read most, y, serves as many products as a thread has taps in a row, rows and
// channels. Three x channels and 9 x 9 taps with stride 2: a y value is copied once for 243 products.
//
// Values of y beyond the edge are zeros; a result that is NaN is taken from the formula.
#include "kernels/cuda/few_channels/narrow_repair.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/stems/stem_plan.h"
#include "kernels/cuda/stems/stem_stage.cuh"
#include "kernels/cuda/stems/stem_sums.cuh"

namespace retrograd::kernels::cuda {
namespace {

// Chunks of channels of one tap along the depth after another, of those taps that read inside y.
struct Steps {
  int64_t tap, depth;  // depth: of y
  int o;
  __device__ static Steps first(const Axis& d, int64_t place) {
    Steps steps{-1, 0, 0};
    steps.next_tap(d, place);
    return steps;
  }
  __device__ bool done(const Axis& d) const { return tap >= d.kernel; }
  __device__ void next(const Axis& d, int64_t place, int chunk, int64_t channels) {
    o += chunk;
    if (o < channels) return;
    o = 0;
    next_tap(d, place);
  }
  __device__ void next_tap(const Axis& d, int64_t place) {
    for (++tap; tap < d.kernel; ++tap)
      if (depth = output_reading(d, place, tap); depth >= 0) return;
  }
};

template <class T, int kC, int kA>
__global__ void __launch_bounds__(kStemThreads, 1)
    stem_kernel(const __grid_constant__ Conv conv, const __grid_constant__ StemPlan p) {
  extern __shared__ __align__(16) float shared[];
  auto* const entries = reinterpret_cast<StemEntry*>(shared);
  float* const buffers = shared + (p.entries * 2 + 3) / 4 * 4;
  const auto tile = static_cast<int>(blockIdx.x);
  const int column0 = p.w.first + tile % p.column_tiles * p.quads * kStemRun,
            row0 = p.h.first + tile / p.column_tiles % p.row_tiles * p.thread_rows * kA;
  const int64_t depth = tile / p.column_tiles / p.row_tiles, n = blockIdx.z;
  const int64_t group = blockIdx.y / p.c_blocks;
  const int c0 = static_cast<int>(blockIdx.y) % p.c_blocks * kC;
  const int channels = min(kC, static_cast<int>(conv.x_channels) - c0);

  const auto thread = static_cast<int>(threadIdx.x);
  const int unit = thread / p.positions, position = thread % p.positions;
  const int of_class = unit % p.classes, share = unit / p.classes;
  const int bh = of_class / p.w.stride, bw = of_class % p.w.stride;
  const int quad = position & (p.quads - 1), row = position / p.quads * kA;
  const int th = stem_taps(p.h, bh), tw = th > 0 ? stem_taps(p.w, bw) : 0;

  const auto* const y = static_cast<const T*>(conv.y.data) + n * conv.y.strides[0] +
                        group * conv.y_channels * conv.y.strides[1];
  const auto* const w = static_cast<const T*>(conv.w.data) + group * conv.y_channels * conv.w.strides[0] +
                        c0 * conv.w.strides[1];
  const auto y_channels = static_cast<int>(conv.y_channels);
  const auto stage = [&](float* buffer, const Steps& at) {
    const int count = min(p.chunk, y_channels - at.o);
    stage_box<T>(buffer, p,
                 {y + at.depth * conv.y.strides[2] + at.o * conv.y.strides[1], conv.y.strides[1],
                  conv.y.strides[3], conv.y.strides[4], row0, column0},
                 count);
    stage_weights<T>(buffer + p.chunk * p.plane, entries, p,
                     w + at.o * conv.w.strides[0] + at.tap * conv.w.strides[2], conv.w.strides[0], count);
  };

  StemSums<kC, kA> sums;
  list_weights<kC>(entries, conv, p, channels);
  __syncthreads();
  Steps now = Steps::first(conv.axes[0], depth);
  float* buffer = buffers;
  if (!now.done(conv.axes[0])) stage(buffer, now);
  while (!now.done(conv.axes[0])) {
    copy_async_wait();
    __syncthreads();  // the other buffer is free, too
    const int count = min(p.chunk, y_channels - now.o);
    const float* const of_y = buffer + row * p.pitch;
    const float* const of_w = buffer + p.chunk * p.plane + of_class * p.weight_class;
    now.next(conv.axes[0], depth, p.chunk, conv.y_channels);
    buffer = buffer == buffers ? buffers + p.buffer : buffers;
    if (!now.done(conv.axes[0])) stage(buffer, now);
#pragma unroll 1
    for (int o = share; o < count; o += p.shares)
      sums.add(of_y + o * p.plane, p.pitch, quad * kStemRun, of_w + o * p.weight_channel, p.weight_row, th,
               tw);
  }
  if (p.shares > 1)
    add_shares(sums, buffers, share, p.shares, thread % (p.positions * p.classes), p.positions * p.classes);
  if (share > 0) return;

  const int h0 = stem_place(p.h, bh, row0 + row), w0 = stem_place(p.w, bw, column0 + quad * kStemRun);
  auto* const x = static_cast<T*>(conv.x.data) + n * conv.x.strides[0] +
                  (group * conv.x_channels + c0) * conv.x.strides[1] + depth * conv.x.strides[2];
  bool is_nan = false;
#pragma unroll
  for (int a = 0; a < kA; ++a) {
    const int h = h0 + a * p.h.stride;
    if (h < 0 || h >= p.h.x) continue;
#pragma unroll
    for (int i = 0; i < kStemRun; ++i) {
      const int column = w0 + i * p.w.stride;
      if (column < 0 || column >= p.w.x) continue;
      T* const to = x + h * conv.x.strides[3] + column * conv.x.strides[4];
#pragma unroll
      for (int c = 0; c < kC; ++c) {
        if (c >= channels) break;
        to[c * conv.x.strides[1]] = from_float<T>(sums.of[a][c][i]);
        is_nan = is_nan || isnan(sums.of[a][c][i]);
      }
    }
  }
  if (is_nan)
    repair_grad_input(conv, static_cast<int>(n), {static_cast<int>(group * conv.x_channels) + c0, channels},
                      {h0, kA, p.h.stride}, {w0, kStemRun, p.w.stride}, depth);
}

template <class T, int kC, int kA>
void launch(const Conv& conv, const StemPlan& p, Stream stream) {
  start(stem_kernel<T, kC, kA>,
        {p.row_tiles * p.column_tiles * conv.axes[0].x, conv.groups * p.c_blocks, conv.batch}, p.threads(),
        p.shared, stream, conv, p);
}

}  // namespace

void stem_gather(const Conv& conv, const StemPlan& plan, Stream stream) {
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    if (plan.channels == 4) return launch<T, 4, 1>(conv, plan, stream);
    if (plan.channels == 3) return launch<T, 3, 1>(conv, plan, stream);
    if (plan.channels == 2)
      return plan.rows == 2 ? launch<T, 2, 2>(conv, plan, stream) : launch<T, 2, 1>(conv, plan, stream);
    if (plan.rows == 4) return launch<T, 1, 4>(conv, plan, stream);
    plan.rows == 2 ? launch<T, 1, 2>(conv, plan, stream) : launch<T, 1, 1>(conv, plan, stream);
  });
}

}  // namespace retrograd::kernels::cuda
