// SPDX-License-Identifier: Apache-2.0
// Memory that ends at a page nobody may touch: reading one byte too far ends the test.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace retrograd::infini_test {

class GuardedPage {
 public:
  GuardedPage() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    memory_ = mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ != MAP_FAILED) mprotect(static_cast<std::byte*>(memory_) + page_, page_, PROT_NONE);
  }
  ~GuardedPage() { munmap(memory_, 2 * page_); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;

  // A copy of `values` whose last byte is the last one that may be read.
  template <class T>
  T* at_end(const std::vector<T>& values) {
    std::byte* address = static_cast<std::byte*>(memory_) + page_ - values.size() * sizeof(T);
    std::memcpy(address, values.data(), values.size() * sizeof(T));
    return reinterpret_cast<T*>(address);
  }

 private:
  size_t page_;
  void* memory_;
};

}  // namespace retrograd::infini_test
