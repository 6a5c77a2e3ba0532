// SPDX-License-Identifier: Apache-2.0
// How much one task of a depthwise step does.
#pragma once

#include <algorithm>
#include <cstdint>

namespace retrograd::engines::cpu {

// Multiply-adds of a vector in a task: about 5 µs, and less where that would leave cores without work.
inline int64_t vectors_per_task(double all) {
  constexpr double kMost = 32768, kLeast = 2048, kWantedTasks = 32;
  return static_cast<int64_t>(std::clamp(all / kWantedTasks, kLeast, kMost));
}

// Where planes are small, a task takes neighbouring channels of an image until it reads and writes 32 KiB
// side by side. Planes of 7 × 7 that are taken two at a time, image after image, come out of memory at a
// twentieth of the pace: each lies on a page of its own and ends before the hardware prefetcher has seen a
// stream.
inline constexpr int64_t kRunFloats = 8192;
// What a task keeps from one image to the next, packed weights or sums, stays in L1.
inline constexpr int64_t kKeptFloats = 8192;

}  // namespace retrograd::engines::cpu
