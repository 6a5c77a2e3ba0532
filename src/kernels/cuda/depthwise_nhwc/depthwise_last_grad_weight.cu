// SPDX-License-Identifier: Apache-2.0
// w[kh,kw] = Σ_{n,o} x[n, S·o − P + D·(kh,kw)] · y[n, o] of each channel, on channels-last tensors.
//
// A thread takes one channel or two of tiles of y, keeps all sums of their taps in registers and reads the
// rows of x that meet a tile from shared memory, where both operands arrive ahead of time. A block takes item
// after item of the same channels; in the end it adds what its threads have, and a second kernel the parts,
// both in a fixed order. Bytes: x once and what segments and bands share, y once.
//
// Values beyond the edge are zeros; who adds the parts takes a sum that is NaN from the formula.
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/depthwise_nhwc/depthwise_last.cuh"
#include "kernels/cuda/depthwise_nhwc/depthwise_last_plan.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/part_sums.h"

namespace retrograd::kernels::cuda {
namespace {

template <class T, int kTaps, LastForm kForm>
__global__ void __launch_bounds__(kLastThreads, 4)
    last_weight_kernel(const __grid_constant__ LastPlan p, int chunk_bytes, const T* x, const T* y,
                       float* parts) {
  constexpr LastTile kTile = last_tile(kTaps, kForm, sizeof(T));
  constexpr int kV = kTile.vector;
  extern __shared__ __align__(16) unsigned char memory[];
  const uint32_t of_x = shared_address(memory);
  const int results_at = p.source.ring * p.source.row_bytes;
  const int number = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const LastThread thread = last_thread(p, number);
  const int first_channel = static_cast<int>(blockIdx.y) * p.lanes * kV;
  const LastChunks chunks = last_chunks(p, number, threads, chunk_bytes, sizeof(T), first_channel);
  const int x_byte = first_byte(p, p.source, thread, kV * int{sizeof(T)}),
            y_byte = results_at + first_byte(p, p.results, thread, kV * int{sizeof(T)});
  const bool live = first_channel + thread.lane * kV < p.channels;

  float sums[kTaps * kTaps][kV] = {};
  for (uint32_t item = blockIdx.x; item < p.items; item += gridDim.x) {
    const LastPlace at = last_place(p, item);
    const LastOperand from_x{p.h.source, p.w.source, at.source_h, at.source_w, at.image};
    const LastOperand from_y{p.h.result, p.w.result, at.result_h, at.result_w, at.image};
    int x_slot = 0, y_slot = 0;
    const auto start_y = [&](int step) {
      const int first = step * kTile.rows;
      start_rows<kTile.rows>(p, p.results, from_y, chunks, chunk_bytes, y, of_x + results_at, first,
                             first % p.results.ring);
    };
    walk_down(
        at.steps,
        [&] {
          start_rows<kTile.source_rows>(p, p.source, from_x, chunks, chunk_bytes, x, of_x, 0, 0);
          start_y(0);
        },
        [&](int step) {
          const int first = kTile.source_rows + (step - 1) * kTile.down;
          start_rows<kTile.down>(p, p.source, from_x, chunks, chunk_bytes, x, of_x, first,
                                 first % p.source.ring);
          start_y(step);
        },
        [&](int /*step*/) {
          if (live)
            weight_tile<kTaps, kForm, int{sizeof(T)}>(
                p, x_byte, x_slot, y_byte, y_slot,
                [&](int where, float(&values)[kV]) {
                  load_pack<T, kV>(reinterpret_cast<const T*>(memory + where), values);
                },
                sums);
          x_slot = next_slot(p.source, x_slot, kTile.down);
          y_slot = next_slot(p.results, y_slot, kTile.rows);
        });
  }

  float* const scratch = reinterpret_cast<float*>(memory);  // [kw][v][thread]
  const int wide = p.lanes * kV, taps = p.h.kernel * p.w.kernel, others = p.strips * p.group;
#pragma unroll
  for (int kh = 0; kh < kTaps; ++kh) {
    if (kh >= p.h.kernel) break;
    __syncthreads();
#pragma unroll
    for (int kw = 0; kw < kTaps; ++kw)
#pragma unroll
      for (int v = 0; v < kV; ++v) scratch[(kw * kV + v) * threads + number] = sums[kh * kTaps + kw][v];
    __syncthreads();
    for (int i = number; i < p.w.kernel * wide; i += threads) {
      const int kw = i / wide, c = i % wide;
      if (first_channel + c >= p.channels) continue;
      const float* const of_tap = scratch + (kw * kV + c % kV) * threads + c / kV;
      float sum = 0;
      for (int s = 0; s < others; ++s) sum += of_tap[s * p.lanes];
      parts[(static_cast<int64_t>(blockIdx.x) * taps + kh * p.w.kernel + kw) * p.channels + first_channel +
            c] = sum;
    }
  }
}

template <class T, int kTaps, LastForm kForm>
void launch(const Conv& conv, const LastPlan& p, float* workspace, Stream stream) {
  const auto kernel = last_weight_kernel<T, kTaps, kForm>;
  start(kernel, {p.blocks, p.channel_blocks}, p.threads(), p.shared, stream, p,
        last_chunk(p, sizeof(T), alignment_of({conv.x.data, conv.y.data})), conv.x.data, conv.y.data,
        workspace);
  add_parts(conv, p.blocks, PartOrder::kChannelsOfTap, {}, workspace, stream);
}

}  // namespace

void depthwise_last_grad_weight(const Conv& conv, const LastPlan& plan, float* workspace, Stream stream) {
  with_type(conv.x.dtype, [&](auto type) {
    with_one_of<3, 5, 7>(plan.tile.taps, [&](auto taps) {
      with_one_of<LastForm::kDense, LastForm::kStrided>(plan.form, [&](auto form) {
        launch<decltype(type), taps(), form()>(conv, plan, workspace, stream);
      });
    });
  });
}

}  // namespace retrograd::kernels::cuda
