// SPDX-License-Identifier: Apache-2.0
// Reading and writing single floats of a caller's tensor, which begins at any byte. Plain code, always
// inlined: it becomes part of whatever instruction set it is used in.
#pragma once

#include <cstring>

#if defined(__GNUC__)
#define RG_INLINE inline __attribute__((always_inline))
#else
#define RG_INLINE inline
#endif

namespace retrograd::kernels::cpu {

// A plain float cannot be read where it is not aligned, says the language; the instruction is the same.
RG_INLINE float float_at(const float* address) {
  float value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

RG_INLINE void put_float(float value, float* address) {
  std::memcpy(static_cast<void*>(address), &value, sizeof value);
}

}  // namespace retrograd::kernels::cpu
