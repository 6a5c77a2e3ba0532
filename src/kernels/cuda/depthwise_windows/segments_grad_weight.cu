// SPDX-License-Identifier: Apache-2.0
// w[t] = Σ_{n,q} x[n, q·stride − pad + t·dilation] · y[n, q] of one channel, along lines.
//
// A block takes the lines of neighbouring channels, or pieces of one channel's, over a part of the images
// (segments_plan.h): it stages x and y in shared memory as FP32 by aligned vectors of 16 bytes, and a thread
// adds the products of its places for four or eight taps: 18 reads for 24 products of three taps. The next
// piece is on its way meanwhile. At the end the block adds what its threads have, in a fixed order, and a
// second kernel adds the parts. Bytes: x once, y once.
//
// Values beyond the edge are zeros; who adds the parts takes a sum that is not finite from the formula.
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/depthwise_windows/segments.cuh"
#include "kernels/cuda/depthwise_windows/segments_plan.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/part_sums.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kFewWorkers = 16;  // whose sums one thread adds

// shared: [strip][line][worker][kTaps + 1]. target: of the part and of the first line.
template <int kTaps>
__device__ void add_workers(const WeightSegments& w, int lines, const float* shared, float* target) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int taps = w.segments.axis.kernel;
  const auto of_worker = [&](int i, int worker) {
    const int line = i / taps, tap = i % taps;
    const int from = (tap / kTaps * w.segments.in_block + line) * w.workers + worker;
    return shared[from * (kTaps + 1) + tap % kTaps];
  };
  if (w.workers <= kFewWorkers) {
    for (int i = thread; i < lines * taps; i += threads) {
      float sum = of_worker(i, 0);
      for (int worker = 1; worker < w.workers; ++worker) sum += of_worker(i, worker);
      target[i] = sum;
    }
    return;
  }
  for (int i = thread / 32; i < lines * taps; i += threads / 32) {
    float sum = 0;
    for (int worker = thread % 32; worker < w.workers; worker += 32) sum += of_worker(i, worker);
    sum = warp_sum(sum);
    if (thread % 32 == 0) target[i] = sum;
  }
}

template <class T, ItemKind kKind, int kTaps>
__global__ void __launch_bounds__(kSegmentThreads, 4)
    grad_weight_kernel(const __grid_constant__ WeightSegments w, const __grid_constant__ SegmentLines<T> x,
                       const __grid_constant__ SegmentLines<T> y, int all, float* parts) {
  extern __shared__ __align__(16) float shared[];
  const Segments& p = w.segments;
  const DepthwiseAxis& a = p.axis;
  const int thread = static_cast<int>(threadIdx.x);
  const int first = static_cast<int>(blockIdx.x % w.channel_tiles) * p.in_block;
  const auto part = static_cast<int>(blockIdx.x / w.channel_tiles);
  const int lines = min(p.in_block, p.channels - first);
  float* const of_y = shared + padded(p.in_block * p.span) + 1;

  const int worker = thread % w.workers, line = thread / w.workers % p.in_block;
  const int tap = thread / (w.workers * p.in_block) * kTaps, taps = min(kTaps, a.kernel - tap);
  const bool busy = line < lines && taps > 0;
  float sums[kTaps] = {};
  const int last = min(all, (part + 1) * w.rounds);
  VectorInFlight<T> x_ahead[kVectorsAhead<T>], y_ahead[kVectorsAhead<T>];
  StagedLines of_x_lines, of_y_lines;
  int begin;
  const auto start = [&](int round) {
    auto piece = static_cast<uint32_t>(round);
    const auto image = static_cast<int64_t>(p.by_pieces.split(piece));
    begin = static_cast<int>(piece) * p.piece;
    of_x_lines = {image * p.channels + first, lines, begin * a.stride - a.pad};
    of_y_lines = {image * p.channels + first, lines, begin};
    fetch_ahead(x, of_x_lines, x_ahead);
    fetch_ahead(y, of_y_lines, y_ahead);
  };
  start(part * w.rounds);
  for (int round = part * w.rounds; round < last; ++round) {
    const int places = min(p.piece, a.results - begin);
    put_all(x, of_x_lines, x_ahead, shared);
    put_all(y, of_y_lines, y_ahead, of_y);
    __syncthreads();
    if (round + 1 < last) start(round + 1);
    if (busy)
      for (int item = worker; item < p.items; item += w.workers) {
        const int q = first_result(p, static_cast<uint32_t>(item)), limit = places - q;
        if (limit > 0)
          weigh_item<kKind, kTaps>(p, tap, taps, line * p.span + q * a.stride, line * y.span + q, limit,
                                   shared, of_y, sums);
      }
    __syncthreads();
  }
#pragma unroll
  for (int t = 0; t < kTaps; ++t) shared[thread * (kTaps + 1) + t] = sums[t];
  __syncthreads();
  add_workers<kTaps>(w, lines, shared, parts + part * w.weights + static_cast<int64_t>(first) * a.kernel);
}

template <class T, ItemKind kKind, int kTaps>
void launch(const Conv& conv, const WeightSegments& plan, float* workspace, Stream stream) {
  const Segments& p = plan.segments;
  const auto bytes = static_cast<int>(plan.shared);
  const auto x = segment_lines<T>(conv.x.data, p.source_total, p.axis.source, p.span);
  const auto y =
      segment_lines<T>(conv.y.data, int64_t{p.lines} * p.axis.results, p.axis.results, plan.y_span);
  start(grad_weight_kernel<T, kKind, kTaps>, plan.blocks, plan.threads, bytes, stream, plan, x, y,
        static_cast<int>(conv.batch) * p.pieces, workspace);
}

}  // namespace

void segments_grad_weight(const Conv& conv, const WeightSegments& plan, float* workspace, Stream stream) {
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    with_kind(plan.segments.kind, [&](auto kind) {
      constexpr ItemKind kKind = decltype(kind)::value;
      if (plan.strip_taps == 4) return launch<T, kKind, 4>(conv, plan, workspace, stream);
      launch<T, kKind, 8>(conv, plan, workspace, stream);
    });
  });
  add_parts(conv, plan.parts, PartOrder::kTapsOfChannel, PartRows{}, workspace, stream);
}

}  // namespace retrograd::kernels::cuda
