// SPDX-License-Identifier: Apache-2.0
// forward and grad_input of at most 64 terms a result (few_terms_plan.h)
//
// Terms go through shared memory into registers, each thread's own, so that which taps a place has is found
// out in plain loops. Where a term is not there its value is zero; if a weight of the chunk is not finite,
// such terms are left out instead. Results of channels that lie side by side leave through shared memory.
#include <type_traits>

#include "kernels/cuda/alignment.h"
#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/stems/few_terms_plan.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = kFewTermsThreads;
template <int kTerms>
using MaskOf = std::conditional_t<(kTerms > 32), uint64_t, uint32_t>;

// Of the places of a thread with the weights of a channel. kGuard: without terms that are not there.
template <bool kGuard, int kEach, int kTerms>
__device__ void sums_of(const float (&values)[kEach][kTerms], const MaskOf<kTerms> (&live)[kEach],
                        const float* weights, float (&sums)[kEach]) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) sums[i] = 0;
#pragma unroll
  for (int k = 0; k < kTerms; k += 4) {
    const float4 four = *reinterpret_cast<const float4*>(weights + k);
    const float w[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int i = 0; i < kEach; ++i)
        if (!kGuard || (live[i] >> (k + j) & 1u) != 0) sums[i] = fmaf(values[i][k + j], w[j], sums[i]);
  }
}

// Channels of staged places, 16 bytes a lane.
template <class T, int kPlaces>
__device__ void store_vectors(const FewTermsPlan& p, const float* staged, const int64_t* offsets, T* to,
                              uint32_t first_place, int channels) {
  constexpr int kVector = 16 / sizeof(T);
  const auto vectors = static_cast<int>(p.by_vectors.divisor);
  for (int i = static_cast<int>(threadIdx.x); i < kPlaces * vectors; i += kThreads) {
    auto v = static_cast<uint32_t>(i);
    const uint32_t column = p.by_vectors.split(v);
    const int c = static_cast<int>(v) * kVector;
    if (first_place + column >= p.places || c >= channels) continue;
    alignas(16) T values[kVector];
#pragma unroll
    for (int j = 0; j < kVector; ++j) values[j] = from_float<T>(staged[column * kFewTermsPitch + c + j]);
    *reinterpret_cast<uint4*>(to + offsets[column] + c) = *reinterpret_cast<const uint4*>(values);
  }
}

