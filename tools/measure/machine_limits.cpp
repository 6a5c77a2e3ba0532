// SPDX-License-Identifier: Apache-2.0
// Times the loops of limit_kernels.h on every thread of the pool.
#include "tools/measure/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "tools/measure/aligned_block.h"
#include "tools/measure/limit_kernels.h"
#include "tools/measure/plan_runner.h"

namespace retrograd::tools {
namespace {

constexpr int kTries = 4;

}  // namespace

const char* name_of(MemoryLevel level) {
  return level == MemoryLevel::kL2 ? "L2" : level == MemoryLevel::kL3 ? "L3" : "DRAM";
}

MemoryLevel level_of(double bytes, const Caches& caches, int threads) {
  const double room = 4 * bytes / 3;
  if (room <= static_cast<double>(caches.level[1].bytes * threads)) return MemoryLevel::kL2;
  return room <= static_cast<double>(caches.level[2].bytes) ? MemoryLevel::kL3 : MemoryLevel::kDram;
}

// A source and a destination a thread. Each thread writes its own first, so that its core holds them.
struct MachineLimits::CopyBuffers {
  int64_t floats = 0;  // of one thread's source
  int64_t repeats = 0;
  std::vector<AlignedBlock> sources, destinations;

  // `footprint`: bytes of all sources and destinations together.
  CopyBuffers(int64_t footprint, int threads) {
    constexpr int64_t kFloatsPerLine = 16;
    floats = footprint / threads / 8 / kFloatsPerLine * kFloatsPerLine;
    repeats = std::max<int64_t>(1, (int64_t{4} << 20) / (floats * 8));
    for (int i = 0; i < threads; ++i) {
      sources.push_back(allocate_block(static_cast<size_t>(floats) * 4));
      destinations.push_back(allocate_block(static_cast<size_t>(floats) * 4));
    }
  }
  float* source(int64_t thread) {
    return reinterpret_cast<float*>(sources[static_cast<size_t>(thread)].get());
  }
  float* destination(int64_t thread) {
    return reinterpret_cast<float*>(destinations[static_cast<size_t>(thread)].get());
  }
};

MachineLimits::MachineLimits(runtime::ThreadPool& pool, const Caches& caches)
    : pool_(pool), caches_(caches) {}
MachineLimits::~MachineLimits() = default;

double MachineLimits::measure_peak() {
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    std::atomic<int64_t> operations{0};
    const auto begin = Clock::now();
    pool_.parallel_for(pool_.threads(), 1, [&](int64_t first, int64_t end) {
      for (int64_t thread = first; thread < end; ++thread) {
        float numbers[kFmaNumbers];
        for (int n = 0; n < kFmaNumbers; ++n) numbers[n] = 0.5F + 0.125F * static_cast<float>(n);
        operations += run_fmas(fma_rounds_, numbers);
      }
    });
    const double seconds = seconds_since(begin);
    best = std::max(best, static_cast<double>(operations) / seconds);
    constexpr double kWanted = 1e-3;
    if (seconds < kWanted / 2 && fma_rounds_ < (int64_t{1} << 30)) {  // too short to see past the start
      fma_rounds_ *= 2;
      --i;
    }
  }
  return best;
}

double MachineLimits::time_copy(CopyBuffers& buffers, bool streaming) {
  const auto begin = Clock::now();
  pool_.parallel_for(pool_.threads(), 1, [&](int64_t first, int64_t end) {
    for (int64_t thread = first; thread < end; ++thread)
      for (int64_t i = 0; i < buffers.repeats; ++i)
        copy_floats(buffers.source(thread), buffers.destination(thread), buffers.floats, streaming);
  });
  const double bytes = 8.0 * static_cast<double>(buffers.floats * buffers.repeats * pool_.threads());
  return bytes / seconds_since(begin);
}

double MachineLimits::measure_copy(MemoryLevel level) {
  auto& buffers = buffers_[static_cast<size_t>(level)];
  if (!buffers) {
    const int64_t footprint = level == MemoryLevel::kL2   ? caches_.level[1].bytes / 2 * pool_.threads()
                              : level == MemoryLevel::kL3 ? caches_.level[2].bytes / 2
                                                          : caches_.level[2].bytes * 4;
    buffers = std::make_unique<CopyBuffers>(footprint, pool_.threads());
    pool_.parallel_for(pool_.threads(), 1, [&](int64_t first, int64_t end) {
      for (int64_t thread = first; thread < end; ++thread) {
        std::fill_n(buffers->source(thread), buffers->floats, 1.0F);
        std::fill_n(buffers->destination(thread), buffers->floats, 1.0F);
      }
    });
  }
  double best = 0;
  for (int i = 0; i < (level == MemoryLevel::kDram ? 2 : kTries); ++i) {
    best = std::max(best, time_copy(*buffers, false));
    if (level == MemoryLevel::kDram) best = std::max(best, time_copy(*buffers, true));
  }
  return best;
}

}  // namespace retrograd::tools
