// SPDX-License-Identifier: Apache-2.0
// Keeps a few blocks; a run takes the smallest that is large enough.
#include "workspaces.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <vector>

namespace retrograd::python {
namespace {

constexpr size_t kAlignment = 64, kMostBlocks = 4, kMostBytes = size_t{1} << 30;

struct Block {
  void* address;
  size_t bytes;
};
std::vector<Block>& kept() {
  static std::vector<Block>& blocks = *new std::vector<Block>;
  return blocks;
}

}  // namespace

Workspace::Workspace(size_t bytes) {
  if (bytes == 0) return;
  auto best = kept().end();
  for (auto it = kept().begin(); it != kept().end(); ++it)
    if (it->bytes >= bytes && (best == kept().end() || it->bytes < best->bytes)) best = it;
  if (best != kept().end()) {
    address_ = best->address;
    bytes_ = best->bytes;
    kept().erase(best);
    return;
  }
  kept().reserve(kMostBlocks + 1);  // so that giving back needs no memory
  bytes_ = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  address_ = std::aligned_alloc(kAlignment, bytes_);
  if (address_ == nullptr) throw std::bad_alloc();
}

Workspace::~Workspace() {
  if (address_ == nullptr) return;
  kept().push_back({address_, bytes_});
  // The oldest go first.
  while (kept().size() > kMostBlocks || (kept_workspace_bytes() > kMostBytes && !kept().empty())) {
    std::free(kept().front().address);
    kept().erase(kept().begin());
  }
}

size_t kept_workspace_bytes() {
  size_t bytes = 0;
  for (const Block& block : kept()) bytes += block.bytes;
  return bytes;
}

void forget_workspaces() {
  for (const Block& block : kept()) std::free(block.address);
  kept().clear();
}

}  // namespace retrograd::python