template <class T, int kTerms, bool kChannelsFast>
__global__ void __launch_bounds__(kThreads, 4)
    few_terms_kernel(const __grid_constant__ FewTermsOperands o, const __grid_constant__ FewTermsPlan p) {
  constexpr int kEach = few_terms_each(kTerms), kPlaces = kEach * kThreads, kVector = 16 / sizeof(T);
  constexpr int kBatch = kTerms % 32 == 0 ? 8 : kTerms % 16 == 0 ? 4 : 2;  // weights of a thread at once
  static_assert(kFewTermsChunk * kTerms % (kBatch * kThreads) == 0);
  extern __shared__ __align__(16) float shared[];
  __shared__ int64_t offsets[kChannelsFast ? kPlaces : 1];
  __shared__ float bias[kFewTermsChunk];
  float* const weights = shared;                           // [channel][term]
  float* const staged = shared + kFewTermsChunk * kTerms;  // [term][place], then [place][channel]
  const auto thread = static_cast<int>(threadIdx.x);
  const auto group = static_cast<int64_t>(blockIdx.y) / p.splits;
  const int first = static_cast<int>(blockIdx.y) % p.splits * p.of_split;
  const int end = min(first + p.of_split, p.to_channels);
  const T* const from = static_cast<const T*>(o.from.data) + group * p.from_channels * o.from.strides[1];
  const T* const w = static_cast<const T*>(o.w.data) + group * o.w_group;
  T* const to = static_cast<T*>(o.to.data) + group * p.to_channels * o.to.strides[1];
  const uint32_t first_place = blockIdx.x * static_cast<uint32_t>(kPlaces);

  float values[kEach][kTerms];
  MaskOf<kTerms> live[kEach];
  T* results[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int column = i * kThreads + thread;
    const bool there = first_place + static_cast<uint32_t>(column) < p.places;
    const FewTermsPlace at =
        few_terms_place(p, there ? first_place + static_cast<uint32_t>(column) : p.places - 1);
#pragma unroll
    for (int k = 0; k < kTerms; ++k) staged[k * kPlaces + column] = 0;
    const auto stage = [&](int term, T value) { staged[term * kPlaces + column] = to_float(value); };
    // Two walks: a choice inside would have every load wait for the one before.
    if (p.vector == 1) {
      live[i] = few_terms_of<MaskOf<kTerms>, 1>(
          p, o.from, at, [&](int term, int64_t offset) { stage(term, __ldg(from + offset)); });
    } else {
      live[i] = few_terms_of<MaskOf<kTerms>, kVector>(p, o.from, at, [&](int term, int64_t offset) {
        alignas(16) T vector[kVector];
        *reinterpret_cast<uint4*>(vector) = __ldg(reinterpret_cast<const uint4*>(from + offset));
#pragma unroll
        for (int j = 0; j < kVector; ++j) stage(term + j, vector[j]);
      });
    }
#pragma unroll
    for (int k = 0; k < kTerms; ++k) values[i][k] = staged[k * kPlaces + column];
    const int64_t offset = few_terms_offset(o.to, at);
    results[i] = there ? to + offset : nullptr;
    if constexpr (kChannelsFast) offsets[column] = offset;
  }

#pragma unroll 1
  for (int begin = first; begin < end; begin += kFewTermsChunk) {
    const int channels = min(kFewTermsChunk, end - begin);
    __syncthreads();  // the chunk before is multiplied and written
    bool special = false;
    // Many loads at once: those of weights that are not there read others.
#pragma unroll 1
    for (int from_weight = thread; from_weight < kFewTermsChunk * kTerms; from_weight += kBatch * kThreads) {
      T loaded[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        const int i = from_weight + j * kThreads, c = min(i / kTerms, channels - 1),
                  term = min(i % kTerms, p.terms - 1);
        loaded[j] = __ldg(w + (begin + c) * o.w.strides[1] + few_terms_weight(p, o.w, term));
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        const int i = from_weight + j * kThreads;
        const float value = i / kTerms < channels && i % kTerms < p.terms ? to_float(loaded[j]) : 0.0f;
        special = special || !isfinite(value);
        weights[i] = value;
      }
    }
    if (thread < channels) bias[thread] = bias_of(o.bias, group * p.to_channels + begin + thread);
    const bool guard = __syncthreads_or(special ? 1 : 0) != 0;
#pragma unroll 2
    for (int c = 0; c < channels; ++c) {
      float sums[kEach];
      if (guard)
        sums_of<true>(values, live, weights + c * kTerms, sums);
      else
        sums_of<false>(values, live, weights + c * kTerms, sums);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const float sum = sums[i] + bias[c];
        if constexpr (kChannelsFast)
          staged[(i * kThreads + thread) * kFewTermsPitch + c] = sum;
        else if (results[i] != nullptr)
          results[i][(begin + c) * o.to.strides[1]] = from_float<T>(sum);
      }
    }
    if constexpr (kChannelsFast) {
      __syncthreads();
      if (p.whole) {
        store_vectors<T, kPlaces>(p, staged, offsets, to + begin, first_place, channels);
        continue;
      }
      const int pitch = static_cast<int>(p.by_chunk.divisor);
      for (int i = thread; i < kPlaces * pitch; i += kThreads) {
        auto c = static_cast<uint32_t>(i);
        const uint32_t column = p.by_chunk.split(c);
        if (first_place + column >= p.places || static_cast<int>(c) >= channels) continue;
        to[offsets[column] + (begin + static_cast<int>(c)) * o.to.strides[1]] =
            from_float<T>(staged[column * kFewTermsPitch + c]);
      }
    }
  }
}

template <class T, int kTerms>
void launch(const FewTermsOperands& operands, const FewTermsPlan& plan, int64_t groups, Stream stream) {
  const auto kernel =
      plan.channels_fast ? few_terms_kernel<T, kTerms, true> : few_terms_kernel<T, kTerms, false>;
  start(kernel, {plan.blocks, groups * plan.splits}, kThreads, plan.shared, stream, operands, plan);
}

}  // namespace

void few_terms(const Conv& conv, const FewTermsPlan& of_shape, Stream stream) {
  const FewTermsOperands operands = few_terms_operands(conv, of_shape.forward);
  FewTermsPlan plan = of_shape;
  plan.whole = plan.whole && is_aligned(operands.to.data);
  if (!is_aligned(operands.from.data)) plan.vector = 1;
  with_type(operands.to.dtype, [&](auto type) {
    using T = decltype(type);
    with_one_of<8, 16, 24, 32, 48, 64>(
        plan.filled, [&](auto terms) { launch<T, terms()>(operands, plan, conv.groups, stream); });
  });
}

}  // namespace retrograd::kernels::cuda
