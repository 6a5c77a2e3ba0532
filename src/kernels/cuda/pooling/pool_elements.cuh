// SPDX-License-Identifier: Apache-2.0
// Elements as the code that pooling shares with its tests on the CPU sees them.
#pragma once

#include "kernels/cuda/elements.cuh"

namespace retrograd::kernels::cuda {

template <class T>
struct PoolElements {
  using Type = T;
  __device__ static float load(T value) { return to_float(value); }
  __device__ static T store(float value) { return from_float<T>(value); }
  __device__ static float add_product(float a, float b, float sum) { return fmaf(a, b, sum); }
  // Of a number from 1 to 2^64, without the branches of a division.
  __device__ static float reciprocal(float value) {
    float guess;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(guess) : "f"(value));
    return fmaf(guess, fmaf(-value, guess, 1.0f), guess);
  }
};

}  // namespace retrograd::kernels::cuda
