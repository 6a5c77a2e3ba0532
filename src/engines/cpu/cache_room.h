// SPDX-License-Identifier: Apache-2.0
// What of the caches a task may count on. Blocking is a function of the pass and of this; the order of sums
// is not, so that machines with other caches compute the same bits.
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
