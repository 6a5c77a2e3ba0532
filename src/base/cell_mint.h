// SPDX-License-Identifier: Apache-2.0
// CellMint: addresses of small blocks of memory, none handed out twice, for handles whose first bytes clients
// read. A stale handle can therefore never be mistaken for a newer object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace retrograd {

class CellMint {
 public:
  static constexpr size_t kCellBytes = 16;

  // Zeroed. Throws std::bad_alloc.
  void* take();
  // The cell of a dead object stays readable and writable, and belongs to nobody.
  void give_back(const void* cell) noexcept;
  // Chunks that hold memory, for tests.
  size_t chunks() const;

 private:
  struct Chunk {
    size_t taken = 0;  // cells, from its beginning
    size_t live = 0;
  };
  mutable std::mutex mutex_;
  std::map<uintptr_t, Chunk> chunks_;  // by their address
  uintptr_t newest_ = 0;
};

}  // namespace retrograd
