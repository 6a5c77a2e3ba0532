// SPDX-License-Identifier: Apache-2.0
// x[n,i,q] = Σ_{t,o} y[n,o,output_reading(q,t)] · w[o,i,t] of at most 32 terms (few_terms_plan.h)
//
// Terms go through shared memory into registers, each thread's own, so that which taps a pixel has is found
// out in plain loops. Where a term is not there its value is zero; if a weight of the chunk is not finite,
// such terms are left out instead. Results of channels that lie side by side leave through shared memory.
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/stems/few_terms.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = kFewTermsThreads, kEach = kFewTermsEach;

// Of both places of a thread with the weights of a channel. kGuard: without terms that are not there.
template <bool kGuard, int kTerms>
__device__ void sums_of(const float (&values)[kEach][kTerms], const uint32_t (&live)[kEach],
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
template <class T>
__device__ void store_vectors(const FewTermsPlan& p, const float* staged, const int64_t* offsets, T* x,
                              uint32_t first_place, int channels) {
  constexpr int kVector = 16 / sizeof(T);
  const auto vectors = static_cast<int>(p.by_vectors.divisor);
  for (int i = static_cast<int>(threadIdx.x); i < kFewTermsPlaces * vectors; i += kThreads) {
    auto v = static_cast<uint32_t>(i);
    const uint32_t column = p.by_vectors.split(v);
    const int c = static_cast<int>(v) * kVector;
    if (first_place + column >= p.places || c >= channels) continue;
    alignas(16) T values[kVector];
#pragma unroll
    for (int j = 0; j < kVector; ++j) values[j] = from_float<T>(staged[column * kFewTermsPitch + c + j]);
    *reinterpret_cast<uint4*>(x + offsets[column] + c) = *reinterpret_cast<const uint4*>(values);
  }
}

template <class T, int kTerms, bool kChannelsFast>
__global__ void __launch_bounds__(kThreads, 4)
    few_terms_kernel(const __grid_constant__ Conv conv, const __grid_constant__ FewTermsPlan p) {
  extern __shared__ __align__(16) float shared[];
  __shared__ int64_t offsets[kChannelsFast ? kFewTermsPlaces : 1];
  float* const weights = shared;                           // [channel][term]
  float* const staged = shared + kFewTermsChunk * kTerms;  // [term][place], then [place][channel]
  const auto thread = static_cast<int>(threadIdx.x);
  const auto group = static_cast<int64_t>(blockIdx.y) / p.splits;
  const int first = static_cast<int>(blockIdx.y) % p.splits * p.of_split;
  const int end = min(first + p.of_split, p.x_channels);
  const T* const y = static_cast<const T*>(conv.y.data) + group * p.y_channels * conv.y.strides[1];
  const T* const w = static_cast<const T*>(conv.w.data) + group * p.y_channels * conv.w.strides[0];
  T* const x = static_cast<T*>(conv.x.data) + group * p.x_channels * conv.x.strides[1];
  const uint32_t first_place = blockIdx.x * static_cast<uint32_t>(kFewTermsPlaces);

  float values[kEach][kTerms];
  uint32_t live[kEach];
  T* results[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int column = i * kThreads + thread;
    const bool there = first_place + static_cast<uint32_t>(column) < p.places;
    const FewTermsPlace at =
        few_terms_place(p, there ? first_place + static_cast<uint32_t>(column) : p.places - 1);
#pragma unroll
    for (int k = 0; k < kTerms; ++k) staged[k * kFewTermsPlaces + column] = 0;
    live[i] = few_terms_of(p, conv.y, at, [&](int term, int64_t offset) {
      staged[term * kFewTermsPlaces + column] = to_float(__ldg(y + offset));
    });
#pragma unroll
    for (int k = 0; k < kTerms; ++k) values[i][k] = staged[k * kFewTermsPlaces + column];
    const int64_t offset = few_terms_offset(conv.x, at);
    results[i] = there ? x + offset : nullptr;
    if constexpr (kChannelsFast) offsets[column] = offset;
  }

#pragma unroll 1
  for (int begin = first; begin < end; begin += kFewTermsChunk) {
    const int channels = min(kFewTermsChunk, end - begin);
    __syncthreads();  // the chunk before is multiplied and written
    bool special = false;
    for (int i = thread; i < kFewTermsChunk * kTerms; i += kThreads) {
      const int c = i / kTerms, term = i % kTerms;
      float value = 0;
      if (c < channels && term < p.terms)
        value = to_float(w[(begin + c) * conv.w.strides[1] + few_terms_weight(p, conv.w, term)]);
      special = special || !isfinite(value);
      weights[i] = value;
    }
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
        if constexpr (kChannelsFast)
          staged[(i * kThreads + thread) * kFewTermsPitch + c] = sums[i];
        else if (results[i] != nullptr)
          results[i][(begin + c) * conv.x.strides[1]] = from_float<T>(sums[i]);
      }
    }
    if constexpr (kChannelsFast) {
      __syncthreads();
      if (p.whole) {
        store_vectors<T>(p, staged, offsets, x + begin, first_place, channels);
        continue;
      }
      const int pitch = static_cast<int>(p.by_chunk.divisor);
      for (int i = thread; i < kFewTermsPlaces * pitch; i += kThreads) {
        auto c = static_cast<uint32_t>(i);
        const uint32_t column = p.by_chunk.split(c);
        if (first_place + column >= p.places || static_cast<int>(c) >= channels) continue;
        x[offsets[column] + (begin + static_cast<int>(c)) * conv.x.strides[1]] =
            from_float<T>(staged[column * kFewTermsPitch + c]);
      }
    }
  }
}

template <class T, int kTerms, bool kChannelsFast>
void launch(const Conv& conv, const FewTermsPlan& plan, Stream stream) {
  const dim3 grid(static_cast<unsigned>(plan.blocks), static_cast<unsigned>(conv.groups * plan.splits));
  few_terms_kernel<T, kTerms, kChannelsFast>
      <<<grid, kThreads, static_cast<size_t>(plan.shared), stream>>>(conv, plan);
}

template <class T, int kTerms>
void launch(const Conv& conv, const FewTermsPlan& plan, Stream stream) {
  plan.channels_fast ? launch<T, kTerms, true>(conv, plan, stream)
                     : launch<T, kTerms, false>(conv, plan, stream);
}

}  // namespace

void few_terms(const Conv& conv, const FewTermsPlan& of_shape, Stream stream) {
  FewTermsPlan plan = of_shape;
  plan.whole = plan.whole && is_aligned(conv.x.data);
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    if (plan.filled == 8) return launch<T, 8>(conv, plan, stream);
    if (plan.filled == 16) return launch<T, 16>(conv, plan, stream);
    if (plan.filled == 24) return launch<T, 24>(conv, plan, stream);
    launch<T, 32>(conv, plan, stream);
  });
}

}  // namespace retrograd::kernels::cuda
