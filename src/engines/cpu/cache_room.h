// SPDX-License-Identifier: Apache-2.0
// The share of the caches that a task may use. Blocking depends on it; the order of summation does not, so
// machines with different caches compute the same bits.
#pragma once

#include <cstdint>

#include "base/caches.h"

namespace retrograd::engines::cpu {

struct CacheRoom {
  int64_t l1 = 0, l2 = 0;  // floats
};
// The share of one logical processor, within sizes that blocking was tried with.
CacheRoom room_in(const Caches& caches);

}  // namespace retrograd::engines::cpu
