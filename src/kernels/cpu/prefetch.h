// SPDX-License-Identifier: Apache-2.0
// Memory that will be read or written soon. Small planes and short rows end before the hardware sees a
// stream, and stores to lines that are not in the caches leave few misses under way: depthwise 3 × 3 on
// 512 × 416 planes of 7 × 7 in DRAM takes 9.0 ms, with this 2.6, and 10 % less in L3 (two cores of a Zen 5).
// Planes wider than a vector gain nothing: the hardware sees those.
#pragma once

#include <cstdint>

namespace retrograd::kernels::cpu {

// The lines of `bytes` at `at`, which may be nobody's memory: nothing faults.
inline __attribute__((always_inline)) void prefetch(const void* at, int64_t bytes) {
  constexpr uintptr_t kLine = 64;
  const auto first = reinterpret_cast<uintptr_t>(at);
  for (uintptr_t line = first & ~(kLine - 1); line < first + static_cast<uintptr_t>(bytes); line += kLine)
    __builtin_prefetch(reinterpret_cast<const void*>(line));
}

// What lies a little beyond the `count` floats at `at`, which are in use now: 1 to 4 KiB are equally good.
inline __attribute__((always_inline)) void prefetch_ahead(const float* at, int64_t count) {
  constexpr uintptr_t kAhead = 2048;
  prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(at) + kAhead),
           count * static_cast<int64_t>(sizeof(float)));
}

}  // namespace retrograd::kernels::cpu
