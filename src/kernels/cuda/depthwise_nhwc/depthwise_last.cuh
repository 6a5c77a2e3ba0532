// SPDX-License-Identifier: Apache-2.0
// Rows of channels-last tensors on their way into shared memory, and the loop that walks down an item: the
// rows of a step arrive while the two steps before it are computed.
#pragma once

#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/depthwise_nhwc/depthwise_last_item.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"

namespace retrograd::kernels::cuda {

// kBytes bytes, or zeros when not `live`; `source` must be a readable address all the same.
template <int kBytes>
__device__ void copy_some(uint32_t target, const void* source, bool live) {
  if constexpr (kBytes == 16) {
    copy_chunk(target, source, live);
  } else if constexpr (kBytes == 2) {
    const unsigned short value = live ? *static_cast<const unsigned short*>(source) : 0;
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(target), "h"(value) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(target), "l"(source), "n"(kBytes),
                 "r"(live ? kBytes : 0));
  }
}

template <int kRows, class T>
__device__ void start_rows(const LastPlan& p, const LastRows& rows, const LastOperand& from,
                           const LastChunks& chunks, int chunk_bytes, const T* tensor, uint32_t shared,
                           int first, int slot) {
  const auto stage = [&](auto copy) { stage_rows<kRows>(p, rows, from, chunks, first, slot, copy); };
  switch (chunk_bytes) {
    case 16:
      return stage(
          [&](int byte, uint32_t at, bool live) { copy_some<16>(shared + byte, tensor + at, live); });
    case 8:
      return stage([&](int byte, uint32_t at, bool live) { copy_some<8>(shared + byte, tensor + at, live); });
    case 4:
      return stage([&](int byte, uint32_t at, bool live) { copy_some<4>(shared + byte, tensor + at, live); });
    default:
      if constexpr (sizeof(T) == 2)
        stage([&](int byte, uint32_t at, bool live) { copy_some<2>(shared + byte, tensor + at, live); });
  }
}

// start(first) begins to copy the first step's rows, start(step) those that a further step adds;
// compute(step) finds all of them. All threads of the block come here.
template <class StartFirst, class Start, class Compute>
__device__ void walk_down(int steps, StartFirst&& start_first, Start&& start, Compute&& compute) {
  __syncthreads();  // the item before may still be read
  start_first();
  close_copies();
#pragma unroll
  for (int step = 1; step < kLastAhead; ++step) {
    if (step < steps) start(step);
    close_copies();
  }
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<kLastAhead - 1>();
    __syncthreads();  // everyone's copies are there, and nobody reads the rows that go
    if (step + kLastAhead < steps) start(step + kLastAhead);
    close_copies();
    compute(step);
  }
}

}  // namespace retrograd::kernels::cuda
