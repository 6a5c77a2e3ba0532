// SPDX-License-Identifier: Apache-2.0
// Shares of caches.
#include "engines/cpu/cache_room.h"

#include <algorithm>

namespace retrograd::engines::cpu {

CacheRoom room_in(const Caches& caches) {
  const auto floats = [](const Cache& cache, int64_t least, int64_t most) {
    return std::clamp(cache.bytes / cache.shared_by, least, most) / static_cast<int64_t>(sizeof(float));
  };
  return {floats(caches.level[0], 16 << 10, 128 << 10), floats(caches.level[1], 256 << 10, 4 << 20)};
}

}  // namespace retrograd::engines::cpu
