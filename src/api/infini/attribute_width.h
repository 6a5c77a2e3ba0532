// SPDX-License-Identifier: Apache-2.0
// How wide the numbers behind infiniop's `void*` attributes are. The prototypes hide it, and clients
// disagree.
//
// Strides, dilations and kernel sizes are at least 1. Little-endian, a list of two or more of them as 64-bit
// numbers begins with the words (low, 0, low, …), as 32-bit numbers with two words that are not zero. So the
// first `count` words, which are there either way, decide; nothing behind them is read unless they showed 64
// bits.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "base/status.h"

namespace retrograd::api::infini {

enum class Width : unsigned char { k32, k64 };

// `positive_lists` hold `count` numbers of at least 1 each, or are null. One list that shows 32 bits decides:
// the others may hold a forbidden zero where a 64-bit number would have its high half, and are refused for it
// later. `otherwise` when nothing can be seen: every list is null, or count is 1.
Width attribute_width(std::initializer_list<const void*> positive_lists, int count, Width otherwise);

// `count` signed numbers; all `when_null` when the list is null. Alignment does not matter.
std::vector<int64_t> read_attribute(const void* list, int count, Width width, int64_t when_null);

// Lists of size_t arrive as their bits in int64_t: one of 2^63 or more would read as negative. Fails naming
// it.
Status check_sizes(const std::vector<int64_t>& values, Width width, const char* argument);

}  // namespace retrograd::api::infini
