// SPDX-License-Identifier: Apache-2.0
// forward     y[q] = Σ_t x[q·stride − pad + t·dilation] · w[t] along lines
// grad_input  x[q] = Σ_t y[(q + pad − t·dilation)/stride] · w[t] over the taps that leave no rest
//
// A block stages the source of a segment (segments_plan.h) in shared memory as FP32, a thread makes eight
// results from it, and these leave through shared memory, so that both ways go by aligned vectors of 16
// bytes: bytes once each, whatever the lines' length. A result of three taps takes ten reads for eight.
//
// Values beyond the edge are zeros. A result that is NaN, where a zero may have met an infinity, is taken
// from the formula.
#include "kernels/cuda/depthwise/depthwise_repair.cuh"
#include "kernels/cuda/depthwise_windows/segments.cuh"
#include "kernels/cuda/depthwise_windows/segments_plan.h"
#include "kernels/cuda/launch.cuh"

namespace retrograd::kernels::cuda {
namespace {

// Results `from` to `from` + count of a tensor, which lie in shared memory as `padded` says.
struct Finished {
  int64_t from;
  int count;
  const float* sums;
};

// A thread's own vectors once more: what is NaN, and reads beyond the edge, is taken from the formula.
template <class T>
__device__ __noinline__ void repair_results(const Conv& conv, const Segments& p, bool forward,
                                            const Finished& done, int first, T* result) {
  constexpr int kWide = kSegmentWide<T>;
  for (; first < done.count; first += static_cast<int>(blockDim.x) * kWide)
    for (int i = max(first, 0); i < min(first + kWide, done.count); ++i) {
      if (!isnan(done.sums[padded(i)])) continue;
      const int64_t line = quotient(done.from + i, p.axis.results), image = quotient(line, p.channels);
      const Index5 at{image, line - image * p.channels, 0, 0, done.from + i - line * p.axis.results};
      const Result kind = forward ? Result::kForward : Result::kGradInput;
      // Of a single output the stride is not looked at (windows_axis_plan.cpp): zeros stand behind it, too.
      const bool zeros = conv.axes[2].y == 1 || reaches_edge(conv, kind, at);
      if (zeros) result[done.from + i] = from_float<T>(by_formula(conv, kind, at));
    }
}

template <class T>
__device__ void store_results(const Conv& conv, const Segments& p, bool forward, const Finished& done,
                              T* result) {
  constexpr int kWide = kSegmentWide<T>;
  const auto phase = static_cast<int>(reinterpret_cast<uintptr_t>(result) % 16 / sizeof(T));
  const int own = static_cast<int>(threadIdx.x) * kWide - behind_boundary(phase, done.from, kWide);
  float witness = 0;
  for (int first = own; first < done.count; first += static_cast<int>(blockDim.x) * kWide) {
    T* const to = result + done.from + first;
    if (first >= 0 && first + kWide <= done.count) {
      float values[kWide];
#pragma unroll
      for (int i = 0; i < kWide; ++i) {
        values[i] = done.sums[padded(first + i)];
        watch(witness, values[i]);
      }
      store_pack<T, kWide>(to, values);
      continue;
    }
    for (int i = max(-first, 0); i < min(kWide, done.count - first); ++i) {
      const float value = done.sums[padded(first + i)];
      watch(witness, value);
      to[i] = from_float<T>(value);
    }
  }
  if (isnan(witness)) repair_results(conv, p, forward, done, own, result);
}

template <class T, ItemKind kKind>
__global__ void __launch_bounds__(kSegmentThreads, 6)
    gather_kernel(const __grid_constant__ Conv conv, const __grid_constant__ Segments p,
                  const __grid_constant__ SegmentLines<T> source, bool forward, T* result) {
  extern __shared__ __align__(16) float shared[];
  const DepthwiseAxis& a = p.axis;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  uint32_t piece = blockIdx.x;
  const int first_line = static_cast<int>(p.by_pieces.split(piece)) * p.in_block;
  const int lines = min(p.in_block, p.lines - first_line);
  const int begin = static_cast<int>(piece) * p.piece, places = min(p.piece, a.results - begin);
  float* const weights = shared;  // [line][tap_pitch]
  float* const staged_values = weights + p.in_block * p.tap_pitch;
  float* const sums_out = staged_values + padded(p.in_block * p.span) + 1;
  const int lowest = lowest_read(a, begin);
  const StagedLines staged{first_line, lines, lowest};
  VectorInFlight<T> ahead[kVectorsAhead<T>];
  fetch_ahead(source, staged, ahead);
  for (int i = thread; i < lines * a.kernel; i += threads) {
    const int line = i / a.kernel, index = i % a.kernel, channel = (first_line + line) % p.channels;
    weights[line * p.tap_pitch + index] = to_float(static_cast<const T*>(
        conv.w.data)[channel * conv.w.strides[0] + tap_at(a, index) * conv.w.strides[4]]);
  }
  put_all(source, staged, ahead, staged_values);
  __syncthreads();

  for (int i = thread; i < lines * p.items; i += threads) {
    auto item = static_cast<uint32_t>(i);
    const auto line = static_cast<int>(p.by_items.split(item));
    const int q = first_result(p, item), limit = places - q;
    if (limit <= 0) continue;
    const Taps taps = taps_at(a, begin + q);
    float sums[kOfItem] = {};
    gather_item<kKind>(p, taps, line * p.span + taps.base - lowest, limit, staged_values,
                       weights + line * p.tap_pitch, sums);
    const float bias = conv.bias.data == nullptr ? 0.0f : bias_of(conv, (first_line + line) % p.channels);
#pragma unroll
    for (int v = 0; v < kOfItem; ++v)
      if (v * p.spacing < limit) sums_out[padded(line * a.results + q + v * p.spacing)] = sums[v] + bias;
  }
  __syncthreads();
  const Finished done{static_cast<int64_t>(first_line) * a.results + begin, (lines - 1) * a.results + places,
                      sums_out};
  store_results(conv, p, forward, done, result);
}

template <class T, ItemKind kKind>
void launch(const Conv& conv, bool forward, const GatherSegments& plan, Stream stream) {
  const Segments& p = plan.segments;
  const auto bytes = static_cast<int>(plan.shared);
  const Tensor &source = forward ? conv.x : conv.y, &result = forward ? conv.y : conv.x;
  const auto lines = segment_lines<T>(source.data, p.source_total, p.axis.source, p.span);
  const int64_t busy =
      int64_t{p.in_block} * max(p.items, static_cast<int>(lines.by_vectors.divisor));  // threads with work
  const auto threads =
      static_cast<unsigned>(busy < kSegmentThreads ? (busy + 31) / 32 * 32 : kSegmentThreads);
  start(gather_kernel<T, kKind>, plan.blocks, threads, bytes, stream, conv, p, lines, forward, result.data);
}

}  // namespace

void segments_gather(const Conv& conv, bool forward, const GatherSegments& plan, Stream stream) {
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    with_kind(plan.segments.kind,
              [&](auto kind) { launch<T, decltype(kind)::value>(conv, forward, plan, stream); });
  });
}

}  // namespace retrograd::kernels::cuda
