// SPDX-License-Identifier: Apache-2.0
#include "workspaces.h"

#include <cstdlib>
#include <new>

namespace retrograd_torch {

Workspaces::Block Workspaces::take(size_t size) {
  if (size == 0) return {};
  {
    const std::lock_guard lock(mutex_);
    auto best = free_.end();
    for (auto block = free_.begin(); block != free_.end(); ++block)
      if (block->size >= size && (best == free_.end() || block->size < best->size)) best = block;
    if (best != free_.end()) {
      const Block found = *best;
      free_.erase(best);
      kept_ -= found.size;
      return found;
    }
  }
  constexpr size_t kGranule = 4096;
  if (size > SIZE_MAX - kGranule) throw std::bad_alloc();
  const size_t rounded = (size + kGranule - 1) / kGranule * kGranule;
  void* address = std::aligned_alloc(kGranule, rounded);
  if (address == nullptr) throw std::bad_alloc();
  return {address, rounded};
}

void Workspaces::give_back(Block block) {
  if (block.address == nullptr) return;
  const std::lock_guard lock(mutex_);
  // The oldest go first: a training step that has grown takes larger ones from now on.
  while (!free_.empty() && kept_ + block.size > limit_) {
    std::free(free_.front().address);
    kept_ -= free_.front().size;
    free_.erase(free_.begin());
  }
  if (block.size > limit_) {
    std::free(block.address);
    return;
  }
  try {
    free_.push_back(block);
    kept_ += block.size;
  } catch (const std::bad_alloc&) {
    std::free(block.address);
  }
}

void Workspaces::clear() {
  std::vector<Block> gone;
  {
    const std::lock_guard lock(mutex_);
    gone.swap(free_);
    kept_ = 0;
  }
  for (const Block& block : gone) std::free(block.address);
}

size_t Workspaces::kept() {
  const std::lock_guard lock(mutex_);
  return kept_;
}

}  // namespace retrograd_torch
