// SPDX-License-Identifier: Apache-2.0
// Memory on a cache line, as frameworks give their tensors.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace retrograd::tools {

struct FreeBlock {
  void operator()(std::byte* block) const { std::free(block); }
};
using AlignedBlock = std::unique_ptr<std::byte, FreeBlock>;

// Null when there is no memory for it. At least one byte is allocated.
inline AlignedBlock allocate_block(size_t bytes) {
  constexpr size_t kAlignment = 64;
  return AlignedBlock(
      static_cast<std::byte*>(std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment)));
}

}  // namespace retrograd::tools
