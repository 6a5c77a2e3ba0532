// SPDX-License-Identifier: Apache-2.0
// Workspaces that are kept between calls: the pages of a fresh block of 10 MB take 2 ms to be touched.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace retrograd_torch {

class Workspaces {
 public:
  struct Block {
    void* address = nullptr;
    size_t size = 0;
  };
  // What is kept while nobody uses it, in bytes, is at most `limit`.
  explicit Workspaces(size_t limit) : limit_(limit) {}
  // The smallest kept block that is large enough, or a new one. Throws std::bad_alloc. No block for size 0.
  Block take(size_t size);
  void give_back(Block block);
  void clear();
  size_t kept();

 private:
  const size_t limit_;
  std::mutex mutex_;
  std::vector<Block> free_;
  size_t kept_ = 0;
};

// One block for the length of a call.
class Workspace {
 public:
  Workspace(Workspaces& from, size_t size) : from_(from), block_(from.take(size)) {}
  ~Workspace() { from_.give_back(block_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  void* address() const { return block_.address; }
  size_t size() const { return block_.size; }

 private:
  Workspaces& from_;
  const Workspaces::Block block_;
};

}  // namespace retrograd_torch
