// SPDX-License-Identifier: Apache-2.0
// Pages from the kernel, the first and the last of them forbidden.
#include "support/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace retrograd::test {
namespace {

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

void protect(std::span<std::byte> pages, int protection) {
  if (mprotect(pages.data(), pages.size(), protection) != 0) throw std::bad_alloc();
}

}  // namespace

GuardedMemory::GuardedMemory(size_t bytes, Against against) {
  const size_t page = page_bytes(), inside = (bytes + page - 1) / page * page;
  void* address =
      mmap(nullptr, inside + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  mapping_ = {static_cast<std::byte*>(address), inside + 2 * page};
  protect(mapping_.first(page), PROT_NONE);
  protect(mapping_.last(page), PROT_NONE);
  bytes_ = mapping_.subspan(against == Against::kStart ? page : page + inside - bytes, bytes);
}

GuardedMemory::GuardedMemory(std::span<const std::byte> contents, Against against)
    : GuardedMemory(contents.size(), against) {
  std::copy(contents.begin(), contents.end(), bytes_.begin());
}

GuardedMemory::~GuardedMemory() { munmap(mapping_.data(), mapping_.size()); }

void GuardedMemory::forbid_writes() {
  const size_t page = page_bytes();
  protect(mapping_.subspan(page, mapping_.size() - 2 * page), PROT_READ);
}

}  // namespace retrograd::test
