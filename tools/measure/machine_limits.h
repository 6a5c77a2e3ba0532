// SPDX-License-Identifier: Apache-2.0
// What this machine can do right now, all threads of the pool together: operations and copied bytes a second.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "runtime/thread_pool.h"
#include "tools/measure/caches.h"

namespace retrograd::tools {

enum class MemoryLevel : unsigned char { kL2, kL3, kDram };
inline constexpr int kMemoryLevels = 3;
const char* name_of(MemoryLevel level);

// Where tensors of that many bytes live while `threads` threads work on them: the first level of which they
// fill no more than three quarters. One that is full to the brim holds nothing until it is read again.
MemoryLevel level_of(double bytes, const Caches& caches, int threads);

class MachineLimits {
 public:
  MachineLimits(runtime::ThreadPool& pool, const Caches& caches);
  ~MachineLimits();

  // Each takes a few milliseconds and answers the best of several tries: what disturbs only slows down.
  double measure_peak();                   // operations a second
  double measure_copy(MemoryLevel level);  // bytes a second, those read and those written both counted

 private:
  struct CopyBuffers;
  double time_copy(CopyBuffers& buffers, bool streaming);

  runtime::ThreadPool& pool_;
  Caches caches_;
  int64_t fma_rounds_ = 1000;  // about a millisecond, found at the first measurement
  std::array<std::unique_ptr<CopyBuffers>, kMemoryLevels> buffers_;
};

}  // namespace retrograd::tools
