// SPDX-License-Identifier: Apache-2.0
// Cells come from chunks of address space, one after the other. When the last cell of a chunk dies its memory
// goes back to the system and its addresses stay reserved: 16 bytes of address space an object, of which a
// process has 2^47.
#include "base/cell_mint.h"

#include <sys/mman.h>

#include <new>

namespace retrograd {
namespace {

constexpr size_t kChunkBytes = 64 << 10;
constexpr size_t kChunkCells = kChunkBytes / CellMint::kCellBytes;

uintptr_t reserve_chunk() {
  void* const chunk =
      mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (chunk == MAP_FAILED) throw std::bad_alloc();
  return reinterpret_cast<uintptr_t>(chunk);
}

void* pointer(uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

void* CellMint::take() {
  std::lock_guard lock(mutex_);
  auto it = chunks_.find(newest_);
  if (it == chunks_.end() || it->second.taken == kChunkCells) {
    const uintptr_t begin = reserve_chunk();
    try {
      it = chunks_.emplace(begin, Chunk{}).first;
    } catch (...) {
      munmap(pointer(begin), kChunkBytes);  // nothing of it was handed out
      throw;
    }
    newest_ = begin;
  }
  Chunk& chunk = it->second;
  ++chunk.live;
  return pointer(it->first + kCellBytes * chunk.taken++);
}

void CellMint::give_back(const void* cell) noexcept {
  std::lock_guard lock(mutex_);
  auto it = chunks_.upper_bound(reinterpret_cast<uintptr_t>(cell));
  if (it == chunks_.begin()) return;
  --it;
  Chunk& chunk = it->second;
  if (--chunk.live > 0 || chunk.taken < kChunkCells) return;
  madvise(pointer(it->first), kChunkBytes, MADV_DONTNEED);
  chunks_.erase(it);
}

size_t CellMint::chunks() const {
  std::lock_guard lock(mutex_);
  return chunks_.size();
}

}  // namespace retrograd
