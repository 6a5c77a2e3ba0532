// SPDX-License-Identifier: Apache-2.0
// r[a] = Σ_k s[a + k]·w[k] of each channel, and its strided forms (depthwise_last_plan.h): forward and
// grad_input on channels-last tensors.
//
// A thread keeps the weights of one channel or two in registers and reads from shared memory what a tile of
// its results needs: for 3x3 in 16 bits, 36 loads and 288 products for 16 pixels of two channels. Bytes:
// source once and what segments and bands share, results once.
//
// Pixels beyond the edge and taps that a small kernel does not have count as zero. Zero times what is not
// finite would be NaN, so a thread that has met such values takes its results that are NaN from the formula
// once it is done.
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/depthwise/depthwise_repair.cuh"
#include "kernels/cuda/depthwise_nhwc/depthwise_last.cuh"
#include "kernels/cuda/depthwise_nhwc/depthwise_last_plan.h"
#include "kernels/cuda/launch.cuh"

namespace retrograd::kernels::cuda {
namespace {

template <class T>
__device__ __noinline__ void repair_result(const Conv& conv, bool forward, bool edges_only, uint32_t place,
                                           int channel, T* value) {
  if (!isnan(to_float(*value))) return;
  const Axis(&a)[3] = conv.axes;
  Index5 at = forward ? split(place, 1, a[0].y, a[1].y, a[2].y) : split(place, 1, a[0].x, a[1].x, a[2].x);
  at.c = channel;
  const Result result = forward ? Result::kForward : Result::kGradInput;
  if ((edges_only && !reaches_edge(conv, result, at)) || begins_with_nan(conv, result, at)) return;
  *value = from_float<T>(by_formula(conv, result, at));
}

// All results that the thread has written.
template <class T, int kRows, int kColumns>
__device__ __noinline__ void repair_results(const Conv& conv, const LastPlan& p, bool forward,
                                            LastThread thread, int first, int last, T* result) {
  // Where there is one output only, its stride may be another than the form's, and edges elsewhere.
  const bool edges_only = p.whole && conv.axes[1].y > 1 && conv.axes[2].y > 1;
  for (uint32_t item = blockIdx.x; item < p.items; item += gridDim.x) {
    const LastPlace at = last_place(p, item);
    for (int step = 0; step < at.steps; ++step)
      for (int c = first; c < last; ++c)
        each_result<kRows, kColumns>(p, at, thread, step, c, [&](uint32_t element, int, int) {
          repair_result(conv, forward, edges_only, element / p.channels, c, result + element);
        });
  }
}

template <class T, int kTaps, LastForm kForm>
__global__ void __launch_bounds__(kLastThreads, kTaps == 3 ? 6 : 4)
    last_gather_kernel(const __grid_constant__ Conv conv, const __grid_constant__ LastPlan p, bool forward,
                       int chunk_bytes, bool packed, const T* source, T* result) {
  constexpr LastTile kTile = last_tile(kTaps, kForm, sizeof(T));
  constexpr int kV = kTile.vector, kRows = kTile.rows, kColumns = kTile.columns;
  extern __shared__ __align__(16) unsigned char memory[];
  const uint32_t shared = shared_address(memory);
  const int number = static_cast<int>(threadIdx.x);
  const LastThread thread = last_thread(p, number);
  const int first_channel = static_cast<int>(blockIdx.y) * p.lanes * kV,
            channel = first_channel + thread.lane * kV;
  const LastChunks chunks =
      last_chunks(p, number, static_cast<int>(blockDim.x), chunk_bytes, sizeof(T), first_channel);
  const int byte = first_byte(p, p.source, thread, kV * int{sizeof(T)});

  float w[kTaps * kTaps][kV];
  bool finite = true;
#pragma unroll
  for (int kh = 0; kh < kTaps; ++kh)
#pragma unroll
    for (int kw = 0; kw < kTaps; ++kw)
#pragma unroll
      for (int v = 0; v < kV; ++v) {
        float value = 0;
        if (channel + v < p.channels && kh < p.h.kernel && kw < p.w.kernel) {
          const int64_t h = p.turned ? p.h.kernel - 1 - kh : kh, k = p.turned ? p.w.kernel - 1 - kw : kw;
          value = to_float(static_cast<const T*>(conv.w.data)[(channel + v) * conv.w.strides[0] +
                                                              h * conv.w.strides[3] + k * conv.w.strides[4]]);
        }
        w[kh * kTaps + kw][v] = value;
        finite = finite && isfinite(value);
      }
  float bias[kV];
#pragma unroll
  for (int v = 0; v < kV; ++v) bias[v] = channel + v < p.channels ? bias_of(conv, channel + v) : 0.0f;
  float witness = 0;  // NaN with the first result that is not finite

  for (uint32_t item = blockIdx.x; item < p.items; item += gridDim.x) {
    const LastPlace at = last_place(p, item);
    const LastOperand from{p.h.source, p.w.source, at.source_h, at.source_w, at.image};
    int slot = 0;
    walk_down(
        at.steps,
        [&] { start_rows<kTile.source_rows>(p, p.source, from, chunks, chunk_bytes, source, shared, 0, 0); },
        [&](int step) {
          const int first = kTile.source_rows + (step - 1) * kTile.down;
          start_rows<kTile.down>(p, p.source, from, chunks, chunk_bytes, source, shared, first,
                                 first % p.source.ring);
        },
        [&](int step) {
          float sums[kRows][kColumns][kV];
#pragma unroll
          for (int i = 0; i < kRows * kColumns * kV; ++i)
            sums[i / (kColumns * kV)][i / kV % kColumns][i % kV] = bias[i % kV];
          gather_tile<kTaps, kForm, int{sizeof(T)}>(
              p, byte, slot,
              [&](int where, float(&values)[kV]) {
                load_pack<T, kV>(reinterpret_cast<const T*>(memory + where), values);
              },
              w, sums);
          slot = next_slot(p.source, slot, kTile.down);
          if (channel >= p.channels) return;
          if (!p.whole)
#pragma unroll
            for (int i = 0; i < kRows * kColumns * kV; ++i)
              watch(witness, sums[i / (kColumns * kV)][i / kV % kColumns][i % kV]);
          if (packed)
            return each_result<kRows, kColumns>(
                p, at, thread, step, channel,
                [&](uint32_t element, int a, int b) { store_pack<T, kV>(result + element, sums[a][b]); });
          each_result<kRows, kColumns>(p, at, thread, step, channel, [&](uint32_t element, int a, int b) {
#pragma unroll
            for (int v = 0; v < kV; ++v)
              if (channel + v < p.channels) result[element + v] = from_float<T>(sums[a][b][v]);
          });
        });
  }
  if (channel < p.channels && (!finite || isnan(witness)))
    repair_results<T, kRows, kColumns>(conv, p, forward, thread, channel, min(channel + kV, p.channels),
                                       result);
}

template <class T, int kTaps, LastForm kForm>
void launch(const Conv& conv, bool forward, const LastPlan& p, Stream stream) {
  const Tensor &source = forward ? conv.x : conv.y, &result = forward ? conv.y : conv.x;
  const auto kernel = last_gather_kernel<T, kTaps, kForm>;
  const bool packed = p.channels % p.tile.vector == 0 && is_aligned(result.data, p.tile.vector * sizeof(T));
  start(kernel, {p.blocks, p.channel_blocks}, p.threads(), p.shared, stream, conv, p, forward,
        last_chunk(p, sizeof(T), alignment_of({source.data})), packed, source.data, result.data);
}

}  // namespace

void depthwise_last_gather(const Conv& conv, bool forward, const LastPlan& plan, Stream stream) {
  with_type(conv.x.dtype, [&](auto type) {
    with_one_of<3, 5, 7>(plan.tile.taps, [&](auto taps) {
      with_one_of<LastForm::kDense, LastForm::kStrided, LastForm::kSpread>(
          plan.form, [&](auto form) { launch<decltype(type), taps(), form()>(conv, forward, plan, stream); });
    });
  });
}

}  // namespace retrograd::kernels::cuda
